/** The list of tasks: what runs, what waits, what has ended. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { queueLength, taskGroups, taskTimes } from "../core/select.js";
import { count, duration, elapsed } from "../core/time.js";
import { mindWhy } from "../ui/banners.js";
import { ago, emptyState, loading, since, stateIcon, taskTitle, word } from "../ui/parts.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/types.js").Task} Task
 * @typedef {import("../core/actions.js").Actions} Actions
 */

/** A queue may be long; the page shows its head. */
const SHOWN = 100;

/** @param {State} state @param {Actions} act */
export function tasksView(state, act) {
  if (state.load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.session.load()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), state.loadError, again);
  }
  if (state.load === "loading") return loading(t("tasks.loading"));
  const groups = taskGroups(state);
  const total = groups.running.length + groups.queued.length + groups.ended.length;
  const title = html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.tasks")}</h2>`;
  if (!total) return html`${title}${emptyState(t("tasks.empty"), t("tasks.emptyText"))}`;
  return html`${title}${groupView("running", groups.running, state, act)}
  ${groupView("queued", groups.queued, state, act)} ${groupView("ended", groups.ended, state, act)}`;
}

/** @param {"running" | "queued" | "ended"} name @param {Task[]} tasks @param {State} state @param {Actions} act */
function groupView(name, tasks, state, act) {
  if (!tasks.length && name !== "running") return nothing;
  const total = name === "queued" ? queueLength(state, tasks.length) : tasks.length;
  const more = total - Math.min(tasks.length, SHOWN);
  return html`<section class="group" data-group=${name}>
    <h3>${t(`tasks.${name}`)} <span class="group-count">${count(total, language())}</span></h3>
    ${
      tasks.length
        ? html`<ul class="rows">
            ${repeat(
              tasks.slice(0, SHOWN),
              (task) => task.id,
              (task) => rowView(task, state, act),
            )}
          </ul>`
        : html`<p class="group-none">${t("tasks.runningNone")}</p>`
    }
    ${more > 0 ? html`<p class="group-none">${tn("tasks.more", more)}</p>` : nothing}
  </section>`;
}

/** @param {Task} task @param {State} state @param {Actions} act */
function rowView(task, state, act) {
  const active = ["running", "queued", "asking"].includes(task.state);
  const busy = Boolean(state.pending[task.id]);
  return html`<li class="row is-${task.state}" data-task=${task.id}>
    <a class="row-link" href="#/task/${task.id}">
      ${stateIcon(task.state)}
      <span class="row-main">
        <span class="row-title">${taskTitle(task)}</span>
        <span class="row-meta">${metaView(task, state)}</span>
      </span>
    </a>
    ${
      active
        ? html`<button
            type="button"
            class="icon-button small row-action"
            ?disabled=${busy}
            aria-label=${t("task.cancelNamed", { title: taskTitle(task) })}
            title=${t("task.cancel")}
            @click=${() => act.order(task.id, "cancel")}
          >
            ${busy ? html`<span class="spinner"></span>` : icon("x")}
          </button>`
        : nothing
    }
  </li>`;
}

/** @param {Task} task @param {State} state */
function metaView(task, state) {
  const times = taskTimes(task, state.now);
  const seat = html`<span>${task.seat === "planner" ? t("seat.planner") : word("profile", task.profile)}</span>`;
  if (task.state === "running") {
    return html`<span class="ticking">${elapsed(times.runMs ?? 0)}</span>${seat}${
        task.headline ? html`<span class="row-headline">${task.headline}</span>` : nothing
      }`;
  }
  if (task.state === "queued") {
    const later = task.notBefore && Date.parse(task.notBefore) > state.now;
    const when = later
      ? html`<span>${t("tasks.notBefore")} ${ago(task.notBefore ?? "", state.now)}</span>`
      : html`<span>${since(task.createdAt, state.now)}</span>`;
    const awaited = state.status?.minds[task.waitsFor ?? ""];
    const isAway = awaited?.state === "waiting";
    const why = isAway ? t("tasks.waits", { why: mindWhy(awaited, state) }) : "";
    const mind = task.waitsFor ? why || waitsFor(task.waitsFor) : "";
    return html`${mind ? html`<span>${mind}</span>` : when}${seat}`;
  }
  const reason = task.state === "failed" ? word("reason", task.failureReason) : "";
  return html`<span>${since(task.completedAt ?? task.createdAt, state.now)}</span>${
      times.runMs !== null ? html`<span>${duration(times.runMs, language())}</span>` : nothing
    }${reason ? html`<span class="error-text">${reason}</span>` : seat}`;
}

/** @param {string} what  An engine, or tokens: in words. */
function waitsFor(what) {
  const [, of] = /^budget:(day|trigger)$/.exec(what) ?? [];
  return of ? t(`tasks.tokens.${of}`) : t("tasks.waitsFor", { engine: what });
}
