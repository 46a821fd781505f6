/** One task in full. */

import { html, icon, nothing, serverHtml } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { addressOf } from "../core/route.js";
import { messageAbout, taskTimes } from "../core/select.js";
import { shown } from "../core/shown.js";
import { count, duration, elapsed } from "../core/time.js";
import { chainView } from "./chain.js";
import { diffView } from "./diff.js";
import { emptyState, loading, since, stateBadge, taskTitle, usageWords, word } from "../ui/parts.js";

/** @param {State} state @param {Actions} act */
export function taskView(state, act) {
  const detail = state.detail;
  const back = html`<a class="back" href=${addressOf({ view: "tasks" }, state)}>${icon("back")}${t("task.back")}</a>`;
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
  return html`${back}
    <article class="task" data-task=${detail.id}>
      ${headView(detail.task, detail, state, act)} ${factsView(detail.task, state)}
      ${failureView(detail)} ${resultView(detail)} ${diffView(detail, act)} ${promptView(detail.task)} ${outputView(detail, act)}
      ${chainView(detail.chain, detail.id, state)} ${eventsView(detail, state)}
    </article>`;
}

/** @param {Task} task @param {TaskDetail} detail @param {State} state @param {Actions} act */
function headView(task, detail, state, act) {
  const active = ["running", "queued", "asking"].includes(task.state);
  const asked = state.pending[task.id];
  const message = messageAbout(state, task.id, detail.trace);
  return html`<header class="task-head">
    <h2 tabindex="-1" data-focus>${taskTitle(task)}</h2>
    <p class="task-state">
      ${stateBadge(task.state)}
      ${asked ? html`<span class="muted">${t(`asked.${asked}`)}</span>` : nothing}
    </p>
    <div class="task-actions">
      ${
        active
          ? html`<button
              type="button"
              class="small danger"
              ?disabled=${Boolean(asked)}
              @click=${() => act.order(task.id, "cancel")}
            >
              ${icon("x")}${t("task.cancel")}
            </button>`
          : html`<button
              type="button"
              class="small"
              ?disabled=${Boolean(asked)}
              @click=${() => act.order(task.id, "retry")}
            >
              ${icon("retry")}${t("task.retry")}
            </button>`
      }
      ${
        message
          ? html`<button type="button" class="small" @click=${() => act.hands.showMessage(message)}>
              ${icon("chat")}${t("task.inChat")}
            </button>`
          : nothing
      }
    </div>
  </header>`;
}

/** @param {Task} task @param {State} state */
function factsView(task, state) {
  const lang = language();
  const times = taskTimes(task, state.now);
  const running = task.state === "running";
  /** @type {[string, unknown][]} */
  const facts = [
    ["task.created", since(task.createdAt, state.now)],
    ["task.waited", duration(times.waitMs ?? 0, lang)],
  ];
  if (times.runMs !== null) {
    const ran = running ? elapsed(times.runMs) : duration(times.runMs, lang);
    facts.push([running ? "task.running" : "task.ran", html`<span class="ticking">${ran}</span>`]);
  }
  facts.push(
    ["task.attempts", t("task.attemptsOf", { n: task.attempts, max: task.maxAttempts })],
    ["task.seat", task.seat === "planner" ? t("state.planning") : word("profile", task.profile)],
    ["task.priority", task.priority],
    ["task.origin", word("origin", task.origin)],
  );
  if (task.state === "queued" && task.waitsFor) {
    const [, of] = /^budget:(day|trigger)$/.exec(task.waitsFor) ?? [];
    facts.push(["task.waitsFor", of ? t(`task.tokens.${of}`) : task.waitsFor]);
  }
  const used = state.detail?.usage;
  if (used?.runs) facts.push(["task.usage", usageWords(used)]);
  const trigger = task.sourceTriggerId;
  if (trigger) {
    const title = state.triggers[trigger]?.title || t("job.open");
    facts.push(["task.trigger", html`<a href="#/trigger/${trigger}">${title}</a>`]);
  }
  if (task.retryOf) {
    facts.push(["task.retryOf", html`<a href="#/task/${task.retryOf}">${t("job.open")}</a>`]);
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

/** @param {TaskDetail} detail  Why it failed. */
function failureView({ task, result, output }) {
  if (task?.state !== "failed") return nothing;
  const exit = result?.exitCode;
  const why = [word("reason", task.failureReason) || t("state.failed")];
  if (exit != null) why.push(t("task.exit", { code: exit }));
  const said = exit == null ? task.error : task.error?.replace(/^exit code -?\d+\s*/, "");
  const printed = output.blocks.some((block) => said && block.text.includes(said)); // shown below
  const text = printed ? "" : said;
  return html`<div class="failure" role="status">
    <p class="failure-why">${why.join(" · ")}</p>
    ${text ? html`<pre class="failure-text" tabindex="0">${text}</pre>` : nothing}
  </div>`;
}

/** @param {TaskDetail} detail */
function resultView({ task, result, output }) {
  if (!result?.html && !result?.text) return nothing;
  const told = result.text === task?.error; // the failure says it
  const isOutput = !result.html && output.blocks.length > 0; // a command's result is its output
  if (told || isOutput) return nothing;
  return html`<section>
    <h3>${word("resultType", result.resultType)}</h3>
    ${
      result.html
        ? html`<div class="prose" ${serverHtml(result.html)}></div>`
        : html`<pre class="prompt" dir="auto" tabindex="0">${shown(result.text)}</pre>`
    }
  </section>`;
}

/** @param {Task} task */
function promptView(task) {
  return html`<section>
    <h3>${t("task.prompt")}</h3>
    <pre class="prompt" dir="auto" tabindex="0">${shown(task.prompt)}</pre>
  </section>`;
}

/** @param {TaskDetail} detail @param {Actions} act */
function outputView({ output, task }, act) {
  const { blocks, dropped, load } = output;
  if (!blocks.length && task?.state !== "running" && load !== "failed") return nothing;
  const cut = t("task.dropped", { n: count(dropped, language()) });
  return html`<section>
    <h3>${t("task.output")}</h3>
    ${
      dropped
        ? html`<p class="muted">
            ${cut}
            <button type="button" class="link" @click=${() => act.showWholeOutput()}>${t("task.showAll")}</button>
          </p>`
        : nothing
    }
    ${load === "failed" ? html`<p class="error-text">${t("task.outputFailed")}</p>` : nothing}
    <div class="output" id="output" tabindex="0" role="region" aria-label=${t("task.output")}>
      ${blocks.length ? blocks.map(blockView) : html`<span class="muted">${t("task.noOutput")}</span>`}
    </div>
  </section>`;
}

/** @param {OutputBlock} block */
function blockView(block) {
  const plain = ["output", "line", "delta"].includes(block.type);
  const tag = plain ? nothing : html`<span class="out-tag">${word("output", block.type)}</span>`;
  return html`<span class="out out-${block.type} ${block.stream ?? ""}">${tag}${shown(block.text)}</span>`;
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
            <span
              >${word("event", event.type)}${event.status ? ` · ${word("state", event.status)}` : ""}</span
            >
            ${since(event.at, state.now)}
          </li>`,
      )}
    </ol>
  </details>`;
}
