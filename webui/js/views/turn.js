/** A reply as it grows, how it ended early, and the question an answer was given to. */

import { growingHtml } from "../growing-html.js";
import { html, icon, nothing } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { shown } from "../shown.js";
import { STOP_ALL } from "../turn-actions.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../types.js").Message} Message
 */

/** @param {import("../select.js").DraftEntry} entry  Whole blocks as they will stay, the rest plain. */
export function draftView({ key, turn }) {
  return html`<li class="message is-agent is-draft">
    <span class="glyph">${icon("mark")}</span>
    <div class="message-body">
      <div class="prose" ${growingHtml(`${key} ${turn.part}`, turn.blocks)}></div>
      ${tailView(turn.text)}
    </div>
  </li>`;
}

const FENCE = /^\s*(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n]*\n([\s\S]*)$/;

/** @param {string} text  Code in a fence that is still open looks like code at once. */
function tailView(text) {
  const caret = html`<span class="caret"></span>`;
  const [, , name, code] = FENCE.exec(text) ?? [];
  if (code === undefined) {
    return html`<div class="plain draft-tail">${shown(text.trimStart())}${caret}</div>`;
  }
  return html`<div class="prose draft-tail">
    <div class="code-box">
      <pre tabindex="0" data-lang=${name || nothing}><code>${shown(code)}</code>${caret}</pre>
    </div>
  </div>`;
}

/** @param {Message} message  Of a reply that was cut short: that it was. */
export function cutMark({ role, ended }) {
  if (role !== "agent" || !ended) return nothing;
  return html`<span class="cut">${t(`turn.cut.${ended}`)}</span>`;
}

/**
 * How the turn of the user's message ended, and what can be done about it.
 *
 * @param {Message} message
 * @param {Actions} act
 */
export function endedView(message, act) {
  const { id, ended, why } = message;
  const words = why ? t("turn.failed", { why: why[language()] }) : t("turn.stopped");
  return html`<span class="turn-end is-${ended}" role="status"
      >${icon(ended === "failed" ? "alert" : "stop")}${words}</span
    >
    <span class="meta-actions">
      <button type="button" class="link" @click=${() => act.turns.again(id)}>
        ${icon("retry")}${t("delivery.retry")}
      </button>
      <button type="button" class="link" @click=${() => act.messages.edit(id)}>
        ${icon("edit")}${t("delivery.edit")}
      </button>
    </span>`;
}

/** @param {import("../types.js").Answered} answered  A question as it was put, with its answer. */
export function answeredView({ question, options, default: usual, answer, byUser }) {
  const own = answer !== null && !options.includes(answer);
  const how = byUser ? "user" : answer === null ? "none" : "default";
  return html`<div class="answered-card" role="group" aria-label=${t("question.answered")}>
    <p class="answered-question">${shown(question)}</p>
    <ul class="answered-options">
      ${options.map((option) => optionView(option, option === answer, option === usual))}
      ${own ? optionView(answer ?? "", true, false) : nothing}
    </ul>
    <p class="answered-how">${t(`question.by.${how}`)}</p>
  </div>`;
}

/** @param {string} text @param {boolean} chosen @param {boolean} usual */
function optionView(text, chosen, usual) {
  return html`<li class=${chosen ? "is-chosen" : ""}>
    ${chosen ? icon("check") : nothing}<span>${shown(text)}</span>${
      chosen ? html`<span class="sr-only">${t("question.chosen")}</span>` : nothing
    }${usual ? html` <span class="default">${t("question.default")}</span>` : nothing}
  </li>`;
}

/**
 * Stop for the reply; for what runs beside it a step of its own, that is asked back.
 *
 * @param {State} state
 * @param {Actions} act
 * @param {import("../select.js").Live} now
 */
export function stopView(state, act, { turnId, running }) {
  const asks = state.confirming === STOP_ALL && running.length > 0;
  const keep = () => act.turns.askStopAll(false);
  if (asks) {
    return html`<button type="button" class="stop is-all" @click=${() => act.turns.stopAll()}>
        ${icon("stop")}${tn("stop.confirm", running.length)}
      </button>
      <button type="button" class="stop keep" @click=${keep}>${t("stop.keep")}</button>`;
  }
  return html`${
    running.length
      ? html`<button type="button" class="link all" @click=${() => act.turns.askStopAll(true)}>
          ${t("stop.all")}
        </button>`
      : nothing
  }
  ${
    turnId
      ? html`<button
          type="button"
          class="stop"
          title=${t("stop.turn")}
          ?disabled=${Boolean(state.pending[turnId])}
          @click=${() => act.turns.stop()}
        >
          ${icon("stop")}${t("stop.button")}
        </button>`
      : nothing
  }`;
}
