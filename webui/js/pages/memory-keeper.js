/** Memory, its editors, the backlog and a reply's hits: state, when each is loaded, what is done. */

import { words } from "../core/api.js";
import { t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { heard, Resource } from "../core/resource.js";
import { dayKey } from "../core/time.js";
import { isDirty, LONG_TERM, notePath, noteText, numbered, typed, written } from "./memory.js";

/**
 * @typedef {object} Browser
 * @property {(key: string) => string | null} read what the browser kept
 * @property {(key: string, value: string) => boolean} keep whether it keeps it; empty removes it
 *
 * @typedef {import("../core/resource.js").Timers & Browser} Ports
 */

/** What was said may have been remembered: files are looked at anew so long after it. */
export const REFRESH_MS = 500;
/** The search begins once the typing rests. */
export const REST_MS = 250;
/** So many pages of older messages are loaded to reach one that was found. */
const PAGES_BACK = 60;
/** So many notes of one day may bear the same name. */
const NAMES_TRIED = 20;

// --- how the state changes

/** @returns {Pick<State, "memory" | "note" | "notes" | "backlog" | "hits">} */
export function noMemory() {
  return {
    memory: { load: "idle", files: [], index: null, query: "", search: NO_SEARCH, whole: [] },
    note: null,
    notes: {},
    backlog: { load: "idle", items: [], draft: "", busy: "", error: "" },
    hits: {},
  };
}

/** @type {MemorySearch} */
const NO_SEARCH = { asked: "", state: "idle", hits: [], fallback: null, error: "" };
/** @type {TurnHits} */
const NO_HITS = { open: false, load: "idle", hits: [] };

/** @type {Reducers} */
export const MEMORY_ACTIONS = {
  memoryTold: (state, told) => withMemory(state, heard(state.memory, told)),
  memoryWhole: (state, { group }) => withMemory(state, { whole: [...state.memory.whole, group] }),
  searchTyped: (state, { query }) => withMemory(state, { query }),
  searchAsked: (state, { asked }) =>
    withSearch(state, asked ? { asked, state: "asking", error: "" } : NO_SEARCH),
  searchTold,
  noteOpened,
  noteHeard,
  noteFormOpened: (state, { form }) => ({ ...state, notes: { ...state.notes, [form.key]: form } }),
  noteFormClosed: (state, { key }) => {
    const { [key]: _, ...notes } = state.notes;
    return { ...state, notes };
  },
  noteTyped: (state, { key, values }) => withForm(state, key, { ...values, error: "" }),
  noteTold: (state, { key, values }) => withForm(state, key, values),
  noteSaved,
  backlogHeard: (state, told) => ({ ...state, backlog: heard(state.backlog, told) }),
  backlogTold: (state, { values }) => ({ ...state, backlog: { ...state.backlog, ...values } }),
  hitsTold: (state, { turnId, values }) => ({
    ...state,
    hits: { ...state.hits, [turnId]: { ...(state.hits[turnId] ?? NO_HITS), ...values } },
  }),
};

/** @param {State} state @param {Partial<MemoryPage>} values @returns {State} */
function withMemory(state, values) {
  return { ...state, memory: { ...state.memory, ...values } };
}

/** @param {State} state @param {Partial<MemorySearch>} values */
function withSearch(state, values) {
  return withMemory(state, { search: { ...state.memory.search, ...values } });
}

/**
 * The answer to something else than was asked last is not heard.
 *
 * @param {State} state
 * @param {import("../core/resource.js").Told & {asked: string}} action
 */
function searchTold(state, { asked, load, data, error }) {
  if (load === "loading" || state.memory.search.asked !== asked) return state;
  if (load !== "ready")
    return withSearch(state, { state: "failed", hits: [], error: words(error) });
  const { hits, fallback = null } = data;
  return withSearch(state, { state: load, hits, fallback, error: "" });
}

/** @param {State} state @param {{path: string | null}} action @returns {State} */
function noteOpened(state, { path }) {
  if (path === null) return { ...state, note: null };
  const file = state.note?.path === path ? state.note.file : null;
  return { ...state, note: { path, load: "loading", file } };
}

/**
 * @param {State} state
 * @param {{path: string, load: NotePage["load"], data?: Note}} action
 * @returns {State}
 */
function noteHeard(state, { path, load, data }) {
  const { note } = state;
  if (note?.path !== path || load === "loading") return state;
  return { ...state, note: { path, load, file: data ?? note.file } };
}

/** @param {State} state @param {string} key @param {Partial<NoteForm>} values @returns {State} */
function withForm(state, key, values) {
  const form = state.notes[key];
  return form ? { ...state, notes: { ...state.notes, [key]: { ...form, ...values } } } : state;
}

/** @param {State} state @param {{key: string, file: Note}} action @returns {State} */
function noteSaved(state, { key, file }) {
  const next = withForm(state, key, { busy: false, over: true, conflict: null });
  return noteHeard(next, { path: file.path, load: "ready", data: file });
}

// --- when each is loaded

export class MemoryKeeper {
  /** @param {Store} store @param {Api} api @param {Ports} ports */
  constructor(store, api, ports) {
    this.store = store;
    this.ports = ports;
    this.list = new Resource(ports, api.memory, (told) =>
      store.dispatch({ type: "memoryTold", ...told }),
    );
    this.note = new Resource(ports, api.note, (told, path) =>
      store.dispatch({ type: "noteHeard", path, ...told }),
    );
    this.backlog = new Resource(ports, api.backlog, (told) =>
      store.dispatch({ type: "backlogHeard", ...told }),
    );
    this.found = new Resource(ports, api.search, (told, asked) =>
      store.dispatch({ type: "searchTold", asked, ...told }),
    );
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    const opened = state.route !== before.route || state.session !== before.session;
    this.closeLeft(state);
    if (state.session !== "in") return this.keepDrafts(state, before);
    if (opened) this.open(state);
    else if (this.isOutdated(state, before)) this.list.soon(() => this.look(), REFRESH_MS);
    this.openForm(this.store.state); // what was just opened is being loaded
    this.search(state);
    this.keepDrafts(state, before);
  }

  /** @private @param {State} state  What the place one has come to shows. */
  open({ route, confirming, note }) {
    if (/^(?:note$|backlog )/.test(confirming)) this.store.set({ confirming: "" });
    const path = route.view === "note" || route.view === "noteEdit" ? route.path : null;
    if (path !== null || note) this.store.dispatch({ type: "noteOpened", path });
    this.look();
    if (route.view === "noteEdit") void this.note.load(path);
  }

  /** @private @param {State} state @param {State} before */
  isOutdated(state, before) {
    const away = before.connection !== "online" && before.connection !== "connecting";
    const back = away && state.connection === "online";
    return back || (before.load === "ready" && state.messages !== before.messages);
  }

  /** @private  At what is read; what is being edited is left alone. */
  look() {
    const { route } = this.store.state;
    if (route.view === "memory") void this.list.load();
    if (route.view === "memory" || route.view === "backlog") void this.backlog.load();
    if (route.view === "note") void this.note.load(route.path);
  }

  /** @private @param {State} state */
  search({ memory }) {
    const asked = memory.query.trim();
    if (asked === memory.search.asked) return;
    this.store.dispatch({ type: "searchAsked", asked });
    if (asked) this.found.rested(asked, REST_MS);
    else this.found.wake();
  }

  /** @param {string} asked  At once, and also once more. */
  searchNow(asked) {
    this.found.wake();
    this.store.dispatch({ type: "searchAsked", asked });
    void this.found.load(asked);
  }

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

/** @param {Route} route @returns {string} the key of the form it shows */
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
 * @param {Note | null} file
 * @param {Draft | null} draft what was typed and not saved, the last time
 * @returns {NoteForm}
 */
function formOf(key, file, draft) {
  const flags = { restored: false, unkept: false, busy: false, over: false };
  const base = file && { hash: file.hash, text: file.text };
  const text = typed(file?.text ?? "");
  /** @type {NoteForm} */
  const form = { key, title: "", text, base, error: "", conflict: null, ...flags };
  if (!draft || draft.text === form.text) return form;
  const mine = { ...form, title: draft.title ?? "", text: draft.text, restored: true };
  if (draft.hash === (file?.hash ?? null)) return mine;
  // It was typed over a version that is no more: what to do with the two is asked at once.
  const old = draft.hash === null ? null : { hash: draft.hash, text: null };
  return { ...mine, base: old, conflict: { current: file, shown: false } };
}

// --- what the user can do

/** @typedef {"go" | "notify" | "signOut" | "focus" | "showMessage" | "loadOlder"} Used of the page's actions */

export class MemoryActions {
  /**
   * @param {Store} store
   * @param {Api} api
   * @param {Pick<Actions, Used>} page
   * @param {MemoryKeeper} keeper
   */
  constructor(store, api, page, keeper) {
    this.store = store;
    this.api = api;
    this.page = page;
    this.keeper = keeper;
  }

  /** @param {string} query */
  type(query) {
    this.store.dispatch({ type: "searchTyped", query });
  }

  /** The search is wanted now, not when the typing rests; or once more. */
  search() {
    const query = this.store.state.memory.query.trim();
    if (query) this.keeper.searchNow(query);
  }

  clear() {
    this.type("");
    this.page.focus("#memory-search");
  }

  /** @param {string} group  All of its files. */
  showWhole(group) {
    this.store.dispatch({ type: "memoryWhole", group });
  }

  /** @param {string} id @param {string | null} day of a message that was found; older ones are loaded */
  async openMessage(id, day) {
    this.store.dispatch({ type: "pending", id, what: "open" });
    for (let page = 0; page < PAGES_BACK && this.mayLieFurtherBack(id, day); page += 1) {
      await this.page.loadOlder();
    }
    this.store.dispatch({ type: "pending", id, what: "" });
    if (this.isLoaded(id)) this.page.showMessage(id);
    else this.page.notify(t("memory.messageFar"), "error");
  }

  /** @private @param {string} id */
  isLoaded(id) {
    return this.store.state.messages.some((message) => message.id === id);
  }

  /** @private @param {string} id @param {string | null} day */
  mayLieFurtherBack(id, day) {
    const { before, older, messages, zone } = this.store.state;
    if (this.isLoaded(id) || !before || older === "failed") return false;
    return !day || !messages.length || dayKey(messages[0].createdAt, zone || undefined) >= day;
  }

  /** @param {string} turnId  What memory a reply was given: shown, or put away. */
  async toggleHits(turnId) {
    const known = this.store.state.hits[turnId];
    const open = !known?.open;
    this.store.dispatch({ type: "hitsTold", turnId, values: { open } });
    if (open && known?.load !== "ready") await this.loadHits(turnId);
  }

  /** @param {string} turnId */
  async loadHits(turnId) {
    const tell = (/** @type {Partial<TurnHits>} */ values) =>
      this.store.dispatch({ type: "hitsTold", turnId, values });
    tell({ load: "loading" });
    try {
      const { hits } = await this.api.turnMemory(turnId);
      tell({ load: "ready", hits });
    } catch (error) {
      tell({ load: "failed" });
      this.leave(error);
    }
  }

  /** @private @param {any} error */
  leave(error) {
    if (error?.status === 401) this.page.signOut();
  }

  // --- writing

  /** @param {string} key @param {Partial<NoteForm>} values */
  edit(key, values) {
    this.store.dispatch({ type: "noteTyped", key, values });
  }

  /** @param {string} key */
  async save(key) {
    const form = this.store.state.notes[key];
    if (!form || form.busy || form.over) return;
    if (key === "new") {
      if (!form.text.trim()) return this.refuse(key, t("note.needText"));
      return this.create(form);
    }
    if (!isDirty(form)) return this.close(key, key);
    return this.put(form, form.base?.hash ?? null);
  }

  /** @param {string} key  Mine instead of the other version, which was looked at or not. */
  async overwrite(key) {
    const form = this.store.state.notes[key];
    if (!form?.conflict || form.busy) return;
    await this.put(form, form.conflict.current?.hash ?? null);
  }

  /** @param {string} key  The other version instead of mine. */
  takeOther(key) {
    const current = this.store.state.notes[key]?.conflict?.current;
    const values = current
      ? { text: typed(current.text), base: { hash: current.hash, text: current.text } }
      : { text: "", base: null };
    this.told(key, { ...values, conflict: null, restored: false });
    this.page.focus("#note-text");
  }

  /** @param {string} key  The other version, in sight or not. */
  toggleOther(key) {
    const conflict = this.store.state.notes[key]?.conflict;
    if (conflict) this.told(key, { conflict: { ...conflict, shown: !conflict.shown } });
  }

  /** @param {string} key  What the browser had kept is not wanted any more. */
  dropRestored(key) {
    const base = this.store.state.notes[key]?.base;
    if (key === "new") this.told(key, { title: "", text: "", restored: false });
    else if (base?.text != null) this.told(key, { text: typed(base.text), restored: false });
    else this.takeOther(key);
    this.page.focus("#note-text");
  }

  /** @param {string} key  Leave it; before something is lost, one is asked. */
  cancel(key) {
    const form = this.store.state.notes[key];
    if (form && isDirty(form)) this.ask("note", "#note-keep");
    else this.close(key, key);
  }

  keepTyping() {
    this.ask("", "#note-text");
  }

  /** @param {string} key  Leave it; what was typed is gone. */
  discard(key) {
    this.store.set({ confirming: "" });
    this.close(key, key);
  }

  /** @private @param {string} confirming @param {string} focus */
  ask(confirming, focus) {
    this.store.set({ confirming });
    this.page.focus(focus);
  }

  /** @private @param {string} key @param {string} path  Where its text is read. */
  close(key, path) {
    this.told(key, { over: true, busy: false });
    const missing = path === key && this.store.state.note?.load === "missing";
    const nowhere = path === "new" || missing;
    this.page.go(nowhere ? { view: "memory" } : { view: "note", path, line: null });
  }

  /** @private @param {NoteForm} form @param {string | null} hash of the version it takes the place of */
  async put(form, hash) {
    const { key } = form;
    const text = written(form.text, [form.base?.text, form.conflict?.current?.text]);
    this.told(key, { busy: true, error: "" });
    try {
      this.saved(key, await this.api.saveNote(key, { text, hash }), t("note.saved"));
    } catch (error) {
      const { status, data } = /** @type {any} */ (error);
      if (status !== 409) return this.onError(key, error);
      const current = data?.current ?? null;
      if (current?.text === text) return this.saved(key, current, t("note.saved"));
      this.told(key, { busy: false, conflict: { current, shown: false } });
      this.page.focus("#note-conflict");
    }
  }

  /** @private @param {NoteForm} form  A name that is taken gets a number. */
  async create(form) {
    const { now, zone } = this.store.state;
    const title = form.title.trim();
    const text = noteText(title, form.text);
    const name = title || form.text.trim().split("\n", 1)[0];
    const path = notePath(dayKey(now, zone || undefined), name, newId("mem"));
    this.told("new", { busy: true, error: "" });
    try {
      this.saved("new", await this.createAs(path, text, 1), t("note.created"));
    } catch (error) {
      this.onError("new", error);
    }
  }

  /** @private @param {string} path @param {string} text @param {number} number @returns {Promise<Note>} */
  async createAs(path, text, number) {
    try {
      return await this.api.saveNote(numbered(path, number), { text, hash: null });
    } catch (error) {
      const { status, data } = /** @type {any} */ (error);
      if (status === 409 && data?.current?.text === text) return data.current; // sent twice
      if (status !== 409 || number >= NAMES_TRIED) throw error;
      return this.createAs(path, text, number + 1);
    }
  }

  /** @private @param {string} key @param {Note} file @param {string} text */
  saved(key, file, text) {
    this.store.dispatch({ type: "noteSaved", key, file });
    this.close(key, file.path);
    this.page.notify(text);
  }

  /** @private @param {string} key @param {any} error */
  onError(key, error) {
    this.refuse(key, words(error));
    this.leave(error);
  }

  /** @private @param {string} key @param {string} error */
  refuse(key, error) {
    this.told(key, { busy: false, error });
    this.page.focus("#note-error");
  }

  /** @private @param {string} key @param {Partial<NoteForm>} values */
  told(key, values) {
    this.store.dispatch({ type: "noteTold", key, values });
  }

  // --- the backlog

  /** @param {string} draft */
  typeItem(draft) {
    this.tellBacklog({ draft, error: "" });
  }

  async addItem() {
    const draft = this.store.state.backlog.draft.trim().replace(/\s+/g, " ");
    if (draft && (await this.changeItem("add", draft))) this.tellBacklog({ draft: "" });
  }

  /** @param {string} item @param {boolean} done */
  async tick(item, done) {
    await this.changeItem(done ? "done" : "undone", item);
  }

  /** @param {string} item  Whether it is to be removed is asked. */
  askRemoval(item) {
    this.ask(`backlog ${item}`, "#backlog-keep");
  }

  keepItem() {
    this.ask("", "#backlog-item");
  }

  /** @param {string} item */
  async removeItem(item) {
    this.store.set({ confirming: "" });
    await this.changeItem("remove", item);
    this.page.focus("#backlog-item");
  }

  /** @private @param {"add" | "done" | "undone" | "remove"} action @param {string} item */
  async changeItem(action, item) {
    this.tellBacklog({ busy: `${action} ${item}`, error: "" });
    try {
      const data = await this.api.changeBacklog({ action, item });
      this.store.dispatch({ type: "backlogHeard", load: "ready", data });
      return true;
    } catch (error) {
      this.tellBacklog({ error: words(error) });
      this.leave(error);
      void this.keeper.backlog.load(); // it may have changed under our hands
      return false;
    } finally {
      this.tellBacklog({ busy: "" });
    }
  }

  /** @private @param {Partial<BacklogPage>} values */
  tellBacklog(values) {
    this.store.dispatch({ type: "backlogTold", values });
  }
}
