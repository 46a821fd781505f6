/** What the runs of a trigger told: one line, and each of them when one asks. */

import { errorLine, lastLine } from "../cards.js";
import { html, icon, nothing, serverHtml } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { shown } from "../shown.js";
import { clockTime, dayKey } from "../time.js";
import { longView } from "./long.js";
import { clock, stamped, stateIcon } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").Job} Job
 * @typedef {import("../types.js").Message} Message
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../cards.js").FoldEntry} FoldEntry
 */

/** @param {FoldEntry} entry @param {State} state @param {Actions} act */
export function foldView(entry, state, act) {
  const { message } = entry;
  const id = message.triggerId ?? "";
  const job = entry.isLast ? state.jobs[id] : undefined;
  const open = Boolean(state.opened[entry.key]);
  const title = titleOf(id, state);
  const isTold = message.role === "agent"; // said by a mind, to be read
  return html`<li class="work is-fold" id="row-${entry.key}" data-trigger=${id}>
    ${failedView(job, title, state, act)}
    <button
      type="button"
      class="fold"
      aria-expanded=${open ? "true" : "false"}
      @click=${(/** @type {Event} */ event) => act.cards.openFold(entry, !open, event)}
    >
      ${icon("trigger")}<span class="fold-title"><bdi>${shown(title)}</bdi></span>
      <span class="fold-facts">${factsOf(entry, job, state)}</span>
      ${open || isTold ? nothing : html`<span class="fold-last"><bdi>${shown(lastLine(message.text))}</bdi></span>`}
      ${icon(open ? "chevron-down" : "chevron-right")}
    </button>
    ${isTold && !open ? toldView(message, state, act) : nothing}
    ${open ? firingsView(entry, id, state, act) : nothing}
  </li>`;
}

/** @param {string} id @param {State} state */
function titleOf(id, state) {
  return state.jobs[id]?.title || state.triggers[id]?.title || t("fold.untitled");
}

/** @param {FoldEntry} entry @param {Job | undefined} job @param {State} state */
function factsOf(entry, job, state) {
  const lang = language();
  const isToday = job?.lastAt && dayKey(job.lastAt) === dayKey(state.now);
  if (!job || !isToday) {
    const [from, to] = [clockTime(entry.since, lang), clockTime(entry.at, lang)];
    const span = from === to ? to : `${from}–${to}`;
    return `${tn("fold.told", entry.told)} · ${span}`;
  }
  const { running, done, failed, canceled } = job.counts;
  const runs = running + done + failed + canceled;
  const parts = [tn("fold.runs", runs)];
  parts.push(t("fold.last", { at: clockTime(/** @type {string} */ (job.lastAt), lang) }));
  if (job.changed) parts.push(tn("fold.changed", job.changed));
  return parts.join(" · ");
}

/** @param {Job | undefined} job @param {string} title @param {State} state @param {Actions} act */
function failedView(job, title, state, act) {
  const id = job?.failedTaskId;
  if (!job || !id) return nothing;
  const told = state.messages.findLast((one) => one.taskIds.includes(id));
  const why = told ? errorLine(told.text) : "";
  const failed = job.counts.failed;
  return html`<div class="fold-failed" role="group" aria-label=${t("fold.failedNamed", { title })}>
    ${stateIcon("failed")}
    <span class="fold-failed-text"
      ><strong>${failed > 1 ? tn("fold.failures", failed) : t("card.failed")}</strong>
      ${told ? clock(told.createdAt) : nothing} ${why ? html`<span class="fold-why"><bdi>${shown(why)}</bdi></span>` : nothing}</span
    >
    <span class="card-actions">
      <button
        type="button"
        class="link card-action is-retry"
        ?disabled=${Boolean(state.pending[id])}
        aria-label=${t("card.retryNamed", { title })}
        @click=${() => act.cards.retry(id)}
      >
        ${icon("retry")}<span>${t("task.retry")}</span>
      </button>
      <a class="card-open" href="#/task/${id}" aria-label=${t("card.openNamed", { title })} title=${t("card.open")}
        >${icon("chevron-right")}</a
      >
    </span>
  </div>`;
}

/** @param {Message} message @param {State} state @param {Actions} act */
function toldView(message, state, act) {
  const body = html`<div class="prose" ${serverHtml(message.html ?? "")}></div>`;
  return html`<div class="fold-told" id="m-${message.id}">${longView(body, message, state, act)}</div>`;
}

/** @param {FoldEntry} entry @param {string} id @param {State} state @param {Actions} act */
function firingsView(entry, id, state, act) {
  const firings = state.firings[entry.key];
  const messages = firings?.messages.length ? firings.messages : [entry.message];
  return html`<div class="firings">
    <ol>
      ${messages.map((message) => firingView(message))}
    </ol>
    <div class="firings-foot">
      ${
        firings?.before
          ? html`<button type="button" class="link" @click=${() => act.cards.loadFirings(entry)}>
              ${t(firings.load === "failed" ? "fold.failedToLoad" : "fold.earlier")}
            </button>`
          : nothing
      }
      ${firings?.load === "loading" ? html`<span class="spinner"></span>` : nothing}
      <a class="link" href="#/trigger/${id}">${icon("trigger")}${t("fold.trigger")}</a>
    </div>
  </div>`;
}

/** @param {Message} message */
function firingView(message) {
  const words = html`${stamped(message.createdAt)}<span class="firing-text"
      ><bdi>${shown(lastLine(message.text))}</bdi></span
    >`;
  const [task] = message.taskIds;
  return html`<li>
    ${task ? html`<a class="firing" href="#/task/${task}">${words}${icon("chevron-right")}</a>` : html`<span class="firing">${words}</span>`}
  </li>`;
}
