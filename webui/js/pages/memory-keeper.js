/** Keeps memory's pages fresh: the files, the opened one, what is searched for, the backlog. */

import { Keeper } from "../core/keeper.js";
import { LONG_TERM, isDirty, typed } from "./memory.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").NoteForm} NoteForm
 *
 * @typedef {object} Browser
 * @property {(error: any) => string} words why a request failed
 * @property {(key: string) => string | null} read what the browser kept
 * @property {(key: string, value: string) => boolean} keep whether it keeps it; empty removes it
 *
 * @typedef {import("../core/keeper.js").Timers & Browser} Ports
 */

/** What was said may have been remembered: files are looked at anew so long after it. */
export const REFRESH_MS = 500;
/** The search begins once the typing rests. */
export const REST_MS = 250;

/** @extends {Keeper<Ports>} */
export class MemoryKeeper extends Keeper {
  /** @param {State} state @param {State} before */
  onChange(state, before) {
    const opened = state.route !== before.route || state.session !== before.session;
    this.closeLeft(state);
    if (state.session !== "in") return this.keepDrafts(state, before);
    if (opened) this.open(state);
    else if (this.isOutdated(state, before)) this.refresh();
    this.openForm(this.store.state); // what was just opened is being loaded
    this.search(state);
    this.keepDrafts(state, before);
  }

  // --- what is there

  /** @private @param {State} state  What the place one has come to shows. */
  open(state) {
    const { route } = state;
    if (/^(?:note$|backlog )/.test(state.confirming)) this.store.set({ confirming: "" });
    const path = route.view === "note" || route.view === "noteEdit" ? route.path : null;
    if (path !== null || state.note) this.store.dispatch({ type: "noteOpened", path });
    if (path !== null) void this.loadNote(path);
    if (route.view === "memory") void this.loadList();
    if (route.view === "memory" || route.view === "backlog") void this.loadBacklog();
  }

  /** @private @param {State} state @param {State} before */
  isOutdated(state, before) {
    const away = before.connection !== "online" && before.connection !== "connecting";
    const back = away && state.connection === "online";
    return back || (before.load === "ready" && state.messages !== before.messages);
  }

  /** @private */
  refresh() {
    this.soon(() => {
      const { route } = this.store.state;
      if (route.view === "memory") void this.loadList();
      if (route.view === "memory" || route.view === "backlog") void this.loadBacklog();
      if (route.view === "note") void this.loadNote(route.path);
    }, REFRESH_MS);
  }

  async loadList() {
    this.store.dispatch({ type: "memoryLoading" });
    try {
      this.store.dispatch({ type: "memoryLoaded", answer: await this.api.memory() });
    } catch {
      this.store.dispatch({ type: "memoryFailed" });
    }
  }

  /** @param {string} path */
  async loadNote(path) {
    try {
      this.store.dispatch({ type: "noteLoaded", path, file: await this.api.note(path) });
    } catch (error) {
      const load = /** @type {any} */ (error)?.status === 404 ? "missing" : "failed";
      this.store.dispatch({ type: "noteFailed", path, load });
    }
  }

  async loadBacklog() {
    this.store.dispatch({ type: "backlogLoading" });
    try {
      this.store.dispatch({ type: "backlogLoaded", answer: await this.api.backlog() });
    } catch {
      this.store.dispatch({ type: "backlogFailed" });
    }
  }

  // --- what is looked for

  /** @private @param {State} state */
  search({ memory }) {
    const asked = memory.query.trim();
    if (asked === memory.search.asked) return;
    this.wake();
    this.store.dispatch({ type: "searchAsked", asked });
    if (asked) this.rested(() => void this.ask(asked), REST_MS);
  }

  /** @param {string} asked  At once, and also once more. */
  searchNow(asked) {
    this.wake();
    this.store.dispatch({ type: "searchAsked", asked });
    void this.ask(asked);
  }

  /** @private @param {string} asked */
  async ask(asked) {
    try {
      const answer = await this.api.search(asked);
      this.store.dispatch({ type: "searchDone", asked, answer });
    } catch (error) {
      this.store.dispatch({ type: "searchDone", asked, error: this.ports.words(error) });
    }
  }

  // --- what is written

  /** @private @param {State} state  Forms that are sent or untouched go with their page. */
  closeLeft({ route, notes }) {
    const open = openForm(route);
    for (const form of Object.values(notes)) {
      if (form.key !== open && (form.over || !isDirty(form))) {
        this.store.dispatch({ type: "noteFormClosed", key: form.key });
      }
    }
  }

  /** @private @param {State} state */
  openForm({ route, note, notes }) {
    const key = openForm(route);
    if (!key || notes[key]) return;
    if (key !== "new" && note?.path !== key) return;
    if (key !== "new" && note?.load !== "ready" && note?.load !== "missing") return;
    const file = key === "new" || note?.load === "missing" ? null : (note?.file ?? null);
    if (file && !file.editable) return;
    const draft = draftOf(this.ports.read(`note.${key}`));
    if (!file && !draft && key !== "new" && key !== LONG_TERM) return;
    this.store.dispatch({ type: "noteFormOpened", form: formOf(key, file, draft) });
  }

  /** @param {State} state @param {State | null} before  What is typed outlives the page. */
  keepDrafts(state, before) {
    for (const [key, form] of Object.entries(state.notes)) {
      const was = before?.notes[key];
      if (was?.text === form.text && was.title === form.title && was.over === form.over) continue;
      const worth = isDirty(form) && !form.over;
      const { title, text, base } = form;
      const draft = worth ? JSON.stringify({ title, text, hash: base?.hash ?? null }) : "";
      const kept = this.ports.keep(`note.${key}`, draft);
      if (form.unkept === kept) {
        this.store.dispatch({ type: "noteTold", key, values: { unkept: !kept } });
      }
    }
  }
}

/** @param {import("../core/state-types.js").Route} route @returns {string} the key of the form it shows */
function openForm(route) {
  if (route.view === "noteNew") return "new";
  return route.view === "noteEdit" ? route.path : "";
}

/** @typedef {{title: string, text: string, hash: string | null}} Draft */

/** @param {string | null} kept @returns {Draft | null} */
function draftOf(kept) {
  try {
    const draft = JSON.parse(kept ?? "null");
    return typeof draft?.text === "string" ? draft : null;
  } catch {
    return null;
  }
}

/**
 * @param {string} key
 * @param {import("../core/types.js").Note | null} file
 * @param {Draft | null} draft what was typed and not saved, the last time
 * @returns {NoteForm}
 */
function formOf(key, file, draft) {
  /** @type {NoteForm} */
  const form = {
    key,
    title: "",
    text: typed(file?.text ?? ""),
    base: file && { hash: file.hash, text: file.text },
    error: "",
    conflict: null,
    restored: false,
    unkept: false,
    busy: false,
    over: false,
  };
  if (!draft || draft.text === form.text) return form;
  const mine = { ...form, title: draft.title ?? "", text: draft.text, restored: true };
  if (draft.hash === (file?.hash ?? null)) return mine;
  // It was typed over a version that is no more: what to do with the two is asked at once.
  const base = draft.hash === null ? null : { hash: draft.hash, text: null };
  return { ...mine, base, conflict: { current: file, shown: false } };
}
