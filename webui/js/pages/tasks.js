/** The list of jobs: what runs, what waits, what has ended, down to the very first. */

import { html, nothing, repeat } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { CHIPS, isLive, jobGroups, totalOf } from "../core/jobs.js";
import { shown } from "../core/shown.js";
import { count } from "../core/time.js";
import * as parts from "../ui/parts.js";
import { button, word } from "../ui/parts.js";
import { jobMeta, runsList, runsMeta } from "./job.js";

/** @param {State} state @param {Actions} act */
export function tasksView(state, act) {
  const { list, totals, load } = state;
  if (load === "failed") return parts.failedView(() => act.session.load(), state.loadError);
  if (load === "loading") return parts.loading(t("tasks.loading"));
  const title = html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.tasks")}</h2>`;
  if (!totalOf(totals, "all")) {
    return html`${title}${parts.emptyState(t("tasks.empty"), t("tasks.emptyText"))}`;
  }
  const groups = Object.entries(jobGroups(state)).filter(([, jobs]) => jobs.length);
  const none = !groups.length && list.load === "ready";
  const failed = list.load === "failed";
  const more = button(t("tasks.loadMore"), () => act.moreJobs(), { sign: "down" });
  return html`${title} ${filterView(state, act)}
  ${groups.map(([name, jobs]) => {
    const rows = repeat(jobs, (job) => job.id, (job) => rowView(job, state, act));
    return parts.groupView(name, t(`tasks.${name}`), rows);
  })}
  ${none ? html`<p class="group-none">${t("tasks.none")}</p>` : nothing}
  ${failed ? html`<p class="error-text">${t("load.failed")}</p>` : nothing}
  ${list.before || failed ? more : nothing}`;
}

/** @param {State} state @param {Actions} act */
function filterView({ list, totals }, act) {
  const total = (/** @type {string} */ chip) =>
    chip === "trigger"
      ? nothing
      : html` <span class="group-count">${count(totalOf(totals, chip), language())}</span>`;
  const chipButton = (/** @type {string} */ chip) => {
    const look = { look: "chip", pressed: chip === list.chip };
    return button(html`${t(`chip.${chip}`)}${total(chip)}`, () => act.filterJobs({ chip }), look);
  };
  return html`<div class="job-filter">
    <input
      type="search"
      aria-label=${t("tasks.filter")}
      placeholder=${t("tasks.filter")}
      .value=${list.q}
      @input=${parts.typing((q) => act.filterJobs({ q }))}
    />
    <div class="chips" role="group" aria-label=${t("tasks.filter")}>
      ${Object.keys(CHIPS).map(chipButton)}
    </div>
  </div>`;
}

/** @param {Job} job @param {State} state @param {Actions} act */
function rowView(job, state, act) {
  const { id, kind, taskId, title, profile, failureReason, outcome } = job;
  const what = isLive(job) ? "cancel" : "retry";
  const runs = kind === "trigger";
  const failed = job.state === "failed";
  const expanded = runs && Boolean(state.runs[id]?.open);
  const why = failed ? word("reason", failureReason) : "";
  const [line = ""] = runs && outcome ? (outcome.error || outcome.text).split("\n", 1) : [];
  const headline = job.headline || (line === title ? "" : line);
  const meta = html`${runs ? runsMeta(job) : jobMeta(job, state)}<span>${word("profile", profile)}</span>
    ${why && html`<span class="error-text">${why}</span>`}
    ${headline && html`<span class="row-headline">${headline}</span>`}`;
  const main = parts.rowMain(parts.stateIcon(job.state), shown(title), meta);
  const more = { off: Boolean(state.pending[taskId]), title: t(`task.${what}`) };
  const sign = what === "cancel" ? "x" : "retry";
  const order = () => act.orderJob(job, what);
  const link = runs
    ? button(main, () => act.toggleRuns(id), { look: "row-link", expanded })
    : html`<a class="row-link" href="#/task/${taskId}">${main}</a>`;
  const orders = isLive(job) || failed;
  return html`<li class="row is-${job.state}" data-task=${taskId}>
      ${link} ${orders ? parts.iconButton(sign, t(`task.${what}Named`, { title }), order, more) : nothing}
    </li>
    ${expanded ? html`<li class="row-runs">${runsList(job, state, act)}</li>` : nothing}`;
}
