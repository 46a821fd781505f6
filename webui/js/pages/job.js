/** A job as a card in the chat; all runs of a trigger as one line. */

import { html, nothing, serverHtml } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { isLive } from "../core/jobs.js";
import { shown } from "../core/shown.js";
import { count, duration, elapsed } from "../core/time.js";
import { engineWhy } from "../ui/banners.js";
import { ago, button, clock, failureWords, since, stamped, stateIcon, word } from "../ui/parts.js";

/** @param {{job: Job, told: boolean}} entry @param {State} state @param {Actions} act */
export function jobCard({ job, told }, state, act) {
  const { steps, headline, tail } = job;
  return html`<li class="job is-${job.state}" id="job-${job.id}">
    ${stateIcon(job.state)}
    <div class="job-body">
      <p class="job-head">
        <a class="job-title" href="#/task/${job.taskId}" dir="auto">${shown(job.title)}</a>
        <span class="job-meta">${jobMeta(job, state)}</span>
      </p>
      ${headline ? html`<p class="job-headline">${headline}</p>` : nothing}
      ${tail ? html`<pre class="job-text" dir="auto">${shown(tail)}</pre>` : nothing}
      ${steps.length > 1 ? html`<ol class="job-steps">${steps.map(stepView)}</ol>` : nothing}
      ${told && job.state === "done" ? nothing : outcomeView(job)}
      <p class="job-actions">${buttonsView(job, state, act)}</p>
    </div>
  </li>`;
}

/** @param {JobStep} step */
function stepView({ id, state, title, pending }) {
  const href = `#/${pending ? "trigger" : "task"}/${id}`;
  const sign = stateIcon(pending ? "waiting" : state);
  return html`<li>${sign}<a href=${href} dir="auto">${shown(title)}</a></li>`;
}

/** @param {Job} job @param {State} state @param {Actions} act */
function buttonsView(job, state, act) {
  const what = isLive(job) ? "cancel" : "retry";
  const off = Boolean(state.pending[job.taskId]);
  const order = button(t(`task.${what}`), () => act.orderJob(job, what), { look: "link", off });
  return html`${job.state === "done" ? nothing : order}
    <a class="link" href="#/task/${job.taskId}">${t("job.open")}</a>`;
}

/** @param {Job} job  Its result, or why it failed and what it printed: once. */
export function outcomeView({ outcome }) {
  if (!outcome || outcome.state === "canceled") return nothing;
  const { cut, error, exitCode, failureReason, state, taskId } = outcome;
  const why = failureWords(failureReason, exitCode);
  const more = t("job.cut", { n: count(cut, language()) });
  const failed = state === "failed";
  return html`${failed ? html`<p class="error-text">${why}</p>` : nothing}
    ${error ? html`<pre class="job-text" dir="auto">${shown(error)}</pre>` : nothing}
    ${outcome.html ? html`<div class="prose" ${serverHtml(outcome.html)}></div>` : nothing}
    ${cut ? html`<p class="job-actions"><a class="link" href="#/task/${taskId}">${more}</a></p>` : nothing}`;
}

/** @param {Job} job @param {State} state  How long it takes, what it waits for, or when it ended. */
export function jobMeta(job, state) {
  const { now } = state;
  const { askedAt, startedAt, notBefore, waitsFor } = job;
  if (job.state === "running" || job.state === "planning") {
    const ms = Math.max(0, now - Date.parse(startedAt ?? askedAt));
    const plans = job.state === "planning" ? html`<span>${t("state.planning")}</span>` : nothing;
    return html`${plans}<span class="ticking">${elapsed(ms)}</span>`;
  }
  if (isLive(job)) {
    if (waitsFor) return html`<span>${waitWords(waitsFor, state)}</span>`;
    if (notBefore && Date.parse(notBefore) > now) {
      return html`<span>${t("tasks.notBefore")} ${ago(notBefore, now)}</span>`;
    }
    return html`<span>${word("state", job.state)} · ${since(askedAt, now)}</span>`;
  }
  const ended = job.endedAt ?? askedAt;
  const ran = startedAt ? Date.parse(ended) - Date.parse(startedAt) : 0;
  return html`<span>${since(ended, now)}</span>${
    ran > 0 ? html`<span>${duration(ran, language())}</span>` : nothing
  }`;
}

/** @param {string} what @param {State} state  An engine, or tokens: in words. */
function waitWords(what, state) {
  const [, of] = /^budget:(day|trigger)$/.exec(what) ?? [];
  if (of) return t(`tasks.tokens.${of}`);
  const awaited = state.status?.byEngine[what];
  const why = awaited?.state === "waiting" ? t("tasks.waits", { why: engineWhy(awaited, state) }) : "";
  return why || t("tasks.waitsFor", { engine: what });
}

/** @param {Job} job  Of a trigger: how often, when last, how often otherwise. */
export function runsMeta({ runs, endedAt, changes, failures }) {
  return html`<span>${tn("job.runs", runs)}</span>${
    endedAt ? html`<span>${t("job.last")} ${clock(endedAt)}</span>` : nothing
  }${changes ? html`<span>${t("job.changed", { n: changes })}</span>` : nothing}${
    failures ? html`<span class="error-text">${t("job.failed", { n: failures })}</span>` : nothing
  }`;
}

/** @param {Job} job @param {string} messageId @param {State} state @param {Actions} act */
export function runsLine(job, messageId, state, act) {
  const expanded = Boolean(state.runs[job.id]?.open);
  const failed = job.state === "failed";
  const paused = state.triggers[job.id]?.enabled === false;
  const toggle = () => act.toggleRuns(job.id);
  return html`<li class="job is-line is-${job.state}" id="m-${messageId}" data-runs=${job.id}>
    ${stateIcon(job.state)}
    <div class="job-body">
      <p class="job-head">
        ${button(shown(job.title), toggle, { look: "link job-title", expanded })}
        <span class="job-meta"
          >${runsMeta(job)}${paused ? html`<span>${t("state.paused")}</span>` : nothing}</span
        >
      </p>
      <div class=${failed || expanded ? nothing : "job-begin"}>${outcomeView(job)}</div>
      ${failed ? html`<p class="job-actions">${buttonsView(job, state, act)}</p>` : nothing}
      ${expanded ? runsList(job, state, act) : nothing}
    </div>
  </li>`;
}

/** @param {Job} job @param {State} state @param {Actions} act  Each run, the newest first. */
export function runsList({ id }, state, act) {
  const { jobs, before } = state.runs[id] ?? { jobs: [], before: null };
  const more = button(t("tasks.loadMore"), () => act.moreRuns(id), { look: "link" });
  return html`<ol class="job-steps">
      ${jobs.map(runView)}
    </ol>
    <p class="job-actions">
      ${before ? more : nothing} <a class="link" href="#/trigger/${id}">${t("task.trigger")}</a>
    </p>`;
}

/** @param {Job} run */
function runView({ state, taskId, endedAt, askedAt, failureReason }) {
  const why = state === "failed" ? word("reason", failureReason) : "";
  return html`<li>
    ${stateIcon(state)}<a href="#/task/${taskId}">${stamped(endedAt ?? askedAt)}</a>
    ${why ? html`<span class="error-text">${why}</span>` : nothing}
  </li>`;
}
