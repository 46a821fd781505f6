/** What can be done with a trigger; the same in the list and where it is shown in full. */

import { html, icon, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { triggerTitle } from "../ui/parts.js";

/**
 * @typedef {import("../core/types.js").Trigger} Trigger
 * @typedef {import("../core/actions.js").Actions} Actions
 */

/** @param {Trigger} trigger @param {import("../core/state-types.js").State} state @param {Actions} act */
export function triggerButtons(trigger, state, act) {
  if (state.confirming === trigger.id) return confirmView(trigger, act);
  const busy = Boolean(state.pending[trigger.id]);
  const toggle = trigger.enabled ? "pause" : "resume";
  const readable = trigger.type !== "broken"; // of the others nothing is known but the file
  return html`<div class="trigger-actions">
    ${
      readable
        ? html`${button(trigger, "run", "play", busy, act)}
          ${button(trigger, toggle, trigger.enabled ? "pause" : "play", busy, act)}`
        : nothing
    }
    <span class="trigger-more">
      ${
        readable && !trigger.broken
          ? html`<a
              class="button icon-button small"
              href="#/trigger/${trigger.id}/edit"
              aria-label=${t("triggers.editNamed", { title: triggerTitle(trigger) })}
              title=${t("triggers.edit")}
              >${icon("edit")}</a
            >`
          : nothing
      }
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
    </span>
  </div>`;
}

/**
 * @param {Trigger} trigger
 * @param {"run" | "pause" | "resume"} what
 * @param {string} sign
 * @param {boolean} busy
 * @param {Actions} act
 */
function button(trigger, what, sign, busy, act) {
  return html`<button
    type="button"
    class="small"
    ?disabled=${busy}
    @click=${() => act.orderTrigger(trigger.id, what)}
  >
    ${icon(sign)}${t(`triggers.${what}`)}
  </button>`;
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

/** @param {Trigger} trigger  What is out of the ordinary with it. */
export function triggerBadges(trigger) {
  return html`${trigger.broken ? badge("broken", "danger") : nothing}
  ${trigger.blockedBy && !trigger.broken ? badge("blocked", "warn") : nothing}
  ${trigger.enabled || trigger.type === "broken" ? nothing : badge("paused", "plain")}`;
}

/** @param {string} name @param {string} tone */
function badge(name, tone) {
  return html`<span class="badge badge-${tone}">${t(`triggers.${name}`)}</span>`;
}

/** @param {Trigger} trigger  Why its file cannot be read, and what holds meanwhile. */
export function brokenView(trigger) {
  if (!trigger.broken) return nothing;
  const left = trigger.type === "broken" ? "triggers.brokenRests" : "triggers.brokenLastGood";
  return html`<p class="verdict error-text">${trigger.broken}</p>
    <p class="verdict">${t(left)}</p>`;
}
