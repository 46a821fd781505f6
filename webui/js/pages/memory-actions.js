/** What the user can do with memory, its files and the backlog. */

import { newId } from "../core/ids.js";
import { t } from "../core/i18n.js";
import { isDirty, notePath, noteText, numbered, typed, written } from "./memory.js";
import { dayKey } from "../core/time.js";

/**
 * @typedef {import("../core/state-types.js").NoteForm} NoteForm
 * @typedef {import("../core/types.js").Note} NoteFile
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../core/api.js").Api} Api
 *
 * @typedef {object} Help what the rest of the page does for memory
 * @property {(route: import("../core/state-types.js").Route) => void} go
 * @property {(text: string, tone?: "info" | "error") => void} notify
 * @property {(error: any) => string} words why a request failed
 * @property {() => void} signOut
 * @property {(selector: string) => void} focus
 * @property {(messageId: string) => void} showMessage
 * @property {() => Promise<void>} loadOlder
 * @property {() => void} reloadBacklog
 * @property {(query: string) => void} searchNow
 */

/** So many pages of older messages are loaded to reach one that was found. */
const PAGES_BACK = 60;
/** So many notes of one day may bear the same name. */
const NAMES_TRIED = 20;

export class MemoryActions {
  /** @param {Store} store @param {Api} api @param {Help} help */
  constructor(store, api, help) {
    this.store = store;
    this.api = api;
    this.help = help;
  }

  // --- finding

  /** @param {string} query */
  type(query) {
    this.store.dispatch({ type: "searchTyped", query });
  }

  /** The search is wanted now, not when the typing rests; or once more. */
  search() {
    const query = this.store.state.memory.query.trim();
    if (query) this.help.searchNow(query);
  }

  clear() {
    this.type("");
    this.help.focus("#memory-search");
  }

  /** @param {string} group  All of its files. */
  showWhole(group) {
    this.store.dispatch({ type: "memoryWhole", group });
  }

  /**
   * Show a message that was found, loading older ones until it is there.
   *
   * @param {string} id
   * @param {string | null} day on which it was said
   */
  async openMessage(id, day) {
    this.store.dispatch({ type: "pending", id, what: "open" });
    for (let page = 0; page < PAGES_BACK && this.mayLieFurtherBack(id, day); page += 1) {
      await this.help.loadOlder();
    }
    this.store.dispatch({ type: "pending", id, what: "" });
    if (this.isLoaded(id)) this.help.showMessage(id);
    else this.help.notify(t("memory.messageFar"), "error");
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
    this.store.dispatch({ type: "hitsTold", turnId, values: { load: "loading" } });
    try {
      const { hits } = await this.api.turnMemory(turnId);
      this.store.dispatch({ type: "hitsTold", turnId, values: { load: "ready", hits } });
    } catch (error) {
      this.store.dispatch({ type: "hitsTold", turnId, values: { load: "failed" } });
      if (/** @type {any} */ (error)?.status === 401) this.help.signOut();
    }
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
    if (!isDirty(form)) return this.leave(key, key);
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
    this.help.focus("#note-text");
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
    this.help.focus("#note-text");
  }

  /** @param {string} key  Leave it; before something is lost, one is asked. */
  cancel(key) {
    const form = this.store.state.notes[key];
    if (form && isDirty(form)) {
      this.store.set({ confirming: "note" });
      this.help.focus("#note-keep");
    } else this.leave(key, key);
  }

  keepTyping() {
    this.store.set({ confirming: "" });
    this.help.focus("#note-text");
  }

  /** @param {string} key  Leave it; what was typed is gone. */
  discard(key) {
    this.store.set({ confirming: "" });
    this.leave(key, key);
  }

  /** @private @param {string} key @param {string} path  Where its text is read. */
  leave(key, path) {
    this.told(key, { over: true, busy: false });
    const missing = path === key && this.store.state.note?.load === "missing";
    const nowhere = path === "new" || missing;
    this.help.go(nowhere ? { view: "memory" } : { view: "note", path, line: null });
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
      this.help.focus("#note-conflict");
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

  /** @private @param {string} path @param {string} text @param {number} number @returns {Promise<NoteFile>} */
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

  /** @private @param {string} key @param {NoteFile} file @param {string} text */
  saved(key, file, text) {
    this.store.dispatch({ type: "noteSaved", key, file });
    this.leave(key, file.path);
    this.help.notify(text);
  }

  /** @private @param {string} key @param {any} error */
  onError(key, error) {
    this.refuse(key, this.help.words(error));
    if (error?.status === 401) this.help.signOut();
  }

  /** @private @param {string} key @param {string} error */
  refuse(key, error) {
    this.told(key, { busy: false, error });
    this.help.focus("#note-error");
  }

  /** @private @param {string} key @param {Partial<NoteForm>} values */
  told(key, values) {
    this.store.dispatch({ type: "noteTold", key, values });
  }

  // --- the backlog

  /** @param {string} draft */
  typeItem(draft) {
    this.store.dispatch({ type: "backlogTold", values: { draft, error: "" } });
  }

  async addItem() {
    const draft = this.store.state.backlog.draft.trim().replace(/\s+/g, " ");
    if (!draft) return;
    if (await this.changeItem("add", draft)) {
      this.store.dispatch({ type: "backlogTold", values: { draft: "" } });
    }
  }

  /** @param {string} item @param {boolean} done */
  async tick(item, done) {
    await this.changeItem(done ? "done" : "undone", item);
  }

  /** @param {string} item  Whether it is to be removed is asked. */
  askRemoval(item) {
    this.store.set({ confirming: `backlog ${item}` });
    this.help.focus("#backlog-keep");
  }

  keepItem() {
    this.store.set({ confirming: "" });
    this.help.focus("#backlog-item");
  }

  /** @param {string} item */
  async removeItem(item) {
    this.store.set({ confirming: "" });
    await this.changeItem("remove", item);
    this.help.focus("#backlog-item");
  }

  /** @private @param {"add" | "done" | "undone" | "remove"} action @param {string} item */
  async changeItem(action, item) {
    const told = (/** @type {object} */ values) =>
      this.store.dispatch({ type: "backlogTold", values });
    told({ busy: `${action} ${item}`, error: "" });
    try {
      const answer = await this.api.changeBacklog({ action, item });
      this.store.dispatch({ type: "backlogLoaded", answer });
      return true;
    } catch (error) {
      told({ error: this.help.words(error) });
      if (/** @type {any} */ (error)?.status === 401) this.help.signOut();
      this.help.reloadBacklog(); // it may have changed under our hands
      return false;
    } finally {
      told({ busy: "" });
    }
  }
}
