/** One task in full. */

import { html, icon, nothing, serverHtml } from "../html.js";
import { has, language, t, tn } from "../i18n.js";
import { messageAbout, taskTimes } from "../select.js";
import { shown } from "../shown.js";
import { duration, elapsed } from "../time.js";
import { chainView } from "./chain.js";
import { diffView } from "./diff.js";
import { outputView } from "./output.js";
import { emptyState, loading, reasonWords, since, stateBadge, taskTitle, usageWords, word } from "./parts.js";
import { stepView, waitWords } from "./tasks.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").Task} Task
 * @typedef {import("../types.js").Job} Job
 * @typedef {import("../state-types.js").TaskDetail} TaskDetail
 * @typedef {import("../actions.js").Actions} Actions
 */

/** A wait that is shorter is none. */
const WORTH_TELLING_MS = 1000;
const USUAL_PRIORITY = 5;
/** Engines that are code of ours: of them there is nothing to say. */
const CODE = new Set(["builtin", "command", "scripted"]);

/** @param {TaskDetail} detail @param {State} state  The work it belongs to, as it stands now. */
function jobOf({ job }, state) {
  const known = job && state.jobs[job.id];
  return known && known.steps.length >= job.steps.length ? known : job;
}

/** @param {State} state @param {Actions} act */
export function taskView(state, act) {
  const detail = state.detail;
  const back = html`<a class="back" href="#/tasks">${icon("back")}${t("task.back")}</a>`;
  if (detail?.load === "missing") {
    return html`${back}${emptyState(t("task.missing"), t("task.missingText"))}`;
  }
  if (!detail?.task && detail?.load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.reloadDetail()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return html`${back}${emptyState(t("load.failed"), t("load.unreachable"), again)}`;
  }
  if (!detail?.task) return html`${back}${loading(t("task.loading"))}`;
  const { task } = detail;
  const job = jobOf(detail, state);
  return html`${back}
    <article class="task" data-task=${detail.id}>
      ${headView(task, job, detail, state, act)} ${stepsView(task, job, state)}
      ${failureView(detail)} ${resultView(detail)} ${diffView(detail, act)}
      ${outputView(detail, state, act)} ${promptView(task, detail.prompt)}
      ${isChain(detail.graph) ? chainView(detail.graph, detail.id, state, act) : nothing}
      ${factsView(task, state)} ${eventsView(detail, state)}
    </article>`;
}

/** @param {import("../types.js").Graph} graph  A plan and its work are told by the steps. */
function isChain({ nodes }) {
  return nodes.length > 2 || nodes.some((node) => node.kind === "trigger");
}

/** @param {Task} task @param {Job | null} job @param {TaskDetail} detail @param {State} state @param {Actions} act */
function headView(task, job, detail, state, act) {
  const whole = job?.kind === "request" && job.total > 1 ? job : null;
  const own = task.seat === "planner" ? t("steps.plan") : taskTitle(task);
  const asked = state.pending[task.id];
  return html`<header class="task-head">
    <h2 tabindex="-1" data-focus>${whole ? whole.title : taskTitle(task)}</h2>
    ${whole && own !== whole.title ? html`<p class="muted">${t("steps.here", { title: own })}</p>` : nothing}
    <p class="task-state">
      ${stateBadge(task.state)}
      ${timesView(task, state)}
      ${asked ? html`<span class="muted">${t(`asked.${asked}`)}</span>` : nothing}
    </p>
    ${task.state === "running" && task.headline ? html`<p class="row-headline">${task.headline}</p>` : nothing}
    <div class="task-actions">${actionsView(task, job, detail, state, act)}</div>
  </header>`;
}

/** @param {Task} task @param {State} state  How long it has waited apart from how long it has run. */
function timesView(task, state) {
  const { waitMs, runMs } = taskTimes(task, state.now);
  const lang = language();
  if (task.state === "queued") return html`<span class="muted">${waitWords(task, state)}</span>`;
  const ran = task.state === "running" ? elapsed(runMs ?? 0) : duration(runMs ?? 0, lang);
  return html`${runMs === null ? nothing : html`<span class="muted ticking">${ran}</span>`}${
      waitMs !== null && waitMs >= WORTH_TELLING_MS
        ? html`<span class="muted">${t("task.waitedFor", { span: duration(waitMs, lang) })}</span>`
        : nothing
    }${task.completedAt ? html`<span class="muted">${since(task.completedAt, state.now)}</span>` : nothing}`;
}

/** @param {Task} task @param {Job | null} job @param {TaskDetail} detail @param {State} state @param {Actions} act */
function actionsView(task, job, detail, state, act) {
  const what = ["running", "queued", "asking"].includes(task.state) ? "cancel" : "retry";
  const own = job && state.messages.find((message) => message.jobId === job.id)?.id;
  const message = own || messageAbout(state, task.id, detail.trace);
  return html`<button
      type="button"
      class="small ${what === "cancel" ? "danger" : ""}"
      ?disabled=${Boolean(state.pending[task.id])}
      @click=${() => act.order(task.id, what)}
    >
      ${icon(what === "cancel" ? "x" : "retry")}${t(`task.${what}`)}
    </button>
    ${
      message
        ? html`<button type="button" class="small" @click=${() => act.hands.showMessage(message)}>
            ${icon("chat")}${t("task.inChat")}
          </button>`
        : nothing
    }
    ${
      task.profile === "command" || !task.startedAt
        ? nothing
        : html`<a class="button small" href="#/reason/${task.id}">${icon("info")}${t("task.why")}</a>`
    }`;
}

/** @param {Task} task @param {Job | null} job @param {State} state */
function stepsView(task, job, state) {
  if (job?.kind !== "request" || job.total < 2) return nothing;
  return html`<section>
    <h3>${t("steps.title")} <span class="group-count">${t("tasks.doneOf", { n: job.counts.done, all: job.total })}</span></h3>
    <ol class="steps is-whole">
      ${job.steps.map((step) => stepView(step, task.id, state))}
    </ol>
  </section>`;
}

/** @param {Task} task @param {State} state */
function factsView(task, state) {
  /** @type {[string, unknown][]} */
  const facts = [["task.created", since(task.createdAt, state.now)]];
  const { engine } = state.detail?.result ?? {};
  const by = word("profile", task.profile);
  if (task.seat === "worker") {
    const named = engine && !CODE.has(engine) ? `${by} · ${engine}` : by;
    facts.push(["task.seat", named]);
  }
  if (task.maxAttempts > 1 || task.attempts > 1) {
    facts.push(["task.attempts", t("task.attemptsOf", { n: task.attempts, max: task.maxAttempts })]);
  }
  if (task.priority !== USUAL_PRIORITY) facts.push(["task.priority", task.priority]);
  const used = state.detail?.usage;
  if (used?.runs) facts.push(["task.usage", usageWords(used)]);
  const trigger = task.sourceTriggerId;
  if (trigger) {
    const title = state.triggers[trigger]?.title || trigger;
    facts.push(["task.trigger", html`<a href="#/trigger/${trigger}">${title}</a>`]);
  } else facts.push(["task.origin", word("origin", task.origin)]);
  if (task.retryOf) {
    const link = html`<a href="#/task/${task.retryOf}">${t("task.retryOfLink")}</a>`;
    facts.push(["task.retryOf", link]);
  }
  return html`<dl class="facts">
    ${facts.map(
      ([key, value]) =>
        html`<div>
          <dt>${t(key)}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** Reasons that an engine gives, which are seen to where engines are. */
const OF_ENGINES = new Set(["engine_unavailable", "rate_limited"]);

/** @param {TaskDetail} detail  Why it failed, and what is to be done. */
function failureView({ task, result }) {
  const lost = task?.state === "canceled" && task.failureReason === "upstream";
  if (!task || (task.state !== "failed" && !lost)) return nothing;
  const exit = result?.exitCode;
  const reason = task.failureReason ?? "";
  const why = [word("reason", reason) || t("state.failed")];
  if (exit != null) why.push(t("task.exit", { code: exit }));
  const told = reasonWords(task.error, task.why);
  const text = exit == null ? told : told.replace(/^(exit code|退出码) -?\d+\s*/, "");
  const mend = has(`mend.${reason}`) ? t(`mend.${reason}`) : "";
  return html`<div class="failure" role="status">
    <p class="failure-why">${why.join(" · ")}</p>
    ${text ? html`<pre class="failure-text" tabindex="0">${text}</pre>` : nothing}
    ${mend ? html`<p class="failure-mend">${mend}</p>` : nothing}
    ${
      OF_ENGINES.has(reason)
        ? html`<p class="failure-mend"><a href="#/engines">${t("mend.engines")}</a></p>`
        : nothing
    }
  </div>`;
}

/** @param {TaskDetail} detail */
function resultView({ task, result, output }) {
  if (!result?.html && !result?.text) return nothing;
  const told = result.text === task?.error; // the failure says it
  const isOutput = !result.html && output.pages.some((page) => page.blocks.length); // a command's result is its output
  if (told || isOutput) return nothing;
  return html`<section>
    <h3>${word("resultType", result.resultType)}</h3>
    ${
      result.html
        ? html`<div class="prose" ${serverHtml(result.html)}></div>`
        : html`<pre class="prompt" tabindex="0">${shown(result.text)}</pre>`
    }
  </section>`;
}

/** @param {Task} task @param {string} prompt */
function promptView(task, prompt) {
  return html`<section>
    <h3>${t(task.profile === "command" ? "task.command" : "task.prompt")}</h3>
    <pre class="prompt" tabindex="0">${shown(prompt)}</pre>
  </section>`;
}

/** @param {TaskDetail} detail @param {State} state */
function eventsView(detail, state) {
  const { events } = detail;
  if (!events.length) return nothing;
  return html`<details class="events">
    <summary>${tn("task.events", events.length)}</summary>
    <ol>
      ${events.map(
        (event) =>
          html`<li>
            <span>${eventWords(event)}</span>
            ${since(event.at, state.now)}
          </li>`,
      )}
    </ol>
  </details>`;
}

/** @param {import("../types.js").LedgerEvent & Record<string, any>} event */
function eventWords({ type, status, attempt, failureReason }) {
  const said = [word("event", type)];
  if (status) said.push(word("state", status));
  if (attempt > 1) said.push(t("output.attempt", { n: attempt }));
  if (failureReason) said.push(word("reason", failureReason));
  return said.join(" · ");
}
