/** Logging in and out, loading everything, and following what changes. */

import { words } from "./api.js";
import { Link } from "./link.js";

const RELOAD_MS = 3000;

export class Session {
  /** @type {Change[] | null} what changed while the snapshot was on its way */
  missed = null;
  missedCursor = "";
  again = false;

  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    this.store = store;
    this.api = api;
    // Of a hidden tab notifications may still be shown.
    this.link = new Link(api, this, () => document.hidden && !store.state.notifying);
  }

  /** Another tab logged in or out. @param {boolean} hasKey */
  onKey(hasKey) {
    if (!hasKey) this.signOutHere();
    else if (this.store.state.session === "out") void this.load();
  }

  /** @param {Connection} connection */
  onConnection(connection) {
    const away = connection === "reconnecting" && globalThis.navigator?.onLine === false;
    this.store.set({ connection: away ? "offline" : connection });
  }

  /** The network came or went: try at once. mimikit may be on this machine, and need none. */
  retry() {
    const { connection, load } = this.store.state;
    if (connection === "offline") this.onConnection("reconnecting");
    if (load === "failed") void this.load();
    else this.link.nudge();
  }

  /** @param {Change[]} changes @param {string} cursor */
  onChanges(changes, cursor) {
    if (this.missed) {
      this.missed.push(...changes);
      this.missedCursor = cursor;
      return;
    }
    for (const change of changes) this.store.dispatch({ type: "change", change });
    if (this.store.state.turn?.gap === "found") void this.load();
  }

  /** Load the whole picture and follow what comes after it. */
  async load() {
    if (this.missed) {
      this.again = true; // what is on its way may be older than what made us ask
      return;
    }
    this.missed = [];
    this.missedCursor = "";
    try {
      const snapshot = await this.api.snapshot();
      this.store.dispatch({ type: "snapshot", snapshot, now: Date.now() });
      const { missed, missedCursor } = this;
      this.missed = null;
      this.onChanges(missed, "");
      this.link.start(missedCursor || snapshot.cursor);
    } catch (error) {
      this.missed = null;
      this.onLoadError(error);
    }
    if (this.again) {
      this.again = false;
      await this.load();
    }
  }

  /** @private @param {any} error */
  onLoadError(error) {
    if (error?.status === 401) return this.signOutHere();
    const loaded = this.store.state.load === "ready";
    this.store.set({
      session: "in",
      load: loaded ? "ready" : "failed",
      loadError: words(error),
      connection: "reconnecting",
    });
    setTimeout(() => void this.load(), RELOAD_MS);
  }

  /** @param {{token: string} | {code: string}} proof */
  async login(proof) {
    this.store.set({ login: { busy: true, error: "" } });
    try {
      await this.api.login(proof);
      this.store.set({ session: "checking", login: { busy: false, error: "" } });
      await this.load();
    } catch (error) {
      const byLink = "code" in proof;
      this.store.set({ session: "out", login: { busy: false, error: words(error) } });
      if (byLink) await this.load(); // the link may be spent and yet the session good
    }
  }

  /** There is no session any more: ask for one, keep what was typed. */
  signOutHere() {
    this.link.stop();
    this.store.dispatch({ type: "signedOut" });
  }
}
