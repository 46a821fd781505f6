/** The list of work: what runs, what waits, what has ended, to the very first; each with its steps. */

import { html, icon, live, nothing, repeat } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { jobOver } from "../job-state.js";
import { WORK_STATES, listHash } from "../lists.js";
import { count, duration, elapsed } from "../time.js";
import { workCounts, workGroups } from "../work-state.js";
import { mindWhy } from "./banners.js";
import { ago, emptyState, loading, since, stateIcon, triggerTitle, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../state-types.js").ListFilter} ListFilter
 * @typedef {import("../types.js").Job} Job
 * @typedef {import("../types.js").Step} Step
 * @typedef {import("../actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function tasksView(state, act) {
  if (state.load === "failed") {
    return emptyState(t("load.failed"), state.loadError, againView(() => act.session.load()));
  }
  if (state.load === "loading") return loading(t("tasks.loading"));
  const { work } = state;
  const filter = state.route.view === "tasks" ? state.route : {};
  const title = html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.tasks")}</h2>`;
  const isNarrowed = Boolean(filter.state || filter.trigger || filter.q);
  const counts = workCounts(work.counts);
  const nothingYet = work.load === "ready" && !work.jobs.length && !counts[""] && !isNarrowed;
  if (nothingYet) return html`${title}${emptyState(t("tasks.empty"), t("tasks.emptyText"))}`;
  return html`${title}${filtersView(filter, counts, state, act)} ${listView(filter, state, act)}`;
}

/** @param {() => unknown} again */
function againView(again) {
  return html`<button type="button" class="small" @click=${again}>
    ${icon("retry")}${t("load.again")}
  </button>`;
}

/** @param {ListFilter} filter @param {Record<string, number>} counts @param {State} state @param {Actions} act */
function filtersView(filter, counts, state, act) {
  const { state: chosen = "", ...others } = filter;
  const known = state.work.load === "ready";
  return html`<nav class="kinds" aria-label=${t("tasks.filter")}>
      ${WORK_STATES.map(
        (name) =>
          html`<a
            href=${listHash("tasks", { ...others, state: name })}
            aria-current=${name === chosen ? "true" : "false"}
            >${t(`tasks.filter.${name || "all"}`)}${
              known ? html` <span class="group-count">${count(counts[name], language())}</span>` : nothing
            }</a
          >`,
      )}
    </nav>
    <div class="list-head">
      ${filter.trigger ? nothing : searchView(filter, act)} ${triggerView(filter, state, act)}
    </div>`;
}

/** @param {ListFilter} filter @param {Actions} act */
function searchView(filter, act) {
  return html`<label class="list-search">
    <span class="sr-only">${t("tasks.search")}</span>${icon("search")}<input
      type="search"
      maxlength="200"
      placeholder=${t("tasks.search")}
      .value=${live(filter.q ?? "")}
      @input=${(/** @type {any} */ event) =>
        act.narrow("tasks", { ...filter, q: event.target.value })}
    />
  </label>`;
}

/** @param {ListFilter} filter @param {State} state @param {Actions} act  Whose runs are shown. */
function triggerView({ trigger = "", ...filter }, state, act) {
  const triggers = Object.values(state.triggers).filter((one) => one.fireCount || one.id === trigger);
  if (!triggers.length && !trigger) return nothing;
  const gone = trigger && !state.triggers[trigger] ? [trigger] : [];
  const choose = (/** @type {any} */ event) => {
    const to = { state: filter.state, trigger: event.target.value };
    act.go({ view: "tasks", ...to });
  };
  return html`<label class="list-by">
    <span class="sr-only">${t("tasks.by")}</span>
    <select @change=${choose}>
      <option value="" ?selected=${!trigger}>${t("tasks.byAll")}</option>
      ${triggers.map(
        (one) =>
          html`<option value=${one.id} ?selected=${one.id === trigger}>${triggerTitle(one)}</option>`,
      )}
      ${gone.map((id) => html`<option value=${id} selected>${id}</option>`)}
    </select>
  </label>`;
}

/** @param {ListFilter} filter @param {State} state @param {Actions} act */
function listView(filter, state, act) {
  const { work } = state;
  if (work.load === "failed") {
    return emptyState(t("load.failed"), work.error ?? "", againView(() => act.hands.reloadWork()));
  }
  if (work.load !== "ready") return loading(t("tasks.loading"));
  const groups = workGroups(work, filter.trigger ? {} : state.jobs);
  if (!work.jobs.length) {
    const all = html`<a class="button small" href="#/tasks">${t("tasks.showAll")}</a>`;
    return emptyState(t("tasks.none"), "", all);
  }
  return html`${groups.map(({ name, jobs }) => groupView(name, jobs, filter, state, act))}
  ${work.before ? olderView(state, act) : nothing}`;
}

/** @param {State} state @param {Actions} act */
function olderView({ work }, act) {
  const busy = work.older === "loading";
  const left = work.total - work.jobs.length;
  return html`<div class="list-older">
    ${work.older === "failed" ? html`<p class="error-text">${t("load.failed")}</p>` : nothing}
    <button type="button" ?disabled=${busy} @click=${() => act.hands.loadWork()}>
      ${busy ? html`<span class="spinner"></span>` : icon("down")}
      ${left > 0 ? tn("tasks.older", left) : t("tasks.olderSome")}
    </button>
  </div>`;
}

/** @param {string} name @param {Job[]} jobs @param {ListFilter} filter @param {State} state @param {Actions} act */
function groupView(name, jobs, filter, state, act) {
  const idle = name === "running" && !filter.state && !filter.q && !filter.trigger;
  if (!jobs.length && !idle) return nothing;
  return html`<section class="group" data-group=${name}>
    <h3>${t(`tasks.${name}`)}</h3>
    ${
      jobs.length
        ? html`<ul class="rows">
            ${repeat(
              jobs,
              (job) => job.id,
              (job) => rowView(job, state, act),
            )}
          </ul>`
        : html`<p class="group-none">${t("tasks.runningNone")}</p>`
    }
  </section>`;
}

/** @param {Job} job @param {State} state @param {Actions} act */
function rowView(job, state, act) {
  const open = Boolean(state.work.open[job.id]);
  const shown = job.state === "waiting" ? "queued" : job.state === "planning" ? "running" : job.state;
  return html`<li class="work-row" data-job=${job.id}>
    <div class="row is-${shown}">
      <a class="row-link" href="#/task/${job.taskId}">
        ${stateIcon(shown)}
        <span class="row-main">
          <span class="row-title">${job.title}</span>
          <span class="row-meta">${metaView(job, state)}</span>
        </span>
      </a>
      ${foldView(job, open, act)} ${actionView(job, state, act)}
    </div>
    ${open && job.kind === "request" ? stepsView(job, state) : nothing}
  </li>`;
}

/** @param {Job} job @param {boolean} open @param {Actions} act  Its steps, or its runs. */
function foldView(job, open, act) {
  if (job.kind === "trigger" && job.total > 1) {
    return html`<a class="row-fold" href=${listHash("tasks", { trigger: job.id })}
      >${tn("tasks.runs", job.total)}${icon("chevron-right")}</a
    >`;
  }
  if (job.kind !== "request" || job.total < 2) return nothing;
  return html`<button
    type="button"
    class="link row-fold"
    aria-expanded=${open ? "true" : "false"}
    aria-label=${t("tasks.stepsOf", { n: job.total, title: job.title })}
    @click=${() => act.tasks.openSteps(job, !open)}
  >
    ${tn("tasks.steps", job.total)}${icon(open ? "chevron-down" : "chevron-right")}
  </button>`;
}

/** @param {Job} job @param {State} state @param {Actions} act */
function actionView(job, state, act) {
  const over = jobOver(job);
  const isWhole = job.kind !== "firing"; // a firing in the list of its trigger's is a task
  const target = over ? job.failedTaskId : isWhole ? job.id : job.taskId;
  if (!target || (over && job.state !== "failed")) return nothing;
  const what = over ? "retry" : "cancel";
  const busy = Boolean(state.pending[target]);
  return html`<button
    type="button"
    class="icon-button small row-action"
    ?disabled=${busy}
    aria-label=${t(`task.${what}Named`, { title: job.title })}
    title=${t(`task.${what}`)}
    @click=${() => (over || !isWhole ? act.order(target, what) : act.cancelJob(target))}
  >
    ${busy ? html`<span class="spinner"></span>` : icon(over ? "retry" : "x")}
  </button>`;
}

/** @param {Job} job @param {State} state */
function metaView(job, state) {
  if (job.state === "waiting") return html`<span>${waitWords(job, state)}</span>`;
  if (!jobOver(job)) return runningView(job, state);
  const failed = job.steps.findLast((step) => step.state === "failed");
  const ran = job.startedAt && job.endedAt ? Date.parse(job.endedAt) - Date.parse(job.startedAt) : null;
  const isOne = job.state === "failed" && job.kind !== "trigger"; // of a trigger it says how often
  const of = failed && failed.title !== job.title && failed.kind === "work" ? `${failed.title}: ` : "";
  const why = isOne ? of + (word("reason", failed?.failureReason) || t("state.failed")) : "";
  return html`<span>${since(job.endedAt ?? job.createdAt, state.now)}</span>${
      ran === null ? nothing : html`<span>${duration(ran, language())}</span>`
    }${why ? html`<span class="error-text">${why}</span>` : nothing}${todayView(job)}`;
}

/** @param {Job} job @param {State} state */
function runningView(job, state) {
  const began = Date.parse(job.startedAt ?? job.createdAt);
  const said = job.lines.at(-1) || job.headline;
  return html`${
      job.state === "asking"
        ? html`<span class="asks">${t("state.asking")}</span>`
        : html`<span class="ticking">${elapsed(Math.max(0, state.now - began))}</span>`
    }${job.state === "planning" ? html`<span>${t("tasks.planning")}</span>` : nothing}${
      job.kind === "request" && job.total > 1
        ? html`<span>${t("tasks.doneOf", { n: job.counts.done, all: job.total })}</span>`
        : nothing
    }${said ? html`<span class="row-headline">${said}</span>` : nothing}`;
}

/** @param {Job} job  Of a trigger: what came of its runs today. */
function todayView({ kind, counts, changed }) {
  if (kind !== "trigger") return nothing;
  return html`${
    counts.failed ? html`<span class="error-text">${tn("tasks.failedToday", counts.failed)}</span>` : nothing
  }${changed ? html`<span>${tn("tasks.changedToday", changed)}</span>` : nothing}`;
}

/** @param {{waitsFor: string | null, notBefore?: string | null, createdAt?: string}} of @param {State} state */
export function waitWords({ waitsFor, notBefore, createdAt }, state) {
  if (waitsFor) {
    const [, tokens] = /^budget:(day|trigger)$/.exec(waitsFor) ?? [];
    if (tokens) return t(`tasks.tokens.${tokens}`);
    const awaited = state.status?.minds[waitsFor];
    const why = awaited?.state === "waiting" ? mindWhy(awaited, state) : "";
    return why ? t("tasks.waits", { why }) : t("tasks.waitsFor", { engine: waitsFor });
  }
  if (notBefore && Date.parse(notBefore) > state.now) {
    return html`${t("tasks.notBefore")} ${ago(notBefore, state.now)}`;
  }
  return html`${t("tasks.inLine")} ${createdAt ? since(createdAt, state.now) : nothing}`;
}

/** @param {Job} job @param {State} state */
function stepsView(job, state) {
  const whole = state.work.whole[job.id];
  const all = whole && whole.steps.length > job.steps.length ? whole.steps : job.steps;
  return html`<ol class="steps">
    ${all.map((step) => stepView(step, null, state))}
  </ol>`;
}

/** @param {Step} step @param {string | null} own the one that is looked at @param {State} state */
export function stepView(step, own, state) {
  const title = step.kind === "plan" ? t("steps.plan") : step.title;
  const isTask = step.startedAt || step.endedAt || state.tasks[step.id] || step.waitsFor;
  const href = isTask || !state.triggers[step.id] ? `#/task/${step.id}` : `#/trigger/${step.id}`;
  return html`<li class="step">
    <a href=${href} aria-current=${step.id === own ? "true" : "false"}
      >${stateIcon(step.state)}<span class="row-title" title=${title}>${title}</span
      ><span class="step-time">${stepTime(step, state)}</span></a
    >
  </li>`;
}

/** @param {Step} step @param {State} state */
function stepTime(step, state) {
  const { startedAt, endedAt } = step;
  if (step.state === "failed" && step.failureReason) {
    return html`<span class="error-text">${word("reason", step.failureReason)}</span>`;
  }
  if (startedAt && endedAt) return duration(Date.parse(endedAt) - Date.parse(startedAt), language());
  if (startedAt) {
    return html`<span class="ticking">${elapsed(Math.max(0, state.now - Date.parse(startedAt)))}</span>`;
  }
  if (step.waitsFor) return waitWords(step, state);
  return word("state", step.state === "queued" ? "waiting" : step.state);
}
