/** The conversation, and below it everything one answers with. */

import { guard, html, icon, nothing, repeat } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { jobOver } from "../job-state.js";
import { namedTask, timeline } from "../select.js";
import { spanOf } from "../span.js";
import { dayKey, dayName } from "../time.js";
import { composerView } from "./composer.js";
import { findBarView } from "./find-bar.js";
import { foldView } from "./firings.js";
import { cardView, newsView } from "./job-card.js";
import { liveView } from "./live.js";
import { isWhole } from "./long.js";
import { messageView } from "./message.js";
import { emptyState, loading } from "./parts.js";
import { questionView } from "./question.js";
import { draftView } from "./turn.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../select.js").Entry} Entry
 */

/** @param {State} state @param {Actions} act */
export function chatView(state, act) {
  const away = state.wide ? state.panelOpen && state.panelFull : state.route.view !== "chat";
  const entries = timeline(state);
  const { from, to } = spanOf(entries, state.sight);
  return html`<div class="chat ${away ? "is-away" : ""}" id="chat" ?inert=${away}>
    <h2 class="sr-only">${t("chat.title")}</h2>
    <div class="scroll-box">
      <div class="scroll" id="scroll" tabindex="0" role="region" aria-label=${t("chat.title")}>
        <div class="column">
          ${topView(state, act)}
          <ol class="timeline" id="timeline">
            <li class="room" aria-hidden="true"></li>
            ${repeat(
              entries.slice(from, to),
              (entry) => entry.key,
              (entry) => entryView(entry, state, act),
            )}
            <li class="room" aria-hidden="true"></li>
          </ol>
        </div>
      </div>
      ${findBarView(state, act, entries)}
      ${latestButton(state, act)}
    </div>
    <div class="dock">
      <div class="column">
        ${liveView(state, act)} ${questionView(state, act)} ${composerView(state, act)}
      </div>
    </div>
  </div>`;
}

/** @param {Entry} entry @param {State} state @param {Actions} act */
function entryView(entry, state, act) {
  if (entry.type === "draft") return draftView(entry);
  if (entry.type === "day") {
    const today = dayKey(state.now);
    return guard([entry.at, today, language()], () => dayView(entry.at, state.now));
  }
  if (entry.type !== "message") return workView(entry, state, act);
  const { message, delivery, error, joined, jobId, carries } = entry;
  const tasks = (message.taskIds ?? []).map((id) => namedTask(state.tasks, id)?.state).join();
  const { hover, focus, copied } = state.tools;
  const tools = [hover, focus, copied].map((id) => id === message.id).join();
  const job = jobId && !carries ? state.jobs[jobId] : null;
  const depends = [tasks, tools, state.touch, job, carries, isWhole(message, state)];
  return guard([message, delivery, error, joined, ...depends, language()], () =>
    messageView(entry, state, act),
  );
}

/** @param {import("../cards.js").WorkEntry} entry @param {State} state @param {Actions} act */
function workView(entry, state, act) {
  const { opened, pending, firings } = state;
  if (entry.type === "fold") {
    const id = entry.message.triggerId ?? "";
    const job = state.jobs[id];
    const failed = job?.failedTaskId ?? "";
    const today = dayKey(state.now);
    const depends = [job, state.triggers[id], state.tasks[failed], pending[failed], firings[entry.key]];
    return guard([entry.message, entry.isLast, entry.told, opened, today, ...depends, language()], () =>
      foldView(entry, state, act),
    );
  }
  const job = state.jobs[entry.jobId];
  if (entry.type === "news") return guard([job, entry.message, language()], () => newsView(entry, state, act));
  const now = jobOver(job) ? 0 : state.now;
  const asked = [pending[job.id], pending[job.failedTaskId ?? job.taskId]];
  return guard([job, entry.results.at(-1), opened, now, ...asked, language()], () =>
    cardView(entry, state, act),
  );
}

/** @param {string} at @param {number} now */
function dayView(at, now) {
  return html`<li class="day"><span>${dayName(at, now, language())}</span></li>`;
}

/** @param {State} state @param {Actions} act  What stands above the first message. */
function topView(state, act) {
  if (state.load === "loading") return loading(t("chat.loading"));
  if (state.load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.session.load()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), state.loadError, again);
  }
  if (state.older === "loading") return loading(t("chat.olderLoading"));
  if (state.before) {
    return html`<div class="older">
      <button type="button" class="link" @click=${() => act.loadOlder()}>
        ${t(state.older === "failed" ? "chat.olderFailed" : "chat.older")}
      </button>
    </div>`;
  }
  const empty = !state.messages.length && !state.inbox.length && !state.outbox.length;
  return empty ? welcomeView(act) : html`<p class="beginning">${t("chat.beginning")}</p>`;
}

/** @param {Actions} act */
function welcomeView(act) {
  const examples = ["command", "recurring", "remember"];
  return html`<div class="welcome">
    <span class="welcome-mark">${icon("mark")}</span>
    <h2>${t("welcome.title")}</h2>
    <p>${t("welcome.text")}</p>
    <ul class="examples" aria-label=${t("welcome.examples")}>
      ${examples.map(
        (name) =>
          html`<li>
            <button type="button" @click=${() => act.suggest(t(`welcome.${name}`))}>
              <span class="example-text">${t(`welcome.${name}`)}</span>
              <span class="example-why">${t(`welcome.${name}.why`)}</span>
            </button>
          </li>`,
      )}
    </ul>
  </div>`;
}

/** @param {State} state @param {Actions} act */
function latestButton(state, act) {
  if (state.following) return nothing;
  const label = state.unseen ? tn("chat.new", state.unseen) : t("chat.latest");
  return html`<button
    type="button"
    class="latest ${state.unseen ? "has-new" : ""}"
    @click=${() => act.hands.toBottom()}
  >
    ${icon("down")}<span>${label}</span>
  </button>`;
}
