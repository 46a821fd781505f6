/** One message of the conversation. */

import { html, icon, nothing, serverHtml } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { choiceOf } from "../core/select.js";
import { shown } from "../core/shown.js";
import { sentFilesView } from "./files.js";
import { messageActions, outcomeView, whyView } from "./message-actions.js";
import { button, clock } from "../ui/parts.js";

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
  const chips = message.reminder ? snoozeButtons(message, act) : taskLinks(message);
  return html`<li
    class="message is-${role} ${entry.joined ? "is-joined" : ""}"
    id="m-${message.id}"
    data-delivery=${entry.delivery ?? nothing}
  >
    ${role === "user" ? nothing : html`<span class="glyph">${icon(glyph(message))}</span>`}
    <div class="message-body">
      <span class="sr-only">${t(`role.${role}`)}</span>
      ${sentFilesView(message.files, act)} ${message.text ? bodyView(message) : nothing}
      ${optionsView(message, state)} ${outcomeView(message, state, act)}
      ${role === "system" ? nothing : chips}
      <div class="meta">
        ${clock(message.createdAt)} ${repeatsView(message)} ${role === "user" ? deliveryView(entry, act) : nothing}
        ${role === "system" ? chips : nothing} ${messageActions(entry, state, act)}
      </div>
      ${whyView(message, state, act)}
    </div>
  </li>`;
}

/** @param {Message} message  Of one that stands for others: how many. */
function repeatsView({ triggerId, repeats, since }) {
  if (!triggerId || !repeats?.length) return nothing;
  return html`<a class="repeats" href="#/trigger/${triggerId}"
    >${tn("message.repeats", repeats.length + 1)} ${clock(since ?? "")}</a
  >`;
}

/** @param {Message} message */
function glyph({ role, reminder }) {
  if (role === "agent") return "mark";
  return reminder ? "trigger" : "info";
}

/** @param {Message} message @param {Actions} act */
function snoozeButtons(message, act) {
  const [task] = message.taskIds;
  if (!task) return nothing;
  return html`<span class="meta-actions">
    ${SNOOZES.map(([name, when]) =>
      button(t(`snooze.${name}`), () => act.snooze(task, when), { sign: "trigger", look: "link" }),
    )}
  </span>`;
}

/** @param {Message} message */
function bodyView(message) {
  if (message.html) return html`<div class="prose" ${serverHtml(message.html)}></div>`;
  return html`<div class="plain" dir="auto">${shown(message.text)}</div>`;
}

/** @param {Message} message @param {State} state  The options of a question that was answered. */
function optionsView(message, state) {
  const choice = choiceOf(state, message);
  if (choice === null) return nothing;
  return html`<ul class="options" aria-label=${t("question.options")}>
    ${message.options.map((option) =>
      option === choice
        ? html`<li class="option is-default">${icon("check")}${option}<span class="sr-only">${t("question.chosen")}</span></li>`
        : html`<li class="option">${option}</li>`,
    )}
  </ul>`;
}

/** @param {MessageEntry} entry @param {Actions} act */
function deliveryView(entry, act) {
  const { delivery, message } = entry;
  if (delivery === "failed") {
    return html`<span class="error-text" role="alert">${t("delivery.failed")} ${entry.error}</span>
      <span class="meta-actions">
        ${button(t("delivery.retry"), () => act.resend(message.id), { sign: "retry", look: "link" })}
        ${button(t("delivery.edit"), () => act.takeBack(message), { sign: "edit", look: "link" })}
        ${button(t("delivery.discard"), () => act.discard(message.id), { sign: "trash", look: "link" })}
      </span>`;
  }
  if (delivery === "answered") {
    return html`<span class="answered" title=${t("delivery.answered")}
      >${icon("check")}<span class="sr-only">${t("delivery.answered")}</span></span
    >`;
  }
  return html`<span class="delivery is-${delivery}">${t(`delivery.${delivery}`)}</span>
    ${entry.error ? html`<span>${entry.error}</span>` : nothing}`;
}

/** @param {Message} message  To what a code message is about and no card shows. */
function taskLinks({ role, taskIds }) {
  if (role !== "system" || !taskIds?.length) return nothing;
  return taskIds.map((id) => html`<a class="link" href="#/task/${id}">${t("job.open")}</a>`);
}

/** The reply does not move when the line below it comes. */
const ROOM_FOR_META = html`<div class="meta" aria-hidden="true">
  <span class="message-actions"><button type="button" class="icon-button" disabled></button></span>
</div>`;

/** @param {DraftEntry} entry  The reply as it grows: its complete blocks, and what comes after them. */
export function draftView({ blocks, rest }) {
  return html`<li class="message is-agent is-draft" aria-live="off">
    <span class="glyph">${icon("mark")}</span>
    <div class="message-body">
      <div class="prose" ${serverHtml(...blocks)}>${restView(rest)}</div>
      ${ROOM_FOR_META}
    </div>
  </li>`;
}

/** @param {DraftRest} rest */
function restView({ text, language }) {
  const told = html`${shown(text)}<span class="caret"></span>`;
  if (language === null) return text ? html`<p class="plain" dir="auto">${told}</p>` : nothing;
  return html`<div class="code-box"><pre data-lang=${language || nothing}><code>${told}</code></pre></div>`;
}
