/** Small pieces that several views use. */

import { html, icon, nothing } from "../html.js";
import { has, language, t } from "../i18n.js";
import { shown } from "../shown.js";
import { clockTime, count, dayTime, fullTime, relativeTime, stamp } from "../time.js";

/** So near, a count of seconds only twitches. */
const NOW_MS = 5000;

/** @param {string} at  The time of day; the whole date on its title. */
export function clock(at) {
  const lang = language();
  return html`<time datetime=${at} title=${fullTime(at, lang)}>${clockTime(at, lang)}</time>`;
}

/** @param {string} at  The day and the time of day. */
export function moment(at) {
  const lang = language();
  return html`<time datetime=${at} title=${fullTime(at, lang)}>${dayTime(at, lang)}</time>`;
}

/** @param {string} at  The same to the second, for what may come often. */
export function stamped(at) {
  const lang = language();
  return html`<time datetime=${at} title=${fullTime(at, lang)}>${stamp(at, lang)}</time>`;
}

/** @param {string} at @param {number} now  How long ago or ahead; the date on its title. */
export function ago(at, now) {
  const lang = language();
  const away = Date.parse(at) - now;
  const soon = t(away > 0 ? "time.soon" : "time.now");
  const words = Math.abs(away) < NOW_MS ? soon : relativeTime(at, now, lang);
  return html`<time datetime=${at} title=${fullTime(at, lang)}>${words}</time>`;
}

/** @param {string} at @param {number} now  How long ago; the page's clock may be a little behind. */
export function since(at, now) {
  return ago(at, Math.max(now, Date.parse(at)));
}

/** @param {import("../state-types.js").Words | null | undefined} words  Said by the server, in the reader's language. */
export function said(words) {
  return words?.[language()] || words?.en || "";
}

/**
 * @param {string | null | undefined} reason  Of a failure, or of a wait.
 * @param {import("../state-types.js").Words | null | undefined} why  The same in each language, where code has said it.
 */
export function reasonWords(reason, why) {
  return said(why) || reason || "";
}

/** A button that shows a sign alone. @param {string} sign @param {string} label @param {() => void} click @param {boolean} [off] */
export function iconButton(sign, label, click, off = false) {
  return html`<button
    type="button"
    class="icon-button small"
    ?disabled=${off}
    aria-label=${label}
    title=${label}
    @click=${click}
  >
    ${icon(sign)}
  </button>`;
}

/** @param {string} state  Of a job, a task, a trigger or a slot. */
export function stateIcon(state) {
  const sign = state === "planning" ? "running" : state;
  const words = word(sign === state ? "state" : "card", state);
  return html`<span class="state state-${sign}" title=${words}
    >${icon(`s-${sign}`)}<span class="sr-only">${words}</span></span
  >`;
}

/** @param {string} state  Of a task, a trigger or a slot. */
export function stateBadge(state) {
  return html`<span class="badge state-${state}"
    >${icon(`s-${state}`)}${word("state", state)}</span
  >`;
}

/** @param {string} group @param {string | null | undefined} name  A word of a closed list; else itself. */
export function word(group, name) {
  if (!name) return "";
  return has(`${group}.${name}`) ? t(`${group}.${name}`) : name;
}

/** @param {string} name  What happened, as the log names it. */
export const eventWords = (name) => word("logs.event", name).replaceAll("_", " ");

/** @param {string} title @param {string} [text] @param {unknown} [action] */
export function emptyState(title, text = "", action = nothing) {
  return html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${text ? html`<p>${text}</p>` : nothing} ${action}
  </div>`;
}

/** @param {string} label */
export function loading(label) {
  return html`<div class="loading" role="status">
    <span class="spinner"></span><span>${label}</span>
  </div>`;
}

/** @param {import("../types.js").Task} task */
export function taskTitle(task) {
  return task.title || task.id;
}

/** @param {import("../types.js").Trigger} trigger */
export function triggerTitle(trigger) {
  return trigger.title || shown(trigger.prompt.split("\n", 1)[0]) || trigger.id;
}

/** @param {import("../types.js").Trigger} trigger  When it fires; of a reminder, that it is one. */
export function triggerWhen(trigger) {
  const when = said(trigger.words) || trigger.type;
  return trigger.profile === "reminder" ? t("triggers.reminds", { when }) : when;
}

/** @param {import("../types.js").TokenCounts} used */
export function usageWords(used) {
  const lang = language();
  return t("usage.words", {
    input: count(used.inputTokens, lang),
    cached: count(used.cachedInputTokens, lang),
    output: count(used.outputTokens, lang),
  });
}
