/** One message of the conversation. */

import { html, icon, nothing, serverHtml } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { hashOf } from "../route.js";
import { namedTask } from "../select.js";
import { shown } from "../shown.js";
import { duration } from "../time.js";
import { sentFilesView } from "./attachments.js";
import { toolbarView } from "./message-tools.js";
import { cardLink } from "./job-card.js";
import { longView } from "./long.js";
import { clock, stateIcon, taskTitle, word } from "./parts.js";
import { answeredView, cutMark, endedView } from "./turn.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../select.js").MessageEntry} MessageEntry
 */

/** How long a reminder can be put off, in words that the server reads. */
const SNOOZES = [
  ["minutes", "in 10 minutes"],
  ["hour", "in 1 hour"],
  ["tomorrow", "in 24 hours"],
];

/** @param {MessageEntry} entry @param {State} state @param {Actions} act */
export function messageView(entry, state, act) {
  const { message } = entry;
  const { role } = message;
  const chips = chipsOf(entry, state, act);
  const failed = entry.delivery === "failed"; // it has actions of its own
  const tools = failed ? nothing : toolbarView(message, state, act);
  return html`<li
    class="message is-${role} ${entry.joined ? "is-joined" : ""} ${isShownBelow(entry) ? "is-shown-below" : ""}"
    id="m-${message.id}"
    data-delivery=${entry.delivery ?? nothing}
  >
    ${role === "user" ? nothing : html`<span class="glyph">${icon(glyph(message))}</span>`}
    <div class="message-body">
      <span class="sr-only">${t(`role.${role}`)}</span>
      ${quoteView(message, act)} ${longView(bodyView(message), message, state, act)} ${sentFilesView(message.files, act)} ${role === "system" ? nothing : chips}
      <div class="meta">
        ${role === "user" ? tools : nothing} ${clock(message.createdAt)} ${role === "user" ? deliveryView(entry, act) : origin(message)}
        ${role === "system" ? chips : nothing} ${hitsLink(message)}
        ${role === "user" ? nothing : tools}
      </div>
    </div>
  </li>`;
}

/** @param {import("../types.js").Message} message @param {Actions} act  What it quotes, or says anew. */
function quoteView({ quote, edits, createdAt }, act) {
  if (edits) {
    return html`<button type="button" class="link edited" @click=${() => act.search.openMessage(edits, createdAt.slice(0, 10))}>
      ${icon("edit")}${t("message.edits")}
    </button>`;
  }
  return quote ? html`<blockquote class="quote">${shown(quote)}</blockquote>` : nothing;
}

/** @param {import("../types.js").Message} message  How much of memory it was given. */
function hitsLink({ role, turnId, memory }) {
  if (role !== "agent" || !memory || !turnId) return nothing;
  return html`<a class="quiet" href=${hashOf({ view: "reason", id: turnId })}
    >${icon("memory")}${tn("hits.count", memory)}</a
  >`;
}

/** @param {MessageEntry} entry  Code names the command that it runs, and so does the card below. */
const isShownBelow = ({ carries, message }) => carries && message.engine === "builtin";

/** @param {MessageEntry} entry @param {State} state @param {Actions} act  What of the work it speaks of. */
function chipsOf({ message, jobId, carries }, state, act) {
  if (message.reminder) return snoozeButtons(message, act);
  const isPlain = jobId === "" || (jobId && message.role === "user");
  if (carries || isPlain) return nothing; // the card is right there, or none is needed
  return jobId ? cardLink(jobId, state, act) : taskChips(message.taskIds ?? [], state);
}

/** @param {import("../types.js").Message} message */
function glyph({ role, reminder }) {
  if (role === "agent") return "mark";
  return reminder ? "trigger" : "info";
}

/** @param {import("../types.js").Message} message @param {Actions} act */
function snoozeButtons(message, act) {
  const [task] = message.taskIds;
  if (!task) return nothing;
  return html`<span class="meta-actions">
    ${SNOOZES.map(
      ([name, when]) =>
        html`<button type="button" class="link" @click=${() => act.snooze(task, when)}>
          ${icon("retry")}${t(`snooze.${name}`)}
        </button>`,
    )}
  </span>`;
}

/** @param {import("../types.js").Message} message */
function bodyView(message) {
  if (message.answered) return answeredView(message.answered);
  if (message.html) return html`<div class="prose" ${serverHtml(message.html)}></div>`;
  if (!message.text && message.files?.length) return nothing;
  return html`<div class="plain">${shown(message.text)}</div>`;
}

/** @param {import("../types.js").Message} message */
function origin(message) {
  if (message.role !== "agent") return nothing;
  const parts = [];
  if (message.durationMs != null) parts.push(duration(message.durationMs, language()));
  if (message.engine) parts.push(word("engine", message.engine));
  if (message.engine === "local") parts.push(t("engines.basic"));
  return [...parts.map((part) => html`<span>${part}</span>`), cutMark(message)];
}

/** @param {MessageEntry} entry @param {Actions} act */
function deliveryView(entry, act) {
  const { delivery, message } = entry;
  if (delivery === "failed") {
    return html`<span class="error-text" role="alert">${t("delivery.failed")} ${entry.error}</span>
      <span class="meta-actions">
        <button type="button" class="link" @click=${() => act.resend(message.id)}>
          ${icon("retry")}${t("delivery.retry")}
        </button>
        <button type="button" class="link" @click=${() => act.takeBack(message.id)}>
          ${icon("edit")}${t("delivery.edit")}
        </button>
        <button type="button" class="link" @click=${() => act.discard(message.id)}>
          ${icon("trash")}${t("delivery.discard")}
        </button>
      </span>`;
  }
  if (delivery === "ended") return endedView(message, act);
  if (delivery === "answered") {
    return html`<span class="answered" title=${t("delivery.answered")}
      >${icon("check")}<span class="sr-only">${t("delivery.answered")}</span></span
    >`;
  }
  return html`<span class="delivery is-${delivery}">${t(`delivery.${delivery}`)}</span>`;
}

/** @param {string[]} ids @param {State} state */
function taskChips(ids, state) {
  if (!ids.length) return nothing;
  return html`<ul class="chips">
    ${ids.map((id) => {
      const named = namedTask(state.tasks, id);
      return html`<li>
        <a class="chip" href="#/task/${named?.task.id ?? id}"
          >${named ? stateIcon(named.state) : icon("tasks")}<span class="chip-text"
            >${named ? taskTitle(named.task) : t("message.task")}</span
          ></a
        >
      </li>`;
    })}
  </ul>`;
}
