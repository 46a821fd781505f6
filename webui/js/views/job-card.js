/** What was asked for, as it is being done: one card, changed in place. */

import { html, icon, nothing, serverHtml } from "../html.js";
import { has, language, t, tn } from "../i18n.js";
import { jobOver } from "../job-state.js";
import { shown } from "../shown.js";
import { duration, elapsed } from "../time.js";
import { longView } from "./long.js";
import { clock, reasonWords, stateIcon } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").Job} Job
 * @typedef {import("../types.js").Step} Step
 * @typedef {import("../types.js").Message} Message
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../cards.js").CardEntry} CardEntry
 * @typedef {import("../cards.js").NewsEntry} NewsEntry
 */

/** Of a reason that says nothing the error has not said already. */
const PLAIN_REASONS = new Set(["error"]);

/** @param {CardEntry} entry @param {State} state @param {Actions} act */
export function cardView(entry, state, act) {
  const job = state.jobs[entry.jobId];
  const result = jobOver(job) ? resultOf(entry, job) : undefined;
  return html`<li class="work" id="row-${entry.key}" data-job=${job.id}>
    <article class="card is-${job.state}" aria-labelledby="title-${entry.key}">
      <div class="card-head">
        ${stateIcon(job.state)}
        <p class="card-title" id="title-${entry.key}" title=${job.title}><bdi>${shown(job.title)}</bdi></p>
        <span class="card-state">${stateView(job, state)}</span>
        ${actionsView(job, state, act)}
      </div>
      ${progressView(job)} ${failureView(job, entry, result)}
      ${result ? resultView(result, job, state, act) : nothing} ${stepsView(job, state, act)}
    </article>
  </li>`;
}

/** @param {Job} job @param {State} state  How far it is, and since when. */
function stateView(job, state) {
  const lang = language();
  const began = Date.parse(job.startedAt ?? job.createdAt);
  const words = job.state === "waiting" && job.waitsFor ? waitingFor(job.waitsFor) : t(`card.${job.state}`);
  if (!jobOver(job)) {
    const runs = job.state === "running" || job.state === "planning";
    const time = html`<span class="ticking" aria-hidden="true">${elapsed(state.now - began)}</span>`;
    return html`${words}${runs ? html` · ${time}` : nothing}`;
  }
  const ended = job.endedAt ? Date.parse(job.endedAt) : began;
  const took = job.startedAt ? duration(Math.max(0, ended - began), lang) : "";
  return html`${words}${took ? html` · <span class="ticking">${took}</span>` : nothing}`;
}

/** @param {string} what */
function waitingFor(what) {
  const of = /^budget:(day|trigger)$/.exec(what)?.[1];
  return of ? t(`card.tokens.${of}`) : t("card.waitsFor", { what });
}

/** @param {Job} job @param {State} state @param {Actions} act */
function actionsView(job, state, act) {
  const asked = Boolean(state.pending[job.id] || state.pending[job.failedTaskId ?? job.taskId]);
  const title = shown(job.title);
  const isLive = !jobOver(job);
  const retried = job.failedTaskId ?? job.taskId;
  const button = (/** @type {string} */ what, /** @type {string} */ sign, /** @type {() => void} */ act) =>
    html`<button
      type="button"
      class="link card-action is-${what}"
      ?disabled=${asked}
      aria-label=${t(`card.${what}Named`, { title })}
      @click=${act}
    >
      ${icon(sign)}<span>${t(`task.${what}`)}</span>
    </button>`;
  return html`<span class="card-actions">
    ${isLive ? button("cancel", "x", () => act.cards.cancel(job.id)) : nothing}
    ${job.state === "failed" || job.state === "canceled" ? button("retry", "retry", () => act.cards.retry(retried)) : nothing}
    <a class="card-open" href="#/task/${job.taskId}" aria-label=${t("card.openNamed", { title })} title=${t("card.open")}
      >${icon("chevron-right")}</a
    >
  </span>`;
}

/** @param {Job} job  While it runs: what it is at, and what it printed last. */
function progressView(job) {
  if (jobOver(job)) return nothing;
  // While it is planned they are a draft, of which the headline tells.
  const lines = job.state === "planning" ? [] : job.lines.filter((line) => line.trim());
  const headline = lines.includes(job.headline) ? "" : job.headline;
  if (!headline && !lines.length) return nothing;
  return html`<div class="card-progress">
    ${headline ? html`<p class="card-headline">${shown(headline)}</p>` : nothing}
    ${
      lines.length
        ? html`<div class="card-lines">${lines.map((line) => html`<div>${shown(line)}</div>`)}</div>`
        : nothing
    }
  </div>`;
}

/** @param {Job} job @param {CardEntry} entry @param {Message | undefined} result */
function failureView(job, entry, result) {
  if (job.state !== "failed") return nothing;
  const step = job.steps.findLast((one) => one.state === "failed");
  const reason = step?.failureReason ?? "error";
  const error = result ? "" : reasonWords(step?.error, step?.why); // the result tells it
  if (result && PLAIN_REASONS.has(reason)) return nothing;
  const why = has(`reason.${reason}`) ? t(`reason.${reason}`) : reason;
  return html`<p class="card-why">
    ${why}${error ? html`<span class="card-error">${shown(error)}</span>` : nothing}
  </p>`;
}

/** @param {CardEntry} entry @param {Job} job  What is told of it: of one that failed, its failure. */
function resultOf({ results }, { failedTaskId }) {
  const failure = results.findLast(({ taskIds }) => taskIds.includes(failedTaskId ?? ""));
  return failure ?? results.at(-1);
}

/** @param {Job} job */
const workOf = ({ steps }) => steps.filter(({ kind }) => kind === "work");

/** @param {Message} message @param {Job} job @param {State} state @param {Actions} act */
function resultView(message, job, state, act) {
  // What it begins with is the card's own head, unless it tells of one of several.
  const named = message.taskIds.length === 1 && workOf(job).length < 2 ? "is-headed" : "";
  const body = message.html
    ? html`<div class="prose card-text ${named}" ${serverHtml(message.html)}></div>`
    : html`<div class="plain card-text">${shown(message.text)}</div>`;
  return html`<div class="card-result" id="m-${message.id}">
    ${longView(body, message, state, act, true)}
  </div>`;
}

/** @param {Job} job @param {State} state @param {Actions} act */
function stepsView(job, state, act) {
  const steps = job.steps.filter((step) => step.kind === "work" || job.steps.length > 1);
  if (steps.length < 2) return nothing;
  const key = `steps-${job.id}`;
  const open = Boolean(state.opened[key]);
  const done = steps.filter((step) => step.state === "done").length;
  const label = done < steps.length ? t("card.stepsOf", { done, n: steps.length }) : tn("card.steps", steps.length);
  return html`<div class="card-steps">
    <button
      type="button"
      class="link"
      aria-expanded=${open ? "true" : "false"}
      @click=${() => act.cards.open(key, !open)}
    >
      ${icon(open ? "chevron-down" : "chevron-right")}${label}
    </button>
    ${open ? html`<ol class="steps">${steps.map((step) => stepView(step, state))}</ol>` : nothing}
  </div>`;
}

/** @param {Step} step @param {State} state */
function stepView(step, state) {
  const began = step.startedAt ? Date.parse(step.startedAt) : null;
  const ended = step.endedAt ? Date.parse(step.endedAt) : null;
  const runs = step.state === "running" && began !== null;
  const took =
    began === null ? "" : runs ? elapsed(state.now - began) : duration((ended ?? began) - began, language());
  const title = step.kind === "plan" ? t("card.plan") : shown(step.title);
  return html`<li>
    <a class="step" href="#/task/${step.id}">
      ${stateIcon(step.state)}<span class="step-title"><bdi>${title}</bdi></span>
      <span class="step-time ticking">${took}</span>
    </a>
  </li>`;
}

/** @param {NewsEntry} entry @param {State} state @param {Actions} act */
export function newsView(entry, state, act) {
  const job = state.jobs[entry.jobId];
  const outcome = jobOver(job) ? job.state : "done";
  return html`<li class="work is-news" id="row-${entry.key}">
    <button type="button" class="work-news is-${outcome}" @click=${() => act.hands.showRow(`job-${job.id}`)}>
      ${stateIcon(outcome)}<span class="news-title"><bdi>${shown(job.title)}</bdi></span>
      <span class="muted">${t(`card.${outcome}`)} · ${clock(entry.at)}</span>${icon("up")}
    </button>
  </li>`;
}

/** @param {string} jobId @param {State} state @param {Actions} act  From what was said of it to its card. */
export function cardLink(jobId, state, act) {
  const job = state.jobs[jobId];
  if (!job) return nothing;
  return html`<button type="button" class="link card-link" @click=${() => act.hands.showRow(`job-${jobId}`)}>
    ${stateIcon(job.state)}<bdi>${shown(job.title)}</bdi>
  </button>`;
}
