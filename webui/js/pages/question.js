/** The one question that waits for its answer. */

import { html, icon, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { elapsed } from "../core/time.js";
import { holdBackCandidates, onSubmit } from "../ui/parts.js";

/** @param {State} state @param {Actions} act */
export function questionView(state, act) {
  const question = state.question;
  if (!question) return nothing;
  const { busy } = state.answering;
  const sent =
    busy ||
    state.outbox.some((item) => item.questionId === question.questionId && item.state !== "failed");
  const submit = onSubmit(({ currentTarget: form }) => {
    act.answer(String(new FormData(form).get("answer") ?? ""));
    form.reset();
  });
  return html`<section class="question" id="question" aria-labelledby="question-text">
    <div class="question-head">
      <p class="question-text" dir="auto" id="question-text">${question.question}</p>
      ${countdown(question, state.now)}
    </div>
    ${
      question.options.length
        ? html`<div class="options">
            ${question.options.map((option) => optionButton(option, question, sent, act))}
          </div>`
        : nothing
    }
    <form class="question-form" @submit=${submit}>
      <label class="sr-only" for="question-answer">${t("question.own")}</label>
      <input
        id="question-answer"
        dir="auto"
        name="answer"
        autocomplete="off"
        placeholder=${t("question.own")}
        ?disabled=${sent}
        @keydown=${holdBackCandidates}
      />
      <button type="submit" class="small" ?disabled=${sent}>${t("question.send")}</button>
    </form>
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
    ><span class="ticking" role="timer" aria-live="off">${elapsed(left)}</span></span
  >`;
}
