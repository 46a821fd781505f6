/** The list of jobs: what runs, what waits, what has ended, down to the very first. */

import { html, nothing, repeat } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { CHIPS, isLive, jobGroups, totalOf } from "../core/jobs.js";
import { shown } from "../core/shown.js";
import { count } from "../core/time.js";
import { button, emptyState, failedView, iconButton, loading, stateIcon, word } from "../ui/parts.js";
import { jobMeta, runsList, runsMeta } from "./job.js";

/** @param {State} state @param {Actions} act */
export function tasksView(state, act) {
  if (state.load === "failed") return failedView(() => act.session.load(), state.loadError);
  if (state.load === "loading") return loading(t("tasks.loading"));
  const title = html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.tasks")}</h2>`;
  const { list, totals } = state;
  if (!totalOf(totals, "all")) {
    return html`${title}${emptyState(t("tasks.empty"), t("tasks.emptyText"))}`;
  }
  const groups = jobGroups(state);
  const none = !groups.running.length && !groups.queued.length && !groups.ended.length;
  return html`${title} ${filterView(state, act)}
  ${groupView("running", groups.running, state, act)} ${groupView("queued", groups.queued, state, act)}
  ${groupView("ended", groups.ended, state, act)}
  ${none && list.load === "ready" ? html`<p class="group-none">${t("tasks.none")}</p>` : nothing}
  ${list.load === "failed" ? html`<p class="error-text">${t("load.failed")}</p>` : nothing}
  ${
    list.before || list.load === "failed"
      ? button(t("tasks.loadMore"), () => act.moreJobs(), { sign: "down" })
      : nothing
  }`;
}

/** @param {State} state @param {Actions} act */
function filterView({ list, totals }, act) {
  return html`<div class="job-filter">
    <input
      type="search"
      aria-label=${t("tasks.filter")}
      placeholder=${t("tasks.filter")}
      .value=${list.q}
      @input=${(/** @type {any} */ event) => act.filterJobs({ q: event.target.value })}
    />
    <div class="chips" role="group" aria-label=${t("tasks.filter")}>
      ${Object.keys(CHIPS).map(
        (chip) =>
          html`<button
            type="button"
            class="chip"
            aria-pressed=${chip === list.chip ? "true" : "false"}
            @click=${() => act.filterJobs({ chip })}
          >
            ${t(`chip.${chip}`)}${
              chip === "trigger"
                ? nothing
                : html` <span class="group-count">${count(totalOf(totals, chip), language())}</span>`
            }
          </button>`,
      )}
    </div>
  </div>`;
}

/** @param {"running" | "queued" | "ended"} name @param {Job[]} jobs @param {State} state @param {Actions} act */
function groupView(name, jobs, state, act) {
  if (!jobs.length) return nothing;
  return html`<section class="group" data-group=${name}>
    <h3>${t(`tasks.${name}`)}</h3>
    <ul class="rows">
      ${repeat(
        jobs,
        (job) => job.id,
        (job) => rowView(job, state, act),
      )}
    </ul>
  </section>`;
}

/** @param {Job} job @param {State} state @param {Actions} act */
function rowView(job, state, act) {
  const { taskId } = job;
  const busy = Boolean(state.pending[taskId]);
  const what = isLive(job) ? "cancel" : "retry";
  const runs = job.kind === "trigger";
  const open = runs && state.runs[job.id]?.open;
  const words = job.headline || (runs && (job.outcome?.error || job.outcome?.text)?.split("\n", 1)[0]);
  const main = html`${stateIcon(job.state)}
    <span class="row-main">
      <span class="row-title" dir="auto">${shown(job.title)}</span>
      <span class="row-meta"
        >${runs ? runsMeta(job) : jobMeta(job, state)}<span>${word("profile", job.profile)}</span>${
          job.state === "failed"
            ? html`<span class="error-text">${word("reason", job.failureReason)}</span>`
            : nothing
        }${words ? html`<span class="row-headline">${words}</span>` : nothing}</span
      >
    </span>`;
  return html`<li class="row is-${job.state}" data-task=${taskId}>
      ${
        runs
          ? html`<button
              type="button"
              class="row-link"
              aria-expanded=${open ? "true" : "false"}
              @click=${() => act.toggleRuns(job.id)}
            >
              ${main}
            </button>`
          : html`<a class="row-link" href="#/task/${taskId}">${main}</a>`
      }
      ${
        isLive(job) || job.state === "failed"
          ? iconButton(
              what === "cancel" ? "x" : "retry",
              t(`task.${what}Named`, { title: job.title }),
              () => act.orderJob(job, what),
              { off: busy, title: t(`task.${what}`) },
            )
          : nothing
      }
    </li>
    ${open ? html`<li class="row-runs">${runsList(job, state, act)}</li>` : nothing}`;
}
