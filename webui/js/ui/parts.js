/** Small pieces that several views use. */

import { html, icon, nothing } from "../core/html.js";
import { has, language, t } from "../core/i18n.js";
import { shown } from "../core/shown.js";
import { clockTime, count, dayTime, fullTime, relativeTime, stamp } from "../core/time.js";

/** So near, a count of seconds only twitches. */
const NOW_MS = 5000;

/** @param {string} at @param {string} words  The whole date is on its title. */
function timeView(at, words) {
  return html`<time datetime=${at} title=${fullTime(at, language())}>${words}</time>`;
}

/** @param {string} at  The time of day. */
export const clock = (at) => timeView(at, clockTime(at, language()));

/** @param {string} at  The day and the time of day. */
export const moment = (at) => timeView(at, dayTime(at, language()));

/** @param {string} at  The same to the second, for what may come often. */
export const stamped = (at) => timeView(at, stamp(at, language()));

/** @param {string} at @param {number} now  How long ago or ahead. */
export function ago(at, now) {
  const away = Date.parse(at) - now;
  const soon = t(away > 0 ? "time.soon" : "time.now");
  return timeView(at, Math.abs(away) < NOW_MS ? soon : relativeTime(at, now, language()));
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

/** @param {string | null | undefined} reason @param {number | string | null | undefined} exitCode */
export function failureWords(reason, exitCode) {
  const code = Number(exitCode);
  const exit = code ? t("task.exit", { code }) : "";
  return [word("reason", reason) || t("state.failed"), exit].filter(Boolean).join(" · ");
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

/** @param {unknown} label @param {(event: any) => void} click @param {Look} [more] */
export function button(label, click, more = {}) {
  const { sign, look = "small", off = false, id, named, title, expanded, controls, pressed } = more;
  return html`<button
    type="button"
    id=${id ?? nothing}
    class=${look || nothing}
    title=${title ?? nothing}
    ?disabled=${off}
    aria-label=${named ?? nothing}
    aria-expanded=${expanded ?? nothing}
    aria-controls=${controls ?? nothing}
    aria-pressed=${pressed ?? nothing}
    tabindex=${more.tab ?? nothing}
    @click=${click}
  >
    ${sign ? icon(sign) : nothing}${label}
  </button>`;
}

/** @param {string} sign @param {string} named @param {(event: any) => void} click @param {Look} [more] */
export function iconButton(sign, named, click, more = {}) {
  return button(icon(sign), click, { look: "icon-button small", named, title: named, ...more });
}

/** @param {string} label @param {boolean} busy @param {string} [sign]  It sends its form. */
export function submitButton(label, busy, sign) {
  const idle = sign ? icon(sign) : nothing;
  return html`<button type="submit" class="primary" ?disabled=${busy}>
    ${busy ? html`<span class="spinner"></span>` : idle}${label}
  </button>`;
}

/**
 * Before something is lost, one is asked.
 *
 * @param {Actions} act @param {string} asked @param {string} yes @param {() => void} lose
 * @param {{no?: string, look?: string, size?: string}} [more] what keeps it; classes of the whole, and of its buttons
 */
export function confirmView(act, asked, yes, lose, more = {}) {
  const { no = t("triggers.removeNo"), look = "trigger-actions", size = "small" } = more;
  const sure = () => {
    act.store.set({ confirming: "" });
    lose();
  };
  return html`<div class=${look} role="group" aria-label=${asked}>
    <span>${asked}</span>
    ${button(yes, sure, { look: `${size} danger` })} ${button(no, () => act.keep(), { look: size, id: "keep" })}
  </div>`;
}

/** @param {string} name @param {unknown} title @param {unknown} rows @param {unknown} [more]  A part of a list. */
export function groupView(name, title, rows, more = nothing) {
  return html`<section class="group" data-group=${name}>
    <h3>${title}</h3>
    ${rows === nothing ? nothing : html`<ul class="rows">${rows}</ul>`} ${more}
  </section>`;
}

/** @param {unknown} sign @param {unknown} title @param {unknown} meta  What a row of a list says. */
export function rowMain(sign, title, meta) {
  return html`${sign}
    <span class="row-main">
      <span class="row-title" dir="auto">${title}</span><span class="row-meta">${meta}</span>
    </span>`;
}

/** @param {string} title @param {unknown} inside @param {string} [look]  A part of a page, under its title. */
export function sectionView(title, inside, look = "") {
  return html`<section class=${look}>
    <h3>${title}</h3>
    ${inside}
  </section>`;
}

/** @param {string} look @param {string} title @param {unknown} inside  What one comes to, under its title. */
export function pageView(look, title, inside) {
  return html`<div class=${look}>
    <h2 tabindex="-1" data-focus>${title}</h2>
    ${inside}
  </div>`;
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
  const known = facts.filter(([, value]) => value);
  return known.length ? html`<dl class="facts">${known.map(row)}</dl>` : nothing;
}

/** @param {(event: any) => void} act  Of a form: what sending it does. */
export function onSubmit(act) {
  return (/** @type {Event} */ event) => {
    event.preventDefault();
    act(event);
  };
}

/** @param {(value: string) => void} change  What typing in a field does. */
export function typing(change) {
  return (/** @type {any} */ event) => change(event.target.value);
}

/** @param {KeyboardEvent} event  Enter that picks an input method's candidate sends nothing. */
export function holdBackCandidates(event) {
  if (event.key === "Enter" && (event.isComposing || event.keyCode === 229)) event.preventDefault();
}
