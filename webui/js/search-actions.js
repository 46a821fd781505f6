/** Looking for something everywhere, and going to it in the conversation. */

import { t } from "./i18n.js";
import { lineOf } from "./search-state.js";

/**
 * @typedef {object} Help what the rest of the page does for it
 * @property {(text: string, tone?: "info" | "error") => void} notify
 * @property {(error: any) => string} words why a request failed
 * @property {() => void} signOut
 * @property {(selector: string) => void} focus
 * @property {(messageId: string) => void} showMessage
 * @property {() => void} settle what is typed is asked for at once
 * @property {() => Promise<void>} load the whole picture anew
 */

export class SearchActions {
  /** @param {import("./store.js").Store} store @param {import("./api.js").Api} api @param {Help} help */
  constructor(store, api, help) {
    this.store = store;
    this.api = api;
    this.help = help;
  }

  /** @param {string} query */
  type(query) {
    this.store.dispatch({ type: "searchTyped", query });
  }

  /** It is wanted now, not when the typing rests; or once more. */
  now() {
    this.help.settle();
  }

  clear() {
    this.type("");
    this.help.settle();
    this.help.focus("#search-field");
  }

  /**
   * A message, shown where it was said, however long ago.
   * @param {string} id
   * @param {string | null} [day] about when that was: there it is found at once
   */
  async openMessage(id, day) {
    if (!lineOf(this.store.state.messages, id) && !(await this.openPast(id, day))) return;
    this.help.showMessage(lineOf(this.store.state.messages, id)?.id ?? id);
  }

  /** @private @param {string} id @param {string | null} [day] @returns {Promise<boolean>} whether it is there now */
  async openPast(id, day) {
    this.store.dispatch({ type: "pending", id, what: "open" });
    try {
      const page = await this.api.around(id, day);
      this.store.dispatch({ type: "pastOpened", page });
      if (page.after === null) void this.help.load(); // it reaches to now
      return true;
    } catch (error) {
      this.onError(error, t("search.messageGone"));
      return false;
    } finally {
      this.store.dispatch({ type: "pending", id, what: "" });
    }
  }

  /** What was said after what the chat shows. */
  async loadNewer() {
    const { after, newer } = this.store.state;
    if (after === null || newer === "loading") return;
    this.store.set({ newer: "loading" });
    try {
      const page = await this.api.newer(after);
      if (this.store.state.after !== after) return; // it shows another part by now
      this.store.dispatch({ type: "newerLoaded", page });
      if (page.after === null) void this.help.load(); // what came meanwhile
    } catch (error) {
      this.store.set({ newer: "failed" });
      this.onError(error);
    }
  }

  /** From the past to what is said now. */
  toNow() {
    if (this.store.state.after === null) return;
    this.store.set({ after: null, messages: [] });
    void this.help.load();
  }

  /** @private @param {any} error @param {string} [missing] */
  onError(error, missing) {
    if (error?.status === 401) return this.help.signOut();
    this.help.notify(error?.status === 404 && missing ? missing : this.help.words(error), "error");
  }
}
