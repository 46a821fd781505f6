/** What came while the page was hidden: a count in the title, and the browser's notifications. */

import { t } from "./i18n.js";

const MAX_TEXT = 200;

/**
 * @typedef {object} Ports
 * @property {() => boolean} hidden
 * @property {(unread: number) => void} mark in the title and the icon
 * @property {((title: string, text: string, id: string) => void) | null} show null: not wanted
 */

/** @param {State} state @param {State} before  The messages that came new, not those that were loaded. */
export function newMessages(state, before) {
  if (state.messages === before.messages || before.load !== "ready") return [];
  const last = before.messages.at(-1)?.id;
  const from = last ? state.messages.findIndex((message) => message.id === last) + 1 : 0;
  return state.messages.slice(from).filter((message) => message.role !== "user");
}

/** @param {Message} message @param {State} state  Whether it is worth a notification. */
export function isUrgent(message, state) {
  const failed = message.taskIds.some((id) => state.tasks[id]?.state === "failed");
  return Boolean(message.reminder) || (message.role === "system" && failed);
}

export class Attention {
  /** @param {Ports} ports */
  constructor(ports) {
    this.ports = ports;
    this.unread = 0;
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (!this.ports.hidden()) return;
    const came = newMessages(state, before);
    const { question } = state;
    const asks = question && question.questionId !== before.question?.questionId;
    this.count(this.unread + came.length + (asks ? 1 : 0));
    if (asks) this.ports.show?.(t("attention.question"), cut(question.question), question.questionId);
    for (const message of came.filter((one) => isUrgent(one, state))) {
      const title = t(message.reminder ? "attention.reminder" : "attention.failed");
      this.ports.show?.(title, cut(message.reminder ?? message.text), message.id);
    }
  }

  /** The reader is back. */
  seen() {
    this.count(0);
  }

  /** @private @param {number} unread */
  count(unread) {
    if (unread !== this.unread) this.ports.mark(unread);
    this.unread = unread;
  }
}

/** @param {string} text */
const cut = (text) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
