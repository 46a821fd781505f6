/** The one question that waits for its answer: its words and choices; in the field one answers freely. */

import { html, icon, nothing } from "../html.js";
import { language, t } from "../i18n.js";
import { answersNow, isAnswerSent } from "../message-state.js";
import { duration, elapsed } from "../time.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../types.js").Question} Question
 */

/** @param {State} state @param {Actions} act */
export function questionView(state, act) {
  const question = state.question;
  if (!question) return nothing;
  const sent = isAnswerSent(state);
  const here = answersNow(state);
  return html`<section
    class="question ${here ? "is-here" : ""}"
    id="question"
    aria-labelledby="question-text"
  >
    <div class="question-head">
      <p class="question-text" id="question-text">${question.question}</p>
      ${countdown(question, state.now)}
    </div>
    <div class="options">
      ${question.options.map((option) => optionButton(option, question, sent, act))}
      <button
        type="button"
        class="link question-way"
        ?disabled=${sent}
        @click=${() => act.messages.answerHere(!here)}
      >
        ${t(here ? "question.other" : "question.own")}
      </button>
    </div>
  </section>`;
}

/** @param {string} option @param {Question} question @param {boolean} sent @param {Actions} act */
function optionButton(option, question, sent, act) {
  const isDefault = option === question.default;
  return html`<button
    type="button"
    class="option ${isDefault ? "is-default" : ""}"
    ?disabled=${sent}
    @click=${() => act.answer(option)}
  >
    ${option}${isDefault ? html`<span class="default">${t("question.default")}</span>` : nothing}
  </button>`;
}

/** @param {Question} question @param {number} now */
function countdown(question, now) {
  const left = Date.parse(question.expiresAt) - now;
  const text = question.default
    ? t("question.countdown", { answer: question.default })
    : t("question.countdownNone");
  if (left <= 0) return html`<span class="countdown">${t("question.expired")}</span>`;
  return html`<span class="countdown ${left < 60_000 ? "is-soon" : ""}" title=${text}
    >${icon("trigger")}<span class="sr-only">${text}</span
    ><span class="ticking" role="timer" aria-live="off">${left < 3_600_000 ? elapsed(left) : duration(left, language())}</span></span
  >`;
}
