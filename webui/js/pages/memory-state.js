/**
 * How the state of memory, its editors, the backlog and a reply's hits changes. Pure; a part of
 * `state.js`.
 *
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").Memory} Memory
 * @typedef {import("../core/state-types.js").Search} Search
 * @typedef {import("../core/state-types.js").NoteForm} NoteForm
 * @typedef {import("../core/state-types.js").Backlog} Backlog
 */

/** @returns {Pick<State, "memory" | "note" | "notes" | "backlog" | "hits">} */
export function noMemory() {
  return {
    memory: { load: "idle", files: [], index: null, query: "", search: noSearch(), whole: [] },
    note: null,
    notes: {},
    backlog: { load: "idle", items: [], draft: "", busy: "", error: "" },
    hits: {},
  };
}

/** @returns {Search} */
function noSearch() {
  return { asked: "", state: "idle", hits: [], fallback: null, error: "" };
}

/** @type {Record<string, (state: State, action: any) => State>} */
export const MEMORY_ACTIONS = {
  memoryLoading: (state) =>
    withMemory(state, { load: state.memory.load === "ready" ? "ready" : "loading" }),
  memoryLoaded: (state, { answer }) =>
    withMemory(state, { load: "ready", files: answer.files, index: answer.index ?? null }),
  memoryFailed: (state) =>
    withMemory(state, { load: state.memory.files.length ? "ready" : "failed" }),
  memoryWhole: (state, { group }) => withMemory(state, { whole: [...state.memory.whole, group] }),
  searchTyped: (state, { query }) => withMemory(state, { query }),
  searchAsked: (state, { asked }) =>
    withSearch(state, asked ? { asked, state: "asking", error: "" } : noSearch()),
  searchDone,
  noteOpened,
  noteLoaded: (state, { path, file }) =>
    state.note?.path === path ? { ...state, note: { path, load: "ready", file } } : state,
  noteFailed,
  noteFormOpened: (state, { form }) => ({ ...state, notes: { ...state.notes, [form.key]: form } }),
  noteFormClosed,
  noteTyped: (state, { key, values }) => withForm(state, key, { ...values, error: "" }),
  noteTold: (state, { key, values }) => withForm(state, key, values),
  noteSaved,
  backlogLoading: (state) =>
    withBacklog(state, { load: state.backlog.load === "ready" ? "ready" : "loading" }),
  backlogLoaded: (state, { answer }) => withBacklog(state, { load: "ready", items: answer.items }),
  backlogFailed: (state) =>
    withBacklog(state, { load: state.backlog.load === "ready" ? "ready" : "failed" }),
  backlogTold: (state, { values }) => withBacklog(state, values),
  hitsTold: (state, { turnId, values }) => ({
    ...state,
    hits: { ...state.hits, [turnId]: { ...(state.hits[turnId] ?? NO_HITS), ...values } },
  }),
};

/** @type {import("../core/state-types.js").TurnHits} */
const NO_HITS = { open: false, load: "idle", hits: [] };

/** @param {State} state @param {Partial<Memory>} values @returns {State} */
function withMemory(state, values) {
  return { ...state, memory: { ...state.memory, ...values } };
}

/** @param {State} state @param {Partial<Search>} values */
function withSearch(state, values) {
  return withMemory(state, { search: { ...state.memory.search, ...values } });
}

/**
 * What a search found, or why it failed; the answer to something else than was asked last is not
 * heard.
 *
 * @param {State} state
 * @param {{asked: string, answer?: any, error?: string}} action
 */
function searchDone(state, { asked, answer, error = "" }) {
  if (state.memory.search.asked !== asked) return state;
  if (!answer) return withSearch(state, { state: "failed", hits: [], error });
  const { hits, fallback = null } = answer;
  return withSearch(state, { state: "ready", hits, fallback, error: "" });
}

/** @param {State} state @param {{path: string | null}} action @returns {State} */
function noteOpened(state, { path }) {
  if (path === null) return { ...state, note: null };
  const file = state.note?.path === path ? state.note.file : null;
  return { ...state, note: { path, load: "loading", file } };
}

/** @param {State} state @param {{path: string, load: "missing" | "failed"}} action @returns {State} */
function noteFailed(state, { path, load }) {
  const { note } = state;
  return note?.path === path ? { ...state, note: { ...note, load } } : state;
}

/** @param {State} state @param {string} key @param {Partial<NoteForm>} values @returns {State} */
function withForm(state, key, values) {
  const form = state.notes[key];
  return form ? { ...state, notes: { ...state.notes, [key]: { ...form, ...values } } } : state;
}

/** @param {State} state @param {{key: string}} action @returns {State} */
function noteFormClosed(state, { key }) {
  const { [key]: _, ...notes } = state.notes;
  return { ...state, notes };
}

/** @param {State} state @param {{key: string, file: import("../core/types.js").Note}} action @returns {State} */
function noteSaved(state, { key, file }) {
  const next = withForm(state, key, { busy: false, over: true, conflict: null });
  const known = state.note?.path === file.path;
  return known ? { ...next, note: { path: file.path, load: "ready", file } } : next;
}

/** @param {State} state @param {Partial<Backlog>} values @returns {State} */
function withBacklog(state, values) {
  return { ...state, backlog: { ...state.backlog, ...values } };
}
