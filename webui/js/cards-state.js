/**
 * How the state of the conversation's own view changes: what is opened, which part of a long one is
 * drawn, what is looked for in it. Pure; a part of `state.js`.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./types.js").Message} Message
 */

import { isFiring } from "./cards.js";

/** So many messages of a trigger are kept since the user spoke; of those before, their ids. */
const FIRINGS_KEPT = 12;
const IDS_KEPT = 500;

/** @returns {Pick<State, "opened" | "firings" | "sight" | "finding">} */
export function noCards() {
  return { opened: {}, firings: {}, sight: null, finding: null };
}

/** @type {Record<string, (state: State, action: any) => State>} */
export const CARD_ACTIONS = {
  opened: (state, { key, open }) => ({ ...state, opened: { ...state.opened, [key]: open } }),
  firings: (state, { key, ...values }) => {
    const before = state.firings[key] ?? { load: "loading", messages: [], before: null };
    return { ...state, firings: { ...state.firings, [key]: { ...before, ...values } } };
  },
  sight: (state, { sight }) => ({ ...state, sight }),
  finding: (state, { values }) => ({
    ...state,
    finding: values && { query: "", at: null, busy: false, ...state.finding, ...values },
  }),
};

/**
 * The messages without those of a trigger that stand far behind its newest: an hour of a trigger
 * that tells each ten seconds takes no more than a minute of it.
 *
 * @param {Message[]} messages
 * @returns {Message[]} the same when nothing is too much
 */
export function trimmed(messages) {
  const newest = messages.at(-1);
  if (!newest || !isFiring(newest)) return messages;
  const own = [];
  for (let at = messages.length - 1; at >= 0 && messages[at].role !== "user"; at -= 1) {
    if (messages[at].triggerId === newest.triggerId) own.push(at);
  }
  if (own.length <= FIRINGS_KEPT) return capped(messages, newest);
  const [oldest, next] = [own[own.length - 1], own[own.length - 2]];
  const [gone, stays] = [messages[oldest], messages[next]];
  const ids = new Set([...(gone.repeats ?? []), gone.id, ...(stays.repeats ?? [])]);
  const result = messages.with(next, {
    ...stays,
    repeats: [...ids].slice(-IDS_KEPT),
    since: gone.since ?? gone.createdAt,
  });
  result.splice(oldest, 1);
  return capped(result, newest);
}

/** @param {Message[]} messages @param {Message} newest  It may name all that it stands for. */
function capped(messages, newest) {
  if (newest.repeats.length <= IDS_KEPT) return messages;
  return messages.with(-1, { ...newest, repeats: newest.repeats.slice(-IDS_KEPT) });
}
