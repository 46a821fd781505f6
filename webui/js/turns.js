/**
 * How turns are shown in the conversation: how one ended stands on the message it answers, not as a
 * line of its own; a message that is answered again stays one; so does a question with its answer.
 * Pure.
 *
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./select.js").Entry} Entry
 * @typedef {import("./select.js").MessageEntry} MessageEntry
 */

/**
 * The messages that are shown, of those that were said.
 *
 * @param {Message[]} messages
 * @returns {Message[]}
 */
export function shownMessages(messages) {
  const answered = new Set(messages.map((message) => message.answered?.questionId));
  /** @type {Message[]} */
  const found = [];
  let newest = -1; // of the user's
  for (const message of messages) {
    const { role, ended, questionId } = message;
    if (!standsAlone(message)) continue;
    if (questionId && answered.has(questionId)) continue; // its answer shows it
    if (role === "user" && newest >= 0 && rootOf(found[newest]) === message.retryOf) {
      const { why, turnId } = message;
      found[newest] = { ...found[newest], ended, why, turnId };
      continue;
    }
    if (role === "user") newest = found.push(message) - 1;
    else found.push(message);
  }
  return found;
}

/** @param {Message} message  Whether it stands by itself: how a turn ended stands on its message. */
export const standsAlone = ({ role, ended, inReplyTo }) =>
  !(role === "system" && ended && inReplyTo?.length);

/** @param {{id: string, retryOf?: string | null}} message  What is to be answered. */
const rootOf = ({ id, retryOf }) => retryOf ?? id;

/**
 * @param {Message} message of the user's
 * @returns {import("./select.js").Delivery}
 */
export function deliveryOf({ ended }) {
  return ended ? "ended" : "answered";
}

/**
 * The message that is being answered again, with how far that is, in place of what waits for it.
 *
 * @param {Entry[]} spoken
 * @param {Entry[]} waiting what is on its way, or waits
 * @returns {{spoken: Entry[], waiting: Entry[]}}
 */
export function withRetries(spoken, waiting) {
  const at = spoken.findLastIndex((one) => one.type === "message" && one.message.role === "user");
  const entry = /** @type {MessageEntry} */ (spoken[at]);
  const isAgain = (/** @type {Entry} */ one) =>
    one.type === "message" &&
    one.delivery !== "failed" &&
    Boolean(entry) &&
    one.message.retryOf === rootOf(entry.message);
  const again = /** @type {MessageEntry | undefined} */ (waiting.find(isAgain));
  if (!entry || !again) return { spoken, waiting };
  return {
    spoken: spoken.with(at, { ...entry, delivery: again.delivery, error: again.error }),
    waiting: waiting.filter((one) => !isAgain(one)),
  };
}
