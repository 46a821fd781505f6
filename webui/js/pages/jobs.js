/** Keeps the list of jobs loaded, and what runs on the page up to date. */

import { CHIPS } from "../core/jobs.js";
import { Resource } from "../core/resource.js";

const TYPING_MS = 200;
const FOLLOW_MS = 2000;
/** So many running cards are kept up to date; the others at each event. */
const FOLLOWED = 3;

export class JobsKeeper {
  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    this.store = store;
    this.api = api;
    this.page = new Resource(
      ({ q, chip, before }) => api.jobs({ ...CHIPS[/** @type {keyof typeof CHIPS} */ (chip)], q, before }),
      (loaded, filter) => this.onPage(loaded, filter),
    );
    this.following = false;
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (state.session !== "in" || state.load !== "ready") return;
    if (state.list.load === "idle" && (state.list !== before.list || before.load !== "ready")) {
      this.page.rested({ ...state.list, before: null }, TYPING_MS);
    }
    this.follow();
  }

  /** @private @param {Loaded} loaded @param {JobList} filter */
  onPage({ load, data }, filter) {
    const next = filter.before !== null; // the page after those loaded
    if (data) this.store.dispatch({ type: "jobsPage", page: data, next, filter });
    else this.store.patch("list", { load: load === "loading" ? load : "failed" });
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
