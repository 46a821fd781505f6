/** What can be done with a message: copy, quote, send again, edit; and why a reply is what it is. */

import { html, nothing } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { duration } from "../core/time.js";
import { button, engineName, iconButton } from "../ui/parts.js";
import { hitsView } from "./memory-view.js";
import { promptView } from "./task.js";
import { moneyOf } from "./usage.js";

const OVER = new Set(["answered", "stopped", "unanswered"]);

/** @param {Message} message @param {State} state @param {Actions} act  How a reply ended that is not whole. */
export function outcomeView({ stopped, failed, error, inReplyTo }, state, act) {
  if (!stopped && !failed) return nothing;
  const asked = state.messages.filter((one) => inReplyTo.includes(one.id));
  const text = asked.map((one) => one.text).join("\n\n");
  const files = asked.flatMap((one) => one.files ?? []);
  const again = () => act.sendAgain(text, files);
  const edit = () => act.editText(text, false, files);
  const buttons = html`${button(t("delivery.retry"), again, { sign: "retry", look: "link" })}
  ${button(t("delivery.edit"), edit, { sign: "edit", look: "link" })}`;
  return html`<p class="outcome ${failed ? "error-text" : ""}">
    <span>${t(`delivery.${stopped ? "stopped" : "unanswered"}`)}${error ? `: ${error}` : ""}</span>
    ${text || files.length ? buttons : nothing}
  </p>`;
}

/** @param {MessageEntry} entry @param {State} state @param {Actions} act */
export function messageActions({ message, delivery }, state, act) {
  if (delivery && !OVER.has(delivery)) return nothing; // it is on its way: other things can be done
  const { id, role, text, turnId, files } = message;
  const look = "icon-button";
  const ask = (/** @type {string} */ turn) => {
    const why = { look, tab: -1, expanded: Boolean(state.hits[turn]?.open), controls: `why-${id}` };
    return iconButton("info", t("why.open"), () => act.memory.toggleHits(turn), why);
  };
  const order = (/** @type {string} */ name, /** @type {string} */ sign, /** @type {() => void} */ run) =>
    iconButton(sign, t(`act.${name}`), run, { look, tab: name === "copy" ? 0 : -1 });
  const own = html`${order("again", "retry", () => act.sendAgain(text, files))}
  ${order("edit", "edit", () => act.editText(text, false, files))}`;
  return html`<div class="message-actions" role="toolbar" aria-label=${t("act.label")} @keydown=${moveInside}>
    ${order("copy", "copy", () => act.copyMessage(text))} ${order("quote", "quote", () => act.quote(text))}
    ${role === "user" ? own : nothing}
    ${role === "agent" && turnId ? ask(turnId) : nothing}
  </div>`;
}

/** @param {KeyboardEvent} event  Arrows go from button to button: a message is one stop of the Tab key. */
function moveInside({ key, currentTarget }) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  const bar = /** @type {HTMLElement} */ (currentTarget);
  const all = [...bar.querySelectorAll("button")];
  const at = all.findIndex((button) => button === document.activeElement);
  if (step) all[(at + step + all.length) % all.length].focus();
}

/** @param {Message} message @param {State} state @param {Actions} act  What the reply was made of. */
export function whyView(message, state, act) {
  const { id, turnId } = message;
  const known = turnId ? state.hits[turnId] : null;
  if (!turnId || message.role !== "agent") return nothing;
  return html`<div id="why-${id}" class="why" ?hidden=${!known?.open}>
    ${known?.open ? html`<p class="muted">${[...whyFacts(message), ...moneyOf(known.cost)].join(" · ")}</p>` : nothing}
    ${known?.open && message.memory ? hitsView(turnId, known, state, act) : nothing} ${known?.open ? givenView(known.run) : nothing}
  </div>`;
}

/** @param {TurnReport["run"]} run  What the model was given, and what it called. */
function givenView(run) {
  if (!run) return nothing;
  const called = run.calls.map((call) => `${call.name} ${call.arguments} → ${call.reply}`);
  return promptView([run.instructions, run.prompt, ...called].join("\n\n"), t("why.given"));
}

/** @param {Message} message  What is known of the run that made it. */
function whyFacts({ engine, durationMs, usage, memory }) {
  const tokens = (/** @type {number | null | undefined} */ n) => (n ?? 0).toLocaleString(language());
  return [
    engine && (engine === "local" ? `${engine} (${t("engines.basic")})` : engineName(engine)),
    durationMs != null && duration(durationMs, language()),
    usage?.outputTokens && t("why.tokens", { in: tokens(usage.inputTokens), out: tokens(usage.outputTokens) }),
    tn("hits.count", memory),
  ].filter(Boolean);
}
