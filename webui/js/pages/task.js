/** One task in full. */

import { html, nothing, serverHtml } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { addressOf } from "../core/route.js";
import { messageAbout, taskTimes } from "../core/select.js";
import { shown } from "../core/shown.js";
import { count, duration, elapsed } from "../core/time.js";
import * as parts from "../ui/parts.js";
import { button, since, word } from "../ui/parts.js";
import { chainView } from "./chain.js";
import { diffView } from "./diff.js";

/** @param {State} state @param {Actions} act */
export function taskView(state, act) {
  const back = addressOf({ view: "tasks" }, state);
  return html`${parts.backLink(back, t("task.back"))} ${bodyView(state, act)}`;
}

/** @param {State} state @param {Actions} act */
function bodyView(state, act) {
  const { detail } = state;
  if (detail?.load === "missing") {
    return parts.emptyState(t("task.missing"), t("task.missingText"));
  }
  if (detail?.task) {
    return html`<article class="task" data-task=${detail.id}>
      ${headView(detail.task, detail, state, act)} ${factsView(detail.task, state)}
      ${failureView(detail.task, detail)} ${resultView(detail.task, detail)}
      ${diffView(detail, act)} ${promptView(detail.task.prompt)} ${outputView(detail, act)}
      ${chainView(detail.chain, detail.id, state)}
      ${eventsView(detail, state)}
    </article>`;
  }
  if (detail?.load === "failed") return parts.failedView(() => act.keepers.detail.reload());
  return parts.loading(t("task.loading"));
}

/** @param {string} text @param {string} [title] */
export function promptView(text, title = t("task.prompt")) {
  return parts.sectionView(title, html`<pre class="prompt" dir="auto" tabindex="0">${shown(text)}</pre>`);
}

/** @param {Task} task @param {TaskPage} detail @param {State} state @param {Actions} act */
function headView(task, detail, state, act) {
  const active = ["running", "queued", "asking"].includes(task.state);
  const asked = state.pending[task.id];
  const off = Boolean(asked);
  const message = messageAbout(state, task.id, detail.trace);
  const order = (/** @type {"cancel" | "retry"} */ what, /** @type {Look} */ look) =>
    button(t(`task.${what}`), () => act.order(task.id, what), { ...look, off });
  const show = () => message && act.showMessage(message);
  return html`<header class="task-head">
    <h2 tabindex="-1" data-focus>${parts.taskTitle(task)}</h2>
    <p class="task-state">
      ${parts.stateBadge(task.state)}
      ${asked ? html`<span class="muted">${t(`asked.${asked}`)}</span>` : nothing}
    </p>
    <div class="task-actions">
      ${active ? order("cancel", { sign: "x", look: "small danger" }) : order("retry", { sign: "retry" })}
      ${message ? button(t("task.inChat"), show, { sign: "chat" }) : nothing}
    </div>
  </header>`;
}

/** @param {Task} task @param {State} state */
function factsView(task, { now, detail, triggers }) {
  const { waitMs, runMs } = taskTimes(task, now);
  const running = task.state === "running";
  const ran = running ? elapsed(runMs ?? 0) : duration(runMs ?? 0, language());
  const waits = task.state === "queued" && task.waitsFor;
  const [, budget] = /^budget:(day|trigger)$/.exec(task.waitsFor ?? "") ?? [];
  const used = detail?.usage;
  const trigger = task.sourceTriggerId ?? "";
  const title = triggers[trigger]?.title || t("job.open");
  return parts.factsList([
    ["task.created", since(task.createdAt, now)],
    ["task.waited", duration(waitMs ?? 0, language())],
    [
      running ? "task.running" : "task.ran",
      runMs !== null && html`<span class="ticking">${ran}</span>`,
    ],
    ["task.attempts", t("task.attemptsOf", { n: task.attempts, max: task.maxAttempts })],
    ["task.seat", task.seat === "planner" ? t("state.planning") : word("profile", task.profile)],
    ["task.priority", String(task.priority)],
    ["task.origin", word("origin", task.origin)],
    ["task.waitsFor", waits && (budget ? t(`task.tokens.${budget}`) : waits)],
    ["task.usage", used?.runs && parts.usageWords(used)],
    ["task.trigger", trigger && html`<a href="#/trigger/${trigger}">${title}</a>`],
    ["task.retryOf", task.retryOf && html`<a href="#/task/${task.retryOf}">${t("job.open")}</a>`],
  ]);
}

/** @param {Task} task @param {TaskPage} detail  Why it failed. */
function failureView(task, { result, output }) {
  if (task.state !== "failed") return nothing;
  const exit = result?.exitCode;
  const said = exit == null ? task.error : task.error?.replace(/^exit code -?\d+\s*/, "");
  const printed = output.blocks.some((block) => said && block.text.includes(said)); // shown below
  return html`<div class="failure" role="status">
    <p class="failure-why">${parts.failureWords(task.failureReason, exit)}</p>
    ${said && !printed ? html`<pre class="failure-text" tabindex="0">${said}</pre>` : nothing}
  </div>`;
}

/** @param {Task} task @param {TaskPage} detail */
function resultView(task, { result, output }) {
  if (!result?.html && !result?.text) return nothing;
  const told = result.text === task.error; // the failure says it
  const cut = result.data?.unshownCharacters; // then its end is in the result alone
  const isOutput = !result.html && output.blocks.length > 0 && !cut; // a command's result is its output
  if (told || isOutput) return nothing;
  const title = word("resultType", result.resultType);
  if (!result.html) return promptView(result.text, title);
  return parts.sectionView(title, html`<div class="prose" ${serverHtml(result.html)}></div>`);
}

/** @param {TaskPage} detail @param {Actions} act */
function outputView({ output, task }, act) {
  const { blocks, dropped, load } = output;
  if (!blocks.length && task?.state !== "running" && load !== "failed") return nothing;
  const cut = t("task.dropped", { n: count(dropped, language()) });
  const whole = () => act.keepers.detail.showWhole();
  const all = button(t("task.showAll"), whole, { look: "link" });
  const title = t("task.output");
  const inside = html`${dropped ? html`<p class="muted">${cut} ${all}</p>` : nothing}
    ${load === "failed" ? html`<p class="error-text">${t("task.outputFailed")}</p>` : nothing}
    <div class="output" id="output" tabindex="0" role="region" aria-label=${title}>
      ${blocks.length ? blocks.map(blockView) : html`<span class="muted">${t("task.noOutput")}</span>`}
    </div>`;
  return parts.sectionView(title, inside);
}

/** @param {OutputBlock} block */
function blockView({ type, stream, text }) {
  const plain = ["output", "line", "delta"].includes(type);
  const tag = plain ? nothing : html`<span class="out-tag">${word("output", type)}</span>`;
  return html`<span class="out out-${type} ${stream ?? ""}">${tag}${shown(text)}</span>`;
}

/** @param {TaskPage} detail @param {State} state */
function eventsView({ events }, { now }) {
  if (!events.length) return nothing;
  const row = (/** @type {any} */ { type, status, at }) =>
    html`<li>
      <span>${word("event", type)}${status ? ` · ${word("state", status)}` : ""}</span>
      ${since(at, now)}
    </li>`;
  return html`<details class="events">
    <summary>${tn("task.events", events.length)}</summary>
    <ol>
      ${events.map(row)}
    </ol>
  </details>`;
}
