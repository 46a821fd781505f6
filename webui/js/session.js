/** Logging in and out, loading everything, and following what changes. */

import { errorWords } from "./errors.js";
import { t } from "./i18n.js";
import { untold } from "./job-state.js";

/**
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./api.js").Api} Api
 * @typedef {import("./tabs.js").Tabs} Tabs
 */

const RELOAD_MS = 3000;
/** So much that older messages speak of is asked for at once. */
const ASKED = 40;

export class Session {
  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    this.store = store;
    this.api = api;
    /** @type {Tabs | null} */
    this.tabs = null;
    /** @type {Change[] | null} what changed while the snapshot was on its way */
    this.missed = null;
    this.missedCursor = "";
    this.again = false;
  }

  /** @param {Tabs} tabs */
  follow(tabs) {
    this.tabs = tabs;
  }

  /** What `Tabs` reports to. @returns {import("./tabs.js").TabHearers} */
  hearers() {
    return {
      changes: (changes, cursor) => this.onChanges(changes, cursor),
      reset: () => void this.load(),
      connection: (connection) => this.store.set({ connection }),
      signedOut: () => this.signOutHere(),
      signedIn: () => {
        if (this.store.state.session === "out") void this.load();
      },
    };
  }

  /** @private @param {Change[]} changes @param {string} cursor */
  onChanges(changes, cursor) {
    if (this.missed) {
      this.missed.push(...changes);
      this.missedCursor = cursor;
      return;
    }
    for (const change of changes) this.store.dispatch({ type: "change", change });
    if (this.store.state.turn?.gap) void this.load(); // a piece of the reply was missed
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
      this.tabs?.start(missedCursor || snapshot.cursor);
      this.askFor(untold(this.store.state.jobs, [...(snapshot.jobs ?? []), ...heardOf(missed)]));
    } catch (error) {
      this.missed = null;
      this.onLoadError(error);
    }
    if (this.again) {
      this.again = false;
      await this.load();
    }
  }

  /**
   * What older messages speak of, and was at work before: it may have ended unheard.
   *
   * @private @param {import("./types.js").Job[]} jobs
   */
  askFor(jobs) {
    for (const { id } of jobs.slice(-ASKED)) {
      const was = this.store.state.jobs[id];
      this.api.job(id).then(
        (/** @type {any} */ job) => {
          const isNews = this.store.state.jobs[id] === was; // else a change told more meanwhile
          if (isNews) this.store.dispatch({ type: "change", change: { kind: "job", job } });
        },
        () => {}, // it stands as it was known
      );
    }
  }

  /** @private @param {any} error */
  onLoadError(error) {
    if (error?.status === 401) return this.signOutHere();
    const loaded = this.store.state.load === "ready";
    this.store.set({
      session: "in",
      load: loaded ? "ready" : "failed",
      loadError: errorWords(error),
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
      this.tabs?.signedIn();
      await this.load();
    } catch (error) {
      const byLink = "code" in proof;
      const shown = this.loginError(error, byLink);
      this.store.set({ session: "out", login: { busy: false, error: shown } });
      if (byLink) await this.load(); // the link may be spent and yet the session good
    }
  }

  /** @private @param {any} error @param {boolean} byLink */
  loginError(error, byLink) {
    if (error?.status === 401) return t(byLink ? "login.linkSpent" : "login.wrong");
    return errorWords(error);
  }

  async logout() {
    try {
      await this.api.logout();
    } catch (error) {
      if (/** @type {any} */ (error)?.status !== 401) throw error;
    }
    this.signOutHere();
  }

  /** There is no session any more: ask for one, keep what was typed. */
  signOutHere() {
    this.tabs?.stop();
    this.store.dispatch({ type: "signedOut" });
  }
}

/** @param {Change[]} changes */
function heardOf(changes) {
  return changes.flatMap((change) => (change.kind === "job" ? [change.job] : []));
}
