/** Keeps the list of jobs loaded, and what runs on the page up to date. */

import { CHIPS } from "../core/jobs.js";

const TYPING_MS = 200;
const FOLLOW_MS = 2000;
/** So many running cards are kept up to date; the others at each event. */
const FOLLOWED = 3;

export class JobsKeeper {
  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    this.store = store;
    this.api = api;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.loading = undefined;
    this.following = false;
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (state.session !== "in" || state.load !== "ready") return;
    if (state.list.load === "idle" && (state.list !== before.list || before.load !== "ready")) {
      clearTimeout(this.loading);
      this.loading = setTimeout(() => void this.load(false), TYPING_MS);
    }
    this.follow();
  }

  /** @param {boolean} next  The page after those loaded. */
  async load(next) {
    const filter = this.store.state.list;
    this.store.patch("list", { load: "loading" });
    try {
      const { q, chip, before } = filter;
      const state = CHIPS[/** @type {keyof typeof CHIPS} */ (chip)];
      const page = await this.api.jobs({ ...state, q, before: next ? before : null });
      this.store.dispatch({ type: "jobsPage", page, next, filter });
    } catch {
      this.store.patch("list", { load: "failed" });
    }
  }

  /** @private  The headline and last lines of what runs: no event tells of them. */
  follow() {
    if (this.following || !this.running().length) return;
    this.following = true;
    setTimeout(() => void this.look(), FOLLOW_MS);
  }

  /** @private */
  running() {
    const jobs = Object.values(this.store.state.jobs);
    return jobs.filter((job) => job.state === "running" && job.messageId);
  }

  /** @private */
  async look() {
    const seen = document.hidden ? [] : this.running().slice(0, FOLLOWED);
    for (const { id } of seen) {
      try {
        const job = await this.api.job(id);
        if (this.store.state.jobs[id]?.state === "running") this.store.patch("jobs", { [id]: job });
      } catch {
        // the next look, or an event, tells
      }
    }
    this.following = false;
    this.follow();
  }
}
