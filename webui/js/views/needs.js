/** What waits for its user: each with the act that mends it. */

import { html, icon, nothing, repeat } from "../html.js";
import { foldFailures } from "../home-state.js";
import { language, t, tn } from "../i18n.js";
import { isAnswerSent } from "../message-state.js";
import { dayTime, duration, fileSize } from "../time.js";
import { mindWhy } from "./banners.js";
import { reasonWords, said, since, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").Need} Need
 * @typedef {import("../actions.js").Actions} Actions
 *
 * @typedef {object} Told
 * @property {unknown} title
 * @property {unknown} [meta]
 * @property {unknown} [acts]
 */

/** @type {Record<Need["kind"], (need: Need, state: State, act: Actions) => Told>} */
const TOLD = {
  consumer: (need, state) => {
    const down = need.error === "down";
    const age = need.at ? duration(Math.max(0, state.now - Date.parse(need.at)), language()) : "";
    return {
      title: t(down ? "needs.down" : "needs.hung", { age }),
      meta: html`${need.count ? html`<span>${tn("needs.lateCount", need.count)}</span>` : nothing}
        <code>${down ? "mimikit consumer" : "mimikit doctor"}</code>`,
    };
  },
  question: (need, state, act) => {
    const options = need.question?.options ?? [];
    return {
      title: need.title,
      meta: when(need, state),
      acts: html`${options
        .slice(0, 4)
        .map((option) =>
          button(option, () => act.answer(option), isAnswerSent(state), "needs-option"),
        )}
      ${button(t("needs.answer"), () => act.home.goAnswer(), false)}`,
    };
  },
  failure: (need, state, act) => ({
    title: html`<a href="#/task/${need.taskId}">${need.title}</a>`,
    meta: html`${when(need, state)}
      <span class="error-text">${word("reason", need.failureReason)}</span>
      ${need.count > 1 ? html`<span>${tn("needs.times", need.count)}</span>` : nothing}
      ${need.error ? html`<span class="needs-error">${reasonWords(need.error, need.why)}</span>` : nothing}`,
    acts: html`${button(
      t("task.retry"),
      () => act.home.retry(need.taskId ?? ""),
      Boolean(state.pending[need.taskId ?? ""]),
      "",
      "retry",
    )}
    ${button(t("needs.dismiss"), () => act.home.dismiss([need.taskId ?? ""]), false, "is-quiet")}`,
  }),
  breaker: (need, state, act) => ({
    title: html`<a href="#/trigger/${need.triggerId}">${need.title}</a>`,
    meta: html`<span>${tn("needs.breaker", need.count)}</span>`,
    acts: triggerButton(need, "resume", state, act),
  }),
  late: (need, state, act) => ({
    title: html`<a href="#/trigger/${need.triggerId}">${need.title}</a>`,
    meta: html`<span>${t("needs.late")} ${need.at ? since(need.at, state.now) : nothing}</span>
      <span>${said(need.why)}</span>`,
    acts: triggerButton(need, "run", state, act),
  }),
  broken: (need) => ({
    title: html`<a href="#/trigger/${need.triggerId}">${need.title}</a>`,
    meta: html`<span>${t("needs.broken")}</span><span class="needs-error">${reasonWords(need.error, need.why)}</span>`,
  }),
  blocked: (need) => ({
    title: html`<a href="#/trigger/${need.triggerId}">${need.title}</a>`,
    meta: html`<span>${said(need.why)}</span>`,
    acts: html`<a class="button small" href="#/trigger/${need.triggerId}/edit"
      >${t("triggers.edit")}</a
    >`,
  }),
  engine: (need, state, act) => {
    const mind = need.engine;
    if (!mind) return { title: need.title };
    const counts = [
      mind.messages ? tn("mind.messages", mind.messages) : "",
      mind.tasks ? tn("mind.tasks", mind.tasks) : "",
    ];
    const what = counts.filter(Boolean).join(t("list.and"));
    const busy = Boolean(state.pending.engine);
    return {
      title: mindWhy(mind, state),
      meta: html`<span>${t("needs.waiting", { what })}</span>`,
      acts: html`${button(t("mind.try"), () => act.tryEngine(mind.engine), busy)}
        ${button(t("mind.without"), () => act.useEngine("builtin"), busy)}
        <a class="button small" href="#/engines">${t("needs.engines")}</a>`,
    };
  },
  budget: (need) => ({
    title: t("needs.budget"),
    meta: html`<span>${tn("needs.held", need.count)}</span>
      <span>${t("needs.until", { until: need.at ? dayTime(need.at, language()) : "" })}</span>
      <code>mimikit usage --set-daily</code>`,
    acts: html`<a class="button small" href="#/usage">${t("usage.open")}</a>`,
  }),
  paused: (need) => ({
    title: t("needs.paused"),
    meta: html`${need.count ? html`<span>${tn("needs.lateCount", need.count)}</span>` : nothing}
      <code>mimikit resume</code>`,
  }),
  degraded: (need) => ({ title: t("needs.degraded"), meta: html`<span>${reasonWords(need.error, need.why)}</span>` }),
  corrupt: (need) => ({
    title: tn("needs.corrupt", need.count),
    meta: html`<code>mimikit doctor</code>`,
  }),
  disk: (need) => ({
    title: t("needs.disk", { free: fileSize(need.count, language()) }),
    meta: html`<span>${t("needs.diskHint")}</span>`,
  }),
};

/** How loud each is: a red one keeps something from being done, an amber one waits. */
const LOUD = new Set(["consumer", "failure", "breaker", "broken", "corrupt", "disk"]);

/** What of `state.opened` shows the older failures. */
const FOLD = "fold-failures";

/** @param {Need[]} needs @param {State} state @param {Actions} act */
export function needsView(needs, state, act) {
  const failed = needs.filter((need) => need.kind === "failure");
  const ids = failed.map((need) => need.taskId ?? "");
  const { shown, folded } = foldFailures(needs, state.now);
  const end = shown.findLastIndex((need) => need.kind === "failure") + 1;
  const open = Boolean(state.opened[FOLD]);
  const view = (/** @type {Need[]} */ some) =>
    repeat(
      some,
      (need) => need.id,
      (need) => needView(need, state, act),
    );
  return html`<ul class="home-needs">
      ${view(shown.slice(0, end))}
      ${
        folded.length
          ? html`<li class="need">
              <button
                type="button"
                class="link"
                aria-expanded=${open ? "true" : "false"}
                @click=${() => act.cards.open(FOLD, !open)}
              >
                ${icon(open ? "chevron-down" : "chevron-right")}${tn("needs.older", folded.length)}
              </button>
            </li>`
          : nothing
      }
      ${open ? view(folded) : nothing} ${view(shown.slice(end))}
    </ul>
    ${
      failed.length > 2
        ? html`<div class="needs-all">
            ${button(t("needs.dismissAll"), () => act.home.dismiss(ids), false, "is-quiet")}
          </div>`
        : nothing
    }`;
}

/** @param {Need} need @param {State} state @param {Actions} act */
function needView(need, state, act) {
  const { title, meta = nothing, acts = nothing } = TOLD[need.kind](need, state, act);
  const sign = need.kind === "question" ? "s-asking" : LOUD.has(need.kind) ? "alert" : "clock";
  return html`<li class="need ${LOUD.has(need.kind) ? "is-loud" : ""}" data-need=${need.kind}>
    <span class="need-sign">${icon(sign)}</span>
    <div class="need-main">
      <p class="need-title">${title}</p>
      <p class="row-meta">${meta}</p>
      ${acts === nothing ? nothing : html`<div class="need-acts">${acts}</div>`}
    </div>
  </li>`;
}

/** @param {Need} need @param {State} state */
function when(need, state) {
  return need.at ? html`<span>${since(need.at, state.now)}</span>` : nothing;
}

/** @param {Need} need @param {"run" | "resume"} what @param {State} state @param {Actions} act */
function triggerButton(need, what, state, act) {
  const id = need.triggerId ?? "";
  const go = () => act.orderTrigger(id, what);
  return button(t(`triggers.${what}`), go, Boolean(state.pending[id]), "", "play");
}

/**
 * @param {string} label
 * @param {() => unknown} go
 * @param {boolean} busy
 * @param {string} [kind]
 * @param {string} [sign]
 */
function button(label, go, busy, kind = "", sign = "") {
  return html`<button type="button" class="small ${kind}" ?disabled=${busy} @click=${go}>
    ${sign ? icon(sign) : nothing}${label}
  </button>`;
}
