/** Keeps the list of work fresh: asked for when one comes to it, narrows it, or something moves. */

import { Keeper } from "./keeper.js";
import { placeShown } from "./places.js";
import { hasMoved, questionOf } from "./work-state.js";

/** @typedef {import("./state-types.js").State} State */

const REST_MS = 250;
const REFRESH_MS = 1000;

/** @extends {Keeper<import("./keeper.js").Timers & {words: (error: any) => string}>} */
export class WorkKeeper extends Keeper {
  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (!isShown(state)) return;
    const question = questionOf(filterHere(state));
    const asked = JSON.stringify(question);
    const came = !isShown(before) || state.load !== before.load;
    if (asked !== state.work.asked) return this.turn(asked, question, state);
    const back = state.connection === "online" && before.connection !== "online";
    if (came || (back && state.work.load === "failed")) void this.load();
    else if (hasMoved(state.jobs, before.jobs)) this.soon(() => void this.load(), REFRESH_MS);
  }

  /** @private @param {string} asked @param {Record<string, string>} question @param {State} state */
  turn(asked, question, state) {
    const typed = question.q !== undefined && state.work.load === "ready";
    const jobs = typed ? state.work.jobs : []; // while one types, what was found stays
    const load = typed ? "ready" : "loading";
    this.store.dispatch({ type: "workTold", asked, load, jobs, before: null, older: "idle" });
    if (typed) this.rested(() => void this.load(), REST_MS);
    else void this.load();
  }

  /** The first page, or with `older` the next. */
  async load(older = false) {
    const { asked, before } = this.store.state.work;
    const question = JSON.parse(asked || "{}");
    if (older) this.store.dispatch({ type: "workTold", older: "loading" });
    try {
      const answer = await this.api.jobs(older && before ? { ...question, before } : question);
      this.store.dispatch({ type: "workLoaded", asked, answer, older });
    } catch (error) {
      if (this.store.state.work.asked !== asked) return;
      const words = this.ports.words(error);
      const isThere = older || this.store.state.work.load === "ready";
      this.store.dispatch({
        type: "workTold",
        ...(older ? { older: "failed" } : { error: words, load: isThere ? "ready" : "failed" }),
      });
    }
  }

  /** @param {string} id  All steps of a job. */
  async loadJob(id) {
    try {
      this.store.dispatch({ type: "workWhole", job: await this.api.job(id) });
    } catch {
      // the steps that are known stay
    }
  }
}

/** @param {State} state */
function isShown(state) {
  if (state.session !== "in" || state.load !== "ready") return false;
  return placeShown(state) === "tasks" && (state.route.view === "tasks" || state.wide);
}

/** @param {State} state @returns {import("./state-types.js").ListFilter} */
function filterHere({ route }) {
  return route.view === "tasks" ? route : {};
}
