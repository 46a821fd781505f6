/**
 * What is looked for everywhere, and how the chat shows an old message amid those around it. Pure;
 * a part of `state.js`.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Search} Search
 * @typedef {import("./types.js").Message} Message
 */

import { withJobs } from "./job-state.js";
import { above } from "./route.js";

/** Of each kind the server counts so many. */
export const MOST_COUNTED = 100;

/** @returns {Search} */
export function noSearch() {
  const counts = { messages: 0, memory: 0, work: 0 };
  return { query: "", kind: "all", asked: "", state: "idle", hits: [], counts, fallback: null, error: "" };
}

/** @type {Record<string, (state: State, action: any) => State>} */
export const SEARCH_ACTIONS = {
  searchTyped: (state, { query }) => withSearch(state, { query }),
  searchAsked,
  searchDone,
  pastOpened,
  newerLoaded,
};

/** @param {State} state @param {Partial<Search>} values @returns {State} */
function withSearch(state, values) {
  return { ...state, search: { ...state.search, ...values } };
}

/** @param {State} state @param {{asked: string, kind: import("./state-types.js").SearchKind}} action */
function searchAsked(state, { asked, kind }) {
  const { query } = state.search;
  return withSearch(state, asked ? { asked, kind, state: "asking", error: "" } : { ...noSearch(), query, kind });
}

/**
 * What a search found, or why it failed; the answer to something else than was asked last is not
 * heard.
 *
 * @param {State} state
 * @param {{asked: string, answer?: import("./types.js").SearchAnswer, error?: string}} action
 */
function searchDone(state, { asked, answer, error = "" }) {
  if (state.search.asked !== asked) return state;
  if (!answer) {
    const { query, kind } = state.search;
    return withSearch(state, { ...noSearch(), query, kind, asked, state: "failed", error });
  }
  const { hits, counts, fallback = null } = answer;
  return withSearch(state, { state: "ready", hits, counts, fallback, error: "" });
}

/** @param {import("./state-types.js").Route} route @returns {string} what tells one search from another */
export function askedBy(route) {
  return route.view === "search" && route.q.trim() ? `${route.kind} ${route.q.trim()}` : "";
}

/** @param {Search} search @param {import("./state-types.js").SearchKind} kind @returns {number} */
export function countOf({ counts }, kind) {
  return kind === "all" ? counts.messages + counts.memory + counts.work : counts[kind];
}

/** @param {Search} search @param {import("./state-types.js").SearchKind} kind  Whether there are more. */
export function isMore({ counts }, kind) {
  const most = kind === "all" ? Math.max(counts.messages, counts.memory, counts.work) : counts[kind];
  return most >= MOST_COUNTED;
}

/** @param {State} state @returns {import("./state-types.js").Route | null} one level up; of a file, what was found */
export function upFrom({ route, search }) {
  const q = search.query.trim();
  return route.view === "note" && q ? { view: "search", q, kind: search.kind } : above(route);
}

// --- the past

/**
 * The conversation around an old message; what is newer is read on from there.
 *
 * @param {State} state
 * @param {{page: import("./types.js").MessagesPage}} action
 * @returns {State}
 */
function pastOpened(state, { page }) {
  const { messages, before, after } = page;
  const jobs = withJobs(state.jobs, page.jobs ?? []);
  return { ...state, messages, jobs, before, after, older: "idle", newer: "idle", following: false };
}

/**
 * @param {State} state
 * @param {{page: import("./types.js").MessagesPage}} action
 * @returns {State}
 */
function newerLoaded(state, { page }) {
  const known = new Set(state.messages.map((message) => message.id));
  const fresh = page.messages.filter((message) => !known.has(message.id));
  const jobs = withJobs(state.jobs, page.jobs ?? []);
  return { ...state, jobs, newer: "idle", after: page.after, messages: [...state.messages, ...fresh] };
}

/**
 * Who reads in the past stays there when the whole picture is loaded anew, unless the two meet.
 *
 * @param {State} state
 * @param {Message[]} given the newest
 * @returns {Partial<State>}
 */
export function inPast({ messages, before, after }, given) {
  const known = new Set(messages.map((message) => message.id));
  const apart = after !== null && !given.some((message) => known.has(message.id));
  return apart ? { messages, before, after } : {};
}

/** @param {Message[]} messages @param {string} id  The line that says a message, or stands for it. */
export function lineOf(messages, id) {
  return messages.find((one) => one.id === id || one.repeats?.includes(id)) ?? null;
}
