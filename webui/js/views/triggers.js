/** The list of triggers: what makes tasks by itself, and when. */

import { html, icon, nothing, repeat } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { ago, emptyState, loading, word } from "./parts.js";

/**
 * @typedef {import("../types.js").State} State
 * @typedef {import("../types.js").Trigger} Trigger
 * @typedef {import("../actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function triggersView(state, act) {
  if (state.load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.session.load()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), state.loadError, again);
  }
  if (state.load === "loading") return loading(t("triggers.loading"));
  const title = html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.triggers")}</h2>`;
  const triggers = Object.values(state.triggers).sort(byNextRun);
  if (!triggers.length)
    return html`${title}${emptyState(t("triggers.empty"), t("triggers.emptyText"))}`;
  return html`${title}
    <ul class="triggers">
      ${repeat(
        triggers,
        (trigger) => trigger.id,
        (trigger) => triggerView(trigger, state, act),
      )}
    </ul>`;
}

/** @param {Trigger} a @param {Trigger} b  The next to fire first, the paused last. */
function byNextRun(a, b) {
  const when = (/** @type {Trigger} */ one) =>
    one.enabled ? Date.parse(one.nextRunAt ?? "") || 9e15 : Infinity;
  const [first, second] = [when(a), when(b)];
  return first === second ? a.createdAt.localeCompare(b.createdAt) : first - second;
}

/** @param {Trigger} trigger @param {State} state @param {Actions} act */
function triggerView(trigger, state, act) {
  const words = trigger.words?.[language()] ?? trigger.type;
  return html`<li class="trigger ${trigger.enabled ? "" : "is-paused"}" data-trigger=${trigger.id}>
    <p class="trigger-title">
      ${trigger.title || trigger.prompt.split("\n", 1)[0]}
      ${trigger.enabled ? nothing : html`<span class="badge">${t("triggers.paused")}</span>`}
    </p>
    <p class="trigger-words">${icon("trigger")}${words}</p>
    <p class="row-meta">${timesView(trigger, state)}</p>
    ${trigger.broken ? html`<p class="verdict error-text">${trigger.broken}</p>` : nothing}
    ${verdictView(trigger.lastVerdict)}
    ${
      state.confirming === trigger.id
        ? confirmView(trigger, act)
        : buttonsView(trigger, Boolean(state.pending[trigger.id]), act)
    }
  </li>`;
}

/** @param {string | null} verdict  Why it did not run, when it was looked at last. */
function verdictView(verdict) {
  if (!verdict || verdict === "ran") return nothing;
  return html`<p class="verdict">${word("verdict", verdict)}</p>`;
}

/** @param {string} next @param {number} now */
function nextView(next, now) {
  if (Date.parse(next) <= now) return html`<span>${t("triggers.due")}</span>`;
  return html`<span>${t("triggers.next")} ${ago(next, now)}</span>`;
}

/** @param {Trigger} trigger @param {State} state */
function timesView(trigger, state) {
  const { now } = state;
  const next = trigger.enabled && trigger.nextRunAt ? trigger.nextRunAt : null;
  const last = trigger.lastRunAt;
  return html`${next ? nextView(next, now) : nothing}
    <span>${last ? html`${t("triggers.last")} ${ago(last, now)}` : t("triggers.never")}</span>
    ${trigger.fireCount ? html`<span>${tn("triggers.fired", trigger.fireCount)}</span>` : nothing}
    ${
      trigger.lastTaskId
        ? html`<a href="#/task/${trigger.lastTaskId}">${t("triggers.lastTask")}</a>`
        : nothing
    }`;
}

/** @param {Trigger} trigger @param {boolean} busy @param {Actions} act */
function buttonsView(trigger, busy, act) {
  const toggle = trigger.enabled ? "pause" : "resume";
  return html`<div class="trigger-actions">
    <button
      type="button"
      class="small"
      ?disabled=${busy}
      @click=${() => act.orderTrigger(trigger.id, "run")}
    >
      ${icon("play")}${t("triggers.run")}
    </button>
    <button
      type="button"
      class="small"
      ?disabled=${busy}
      @click=${() => act.orderTrigger(trigger.id, toggle)}
    >
      ${icon(trigger.enabled ? "pause" : "play")}${t(`triggers.${toggle}`)}
    </button>
    <button
      type="button"
      class="icon-button small"
      ?disabled=${busy}
      aria-label=${t("triggers.remove")}
      title=${t("triggers.remove")}
      @click=${() => act.confirmRemoval(trigger.id)}
    >
      ${icon("trash")}
    </button>
  </div>`;
}

/** @param {Trigger} trigger @param {Actions} act */
function confirmView(trigger, act) {
  return html`<div class="trigger-actions" role="group" aria-label=${t("triggers.confirm")}>
    <span>${t("triggers.confirm")}</span>
    <button type="button" class="small danger" @click=${() => act.removeTrigger(trigger.id)}>
      ${t("triggers.removeYes")}
    </button>
    <button type="button" class="small" @click=${() => act.confirmRemoval("")}>
      ${t("triggers.removeNo")}
    </button>
  </div>`;
}
