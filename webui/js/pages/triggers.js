/** The list of triggers: what makes tasks by itself, and when. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { ago, emptyState, loading, said, since, triggerTitle, triggerWhen, word } from "../ui/parts.js";
import { brokenView, triggerBadges, triggerButtons } from "./trigger-buttons.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/types.js").Trigger} Trigger
 * @typedef {import("../core/actions.js").Actions} Actions
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
  const head = html`<div class="list-head">
    <h2 class="sr-only" tabindex="-1" data-focus>${t("nav.triggers")}</h2>
    <a class="button small" href="#/triggers/new">${icon("plus")}${t("triggers.new")}</a>
  </div>`;
  const triggers = Object.values(state.triggers).sort(byNextRun);
  if (!triggers.length)
    return html`${head}${emptyState(t("triggers.empty"), t("triggers.emptyText"))}`;
  return html`${head}
    <ul class="triggers">
      ${repeat(
        triggers,
        (trigger) => trigger.id,
        (trigger) => cardView(trigger, state, act),
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
function cardView(trigger, state, act) {
  return html`<li class="trigger ${trigger.enabled ? "" : "is-paused"}" data-trigger=${trigger.id}>
    <div class="trigger-title">
      <a href="#/trigger/${trigger.id}">${triggerTitle(trigger)}</a>
      <span class="badges">${triggerBadges(trigger)}</span>
    </div>
    <p class="trigger-words">${icon("trigger")}${triggerWhen(trigger)}</p>
    ${trigger.broken ? nothing : headlineView(trigger)}
    <p class="row-meta">${timesView(trigger, state)}</p>
    ${trigger.failureStreak ? html`<p class="verdict">${said(trigger.last)}</p>` : nothing}
    ${brokenView(trigger)} ${triggerButtons(trigger, state, act)}
  </li>`;
}

/** @param {Trigger} trigger  Why it waits, unless it only waits for its time: that stands below. */
function headlineView(trigger) {
  const timed = trigger.nextRunAt && !trigger.blockedBy;
  const headline = timed || !trigger.enabled ? "" : said(trigger.headline);
  if (headline) return html`<p class="verdict">${headline}</p>`;
  const verdict = trigger.lastVerdict;
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
    <span>${last ? html`${t("triggers.last")} ${since(last, now)}` : t("triggers.never")}</span>
    ${trigger.fireCount ? html`<span>${tn("triggers.fired", trigger.fireCount)}</span>` : nothing}
    ${
      trigger.lastTaskId
        ? html`<a href="#/task/${trigger.lastTaskId}">${t("triggers.lastTask")}</a>`
        : nothing
    }`;
}
