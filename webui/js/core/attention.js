/** What came while the page was hidden: a count in the title, and the browser's notifications. */

import { t } from "./i18n.js";

const MAX_TEXT = 200;

let unread = 0;
/** @type {Set<string>} what came: messages, questions, and triggers, each one line of the chat */
const news = new Set();

/** @param {State} state @param {State} before  The messages that came new, not those that were loaded. */
export function newMessages(state, before) {
  if (state.messages === before.messages || before.load !== "ready") return [];
  const last = before.messages.at(-1)?.id;
  const from = last ? state.messages.findIndex((message) => message.id === last) + 1 : 0;
  return state.messages.slice(from).filter((message) => message.role !== "user");
}

/** @param {State} state @param {State} before */
export function countUnread(state, before) {
  if (!document.hidden) return;
  const messages = newMessages(state, before);
  const { question } = state;
  const asks = question && question.questionId !== before.question?.questionId;
  if (asks) news.add(question.questionId);
  for (const { id, questionId, triggerId } of messages) news.add(triggerId ?? questionId ?? id);
  markUnread(news.size);
  if (!state.notifying) return;
  if (asks) show("attention.question", question.question, question.questionId);
  for (const { id, role, text, reminder, taskIds } of messages) {
    const failed = taskIds.some((taskId) => state.tasks[taskId]?.state === "failed");
    if (reminder) show("attention.reminder", reminder, id);
    else if (role === "system" && failed) show("attention.failed", text, id);
  }
}

/** @param {number} count  In the title and the icon. */
export function markUnread(count) {
  if (!count) news.clear();
  if (count === unread) return;
  unread = count;
  document.title = unread ? `(${unread > 99 ? "99+" : unread}) mimikit` : "mimikit";
  icon().href = icon().href.replace(/favicon.*$/, unread ? "favicon-unread.svg" : "favicon.svg");
}

/** @param {string} title @param {string} text @param {string} tag */
function show(title, text, tag) {
  const said = spoken(text);
  const body = said.length > MAX_TEXT ? `${said.slice(0, MAX_TEXT)}…` : said;
  const notification = new Notification(t(title), { body, tag, icon: icon().href });
  notification.onclick = () => window.focus();
}

/** @param {string} text  Without the marks of code, where they are not drawn. */
export const spoken = (text) => text.replace(/```\w*|`/g, "");

const icon = () => /** @type {HTMLLinkElement} */ (document.querySelector("link[rel=icon]"));
