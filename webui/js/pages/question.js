/** The one question that waits for its answer. */

import { spoken } from "../core/attention.js";
import { html, icon, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { elapsed } from "../core/time.js";
import { button, holdBackCandidates, onSubmit } from "../ui/parts.js";

/** @param {State} state @param {Actions} act */
export function questionView({ question, answering, outbox, now }, act) {
  if (!question) return nothing;
  const { questionId, options } = question;
  const isSent = outbox.some((item) => item.questionId === questionId && item.state !== "failed");
  const off = answering.busy || isSent;
  const submit = onSubmit(({ currentTarget: form }) => {
    act.answer(String(new FormData(form).get("answer") ?? ""));
    form.reset();
  });
  const optionButton = (/** @type {string} */ option) => {
    const isDefault = option === question.default;
    const tag = isDefault ? html`<span class="default">${t("question.default")}</span>` : nothing;
    const look = isDefault ? "option is-default" : "option";
    return button(html`${option}${tag}`, () => act.answer(option), { look, off });
  };
  return html`<section class="question" id="question" aria-labelledby="question-text">
    <div class="question-head">
      <p class="question-text" dir="auto" id="question-text">${spoken(question.question)}</p>
      ${countdown(question, now)}
    </div>
    ${options?.length ? html`<div class="options">${options.map(optionButton)}</div>` : nothing}
    <form class="question-form" @submit=${submit}>
      <label class="sr-only" for="question-answer">${t("question.own")}</label>
      <input
        id="question-answer"
        dir="auto"
        name="answer"
        autocomplete="off"
        placeholder=${t("question.own")}
        ?disabled=${off}
        @keydown=${holdBackCandidates}
      />
      <button type="submit" class="small" ?disabled=${off}>${t("question.send")}</button>
    </form>
  </section>`;
}

/** @param {Question} question @param {number} now */
function countdown({ expiresAt, default: answer }, now) {
  const left = Date.parse(expiresAt) - now;
  const text = answer ? t("question.countdown", { answer }) : t("question.countdownNone");
  if (left <= 0) return html`<span class="countdown">${t("question.expired")}</span>`;
  return html`<span class="countdown ${left < 60_000 ? "is-soon" : ""}" title=${text}
    >${icon("trigger")}<span class="sr-only">${text}</span
    ><span class="ticking" role="timer" aria-live="off">${elapsed(left)}</span></span
  >`;
}
