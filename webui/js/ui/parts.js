/** Small pieces that several views use. */

import { html, icon, nothing } from "../core/html.js";
import { has, language, t } from "../core/i18n.js";
import { shown } from "../core/shown.js";
import { clockTime, count, dayTime, fullTime, relativeTime, stamp } from "../core/time.js";

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

/** @param {Words | null | undefined} words  Said by the server, in the reader's language. */
export function said(words) {
  return words?.[language()] || words?.en || "";
}

/** @type {Record<string, string>}  States that look like another. */
const LOOKS = { asked: "queued", planning: "running" };

/** @param {string} state  Of a task, a trigger or a slot. */
export function stateIcon(state) {
  const look = LOOKS[state] ?? state;
  return html`<span class="state state-${look}" title=${word("state", state)}
    >${icon(`s-${look}`)}<span class="sr-only">${word("state", state)}</span></span
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

/** @param {string} name of an engine */
export const engineName = (name) => word("engines.name", name);

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

/** @param {Task} task */
export function taskTitle(task) {
  const first = shown(task.prompt.split("\n", 1)[0]);
  return task.title || (first.length > 90 ? `${first.slice(0, 90)}…` : first);
}

/** @param {Trigger} trigger */
export function triggerTitle(trigger) {
  return trigger.title || shown(trigger.prompt.split("\n", 1)[0]) || trigger.id;
}

/** @param {Trigger} trigger  When it fires; of a reminder, that it is one. */
export function triggerWhen(trigger) {
  const when = said(trigger.words) || trigger.type;
  return trigger.profile === "reminder" ? t("triggers.reminds", { when }) : when;
}

/** @param {TokenCounts} used */
export function usageWords(used) {
  const lang = language();
  return t("usage.words", {
    input: count(used.inputTokens, lang),
    cached: count(used.cachedInputTokens, lang),
    output: count(used.outputTokens, lang),
  });
}

/**
 * @param {unknown} label
 * @param {() => void} click
 * @param {{sign?: string, look?: string, off?: boolean, id?: string, named?: string}} [more] its
 *   icon and classes; how it is named where the label says too little
 */
export function button(label, click, { sign, look = "small", off = false, id, named } = {}) {
  return html`<button
    type="button"
    id=${id ?? nothing}
    class=${look || nothing}
    ?disabled=${off}
    aria-label=${named ?? nothing}
    @click=${click}
  >
    ${sign ? icon(sign) : nothing}${label}
  </button>`;
}

/**
 * @param {string} sign
 * @param {string} label
 * @param {() => void} click
 * @param {{off?: boolean, title?: string}} [more]
 */
export function iconButton(sign, label, click, { off = false, title = label } = {}) {
  return html`<button
    type="button"
    class="icon-button small"
    ?disabled=${off}
    aria-label=${label}
    title=${title}
    @click=${click}
  >
    ${icon(sign)}
  </button>`;
}

/** @param {string} href @param {string} label */
export function backLink(href, label) {
  return html`<a class="back" href=${href}>${icon("back")}${label}</a>`;
}

/** @param {() => void} again @param {string} [text] @param {string} [title]  It could not be had. */
export function failedView(again, text = t("load.unreachable"), title = t("load.failed")) {
  return emptyState(title, text, button(t("load.again"), again, { sign: "retry" }));
}

/** @param {string} [error] @param {string} [id]  Why a form was not taken. */
export function failureView(error, id) {
  return html`<div role="alert">
    ${error ? html`<div class="failure" id=${id} tabindex="-1">${error}</div>` : nothing}
  </div>`;
}

/** @param {[string, unknown][]} facts  Words' keys, and what is so, unless it is nothing. */
export function factsList(facts) {
  const row = (/** @type {[string, unknown]} */ [key, value]) =>
    html`<div>
      <dt>${t(key)}</dt>
      <dd>${value}</dd>
    </div>`;
  return html`<dl class="facts">${facts.filter(([, value]) => value).map(row)}</dl>`;
}

/** @param {(event: any) => void} act  Of a form: what sending it does. */
export function onSubmit(act) {
  return (/** @type {Event} */ event) => {
    event.preventDefault();
    act(event);
  };
}

/** @param {KeyboardEvent} event  Enter that picks an input method's candidate sends nothing. */
export function holdBackCandidates(event) {
  if (event.key === "Enter" && (event.isComposing || event.keyCode === 229)) event.preventDefault();
}
