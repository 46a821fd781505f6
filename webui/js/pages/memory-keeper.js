/** Memory, its editors, the backlog and a reply's hits: when each is loaded, what can be done. */

import { t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { readPref, writePref } from "../core/prefs.js";
import { Resource, stateResource, withLoaded } from "../core/resource.js";
import { dayKey } from "../core/time.js";
import { isDirty, LONG_TERM, noteStem, noteText, typed, written } from "./memory.js";

/** What was said may have been remembered: files are looked at anew so long after it. */
export const REFRESH_MS = 500;
/** The search begins once the typing rests. */
export const REST_MS = 250;
/** So many pages of older messages are loaded to reach one that was found. */
const PAGES_BACK = 60;
/** So many notes of one day may bear the same name. */
const NAMES_TRIED = 20;

/** @type {Pick<MemoryPage, "asked" | "stage" | "hits" | "fallback" | "error">} */
const NO_SEARCH = { asked: "", stage: "idle", hits: [], fallback: null, error: "" };
/** @type {TurnHits} */
const NO_HITS = { open: false, load: "idle", hits: [], run: null, cost: {} };

/** @returns {Pick<State, "memory" | "note" | "notes" | "backlog" | "hits">} */
export function noMemory() {
  return {
    memory: { load: "idle", files: [], index: null, query: "", whole: [], ...NO_SEARCH },
    note: null,
    notes: {},
    backlog: { load: "idle", items: [], draft: "", busy: "", error: "" },
    hits: {},
  };
}

export class MemoryActions {
  /** @param {Store} store @param {Api} api @param {Actions} page */
  constructor(store, api, page) {
    this.store = store;
    this.api = api;
    this.page = page;
    this.list = stateResource(store, "memory", api.memory);
    this.backlog = stateResource(store, "backlog", api.backlog);
    this.hits = new Resource(api.turn, (told, turnId) =>
      store.patch("hits", { [turnId]: withLoaded(store.state.hits[turnId] ?? NO_HITS, told) }),
    );
    this.note = new Resource(api.note, (told, path) => this.onNote(path, told));
    this.found = new Resource(api.search, (told, asked) => this.onFound(asked, told));
  }

  // --- when each is loaded

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    const opened = state.route !== before.route || state.session !== before.session;
    if (opened) this.closeLeft(state);
    if (state.session !== "in") return;
    if (opened) this.open(state);
    else if (isOutdated(state, before)) this.list.soon(() => this.look(), REFRESH_MS);
  }

  /** @private @param {State} state  The place one has come to shows. */
  open({ route, note }) {
    const path = "path" in route ? route.path : null;
    const file = note?.path === path ? note.file : null;
    this.store.set({ confirming: "", note: path === null ? null : { path, load: "loading", file } });
    if (route.view === "noteNew") this.openForm("new", null);
    if (route.view === "noteEdit") void this.note.load(path);
    this.look();
  }

  /** @private  At what is read; what is being edited is left alone. */
  look() {
    const { route } = this.store.state;
    if (route.view === "memory") void this.list.load();
    if (route.view === "memory" || route.view === "backlog") void this.backlog.load();
    if (route.view === "note") void this.note.load(route.path);
  }

  /** @private @param {string} path @param {Loaded} told */
  onNote(path, { load, data }) {
    const { note, route } = this.store.state;
    if (note?.path !== path || load === "loading") return;
    this.store.set({ note: { path, load, file: data ?? note.file } });
    if (load !== "failed" && shownForm(route) === path) this.openForm(path, data ?? null);
  }

  /** @private @param {string} key @param {Note | null} file  What was typed the last time comes back. */
  openForm(key, file) {
    if (this.store.state.notes[key] || file?.editable === false) return;
    /** @type {NoteDraft | null} */
    const draft = JSON.parse(readPref(`note.${key}`) ?? "null");
    const begins = key === "new" || key === LONG_TERM; // other files are not made here
    if (file || draft || begins) this.setForm(formOf(key, file, draft));
  }

  /** @private @param {State} state  Forms that are sent or untouched go with their page. */
  closeLeft({ route, notes }) {
    const open = shownForm(route);
    const left = Object.entries(notes).filter(
      ([key, form]) => key === open || (isDirty(form) && !form.over),
    );
    this.store.set({ notes: Object.fromEntries(left) });
  }

  // --- searching

  /** @param {string} query */
  type(query) {
    const asked = query.trim();
    const isNew = asked !== this.store.state.memory.asked;
    this.store.patch("memory", { query, asked });
    if (asked && isNew) this.found.rested(asked, REST_MS);
    else if (!asked) this.store.patch("memory", NO_SEARCH);
  }

  /** The search is wanted now, not when the typing rests; or once more. */
  search() {
    const { asked } = this.store.state.memory;
    if (asked) void this.found.load(asked);
  }

  clear() {
    this.type("");
    this.page.focus("#memory-search");
  }

  /** @private @param {string} asked @param {Loaded} told */
  onFound(asked, { load, data, error }) {
    const { memory } = this.store.state;
    if (memory.asked !== asked) return;
    const { hits, fallback } = data ?? (error ? NO_SEARCH : memory);
    const why = error ? this.page.why(error) : "";
    this.store.patch("memory", { stage: error ? "failed" : load, hits, fallback, error: why });
  }

  /** @param {string} group  All of its files. */
  showWhole(group) {
    this.store.patch("memory", { whole: [...this.store.state.memory.whole, group] });
  }

  /** @param {string} id @param {string | null} day of a message that was found; older ones are loaded */
  async openMessage(id, day) {
    this.store.patch("pending", { [id]: "open" });
    const isBack = () => mayLieFurtherBack(id, day, this.store.state);
    for (let page = 0; page < PAGES_BACK && isBack(); page += 1) await this.page.loadOlder();
    this.store.patch("pending", { [id]: "" });
    if (isLoaded(id, this.store.state)) this.page.showMessage(id);
    else this.page.notify(t("memory.messageFar"), "error");
  }

  /** @param {string} turnId  What memory a reply was given: shown, or put away. */
  async toggleHits(turnId) {
    const known = this.store.state.hits[turnId] ?? NO_HITS;
    this.store.patch("hits", { [turnId]: { ...known, open: !known.open } });
    if (!known.open && known.load !== "ready") await this.hits.load(turnId);
  }

  // --- writing

  /** @private @param {NoteForm} form  What is typed outlives the page. */
  setForm(form) {
    const { key, title, text, base } = form;
    const worth = isDirty(form) && !form.over;
    const draft = worth ? JSON.stringify({ title, text, hash: base?.hash ?? null }) : "";
    const unkept = !writePref(`note.${key}`, draft);
    this.store.patch("notes", { [key]: { ...form, unkept } });
  }

  /** @param {string} key @param {Partial<NoteForm>} values  Unless it was left. */
  edit(key, values) {
    const form = this.store.state.notes[key];
    if (form) this.setForm({ ...form, error: "", ...values });
  }

  /** @param {string} key */
  async save(key) {
    const form = this.store.state.notes[key];
    if (form.busy || form.over) return;
    if (key === "new" && !form.text.trim()) this.refuse(key, t("note.needText"));
    else if (key !== "new" && !isDirty(form)) this.close(key);
    else await this.send(form, form.base?.hash ?? null);
  }

  /** @param {string} key  Mine instead of the other version, which was looked at or not. */
  async overwrite(key) {
    const form = this.store.state.notes[key];
    await this.send(form, form.conflict?.current?.hash ?? null);
  }

  /** @param {string} key @param {NoteForm["base"]} version  Instead of mine. */
  startFrom(key, version) {
    const base = version && { hash: version.hash, text: version.text };
    const text = typed(base?.text ?? "");
    this.edit(key, { title: "", text, base, conflict: null, restored: false });
    this.page.focus("#note-text");
  }

  /** @param {string} key  Leave it; before something is lost, one is asked. */
  cancel(key) {
    if (isDirty(this.store.state.notes[key])) this.page.ask("note");
    else this.close(key);
  }

  /** @param {string} key @param {string} [path] where its text is read; what was typed is gone */
  close(key, path = key) {
    this.edit(key, { over: true, busy: false });
    const missing = path === key && this.store.state.note?.load === "missing";
    const nowhere = path === "new" || missing;
    this.page.go(nowhere ? { view: "memory" } : { view: "note", path, line: null });
  }

  /** @private @param {NoteForm} form @param {string | null} hash of the version it takes the place of */
  async send(form, hash) {
    const { key, title, base, conflict } = form;
    const isNew = key === "new";
    const sources = [base?.text, conflict?.current?.text];
    const text = isNew ? noteText(title, form.text) : written(form.text, sources);
    this.edit(key, { busy: true });
    try {
      const file = await (isNew ? this.create(title, text) : this.put(key, text, hash));
      this.onNote(file.path, { load: "ready", data: file });
      this.close(key, file.path);
      this.page.notify(t(isNew ? "note.created" : "note.saved"));
    } catch (error) {
      const { status, data } = /** @type {any} */ (error);
      if (isNew || status !== 409) return this.refuse(key, this.page.why(error));
      this.edit(key, { busy: false, conflict: { current: data?.current ?? null, shown: false } });
      this.page.focus("#note-conflict");
    }
  }

  /** @private @param {string} path @param {string} text @param {string | null} hash @returns {Promise<Note>} */
  async put(path, text, hash) {
    try {
      return await this.api.saveNote(path, { text, hash });
    } catch (error) {
      const { status, data } = /** @type {any} */ (error);
      if (status === 409 && data?.current?.text === text) return data.current; // sent twice
      throw error;
    }
  }

  /** @private @param {string} title @param {string} text  A name that is taken gets a number. */
  async create(title, text) {
    const { now, zone } = this.store.state;
    const name = title.trim() || text.split("\n", 1)[0];
    const stem = noteStem(dayKey(now, zone || undefined), name, newId("mem"));
    for (let number = 1; ; number += 1) {
      const path = number > 1 ? `${stem}-${number}.md` : `${stem}.md`;
      try {
        return await this.put(path, text, null);
      } catch (error) {
        const taken = /** @type {any} */ (error).status === 409;
        if (!taken || number === NAMES_TRIED) throw error;
      }
    }
  }

  /** @private @param {string} key @param {string} error */
  refuse(key, error) {
    this.edit(key, { busy: false, error });
    this.page.focus("#note-error");
  }

  // --- the backlog

  /** @param {string} draft */
  typeItem(draft) {
    this.store.patch("backlog", { draft, error: "" });
  }

  async addItem() {
    const draft = this.store.state.backlog.draft.trim().replace(/\s+/g, " ");
    if (draft && (await this.changeItem("add", draft))) this.typeItem("");
  }

  /** @param {string} item */
  async removeItem(item) {
    await this.changeItem("remove", item);
    this.page.focus("#backlog-item");
  }

  /** @param {"add" | "done" | "undone" | "remove"} action @param {string} item */
  async changeItem(action, item) {
    this.store.patch("backlog", { busy: `${action} ${item}`, error: "" });
    try {
      const { items } = await this.api.changeBacklog({ action, item });
      this.store.patch("backlog", { items, busy: "" });
      return true;
    } catch (error) {
      this.store.patch("backlog", { busy: "", error: this.page.why(error) });
      void this.backlog.load(); // it may have changed under our hands
      return false;
    }
  }
}

/** @param {State} state @param {State} before  Something was said, or the line was down. */
function isOutdated(state, before) {
  const away = before.connection !== "online" && before.connection !== "connecting";
  const back = away && state.connection === "online";
  return back || (before.load === "ready" && state.messages !== before.messages);
}

/** @param {string} id @param {State} state */
const isLoaded = (id, { messages }) => messages.some((message) => message.id === id);

/** @param {string} id @param {string | null} day @param {State} state */
function mayLieFurtherBack(id, day, state) {
  const { before, older, messages, zone } = state;
  if (isLoaded(id, state) || !before || older === "failed") return false;
  return !day || !messages.length || dayKey(messages[0].createdAt, zone || undefined) >= day;
}

/** @param {Route} route @returns {string} the key of the form it shows */
function shownForm(route) {
  if (route.view === "noteNew") return "new";
  return route.view === "noteEdit" ? route.path : "";
}

/** @param {string} key @param {Note | null} file @param {NoteDraft | null} draft @returns {NoteForm} */
function formOf(key, file, draft) {
  const flags = { restored: false, unkept: false, busy: false, over: false };
  const base = file && { hash: file.hash, text: file.text };
  const text = typed(file?.text ?? "");
  const form = { key, title: "", text, base, error: "", conflict: null, ...flags };
  if (!draft || draft.text === text) return form;
  const mine = { ...form, title: draft.title ?? "", text: draft.text, restored: true };
  if (draft.hash === (file?.hash ?? null)) return mine;
  // It was typed over a version that is no more: what to do with the two is asked at once.
  const old = draft.hash === null ? null : { hash: draft.hash, text: null };
  return { ...mine, base: old, conflict: { current: file, shown: false } };
}
