/** Keeps the home fresh, and works out where the runs of the last day stand in it. */

import { totalOf } from "../core/jobs.js";
import { stateResource } from "../core/resource.js";

const REFRESH_MS = 3000;
/** The same while something runs, or has just ended. */
const BUSY_MS = 900;
const DAY_MS = 86_400_000;
const MAX_LANES = 24;

export class HomeKeeper {
  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    this.page = stateResource(store, "home", async () => ({ data: await api.home() }));
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    const busy = [before, state].some(({ totals }) => totalOf(totals, "live"));
    this.page.follow(madeOf(state), madeOf(before), busy ? BUSY_MS : REFRESH_MS);
  }
}

/** @param {State} state  On a wide screen the home stands beside the chat. */
function madeOf({ session, route, wide, panel, tasks, triggers, question, status }) {
  const here = route.view === "home" || (wide && panel === "side" && route.view === "chat");
  if (session !== "in" || !here) return null;
  return [tasks, triggers, question, status?.usage.runs, JSON.stringify(status?.byEngine)];
}

/**
 * @typedef {{run: Run, lane: number, from: number, began: number, to: number, waitMs: number,
 *   runMs: number}} Bar its places in thousandths of the day
 */

/**
 * Where each run stands: the day in thousandths, those at the same time below one another.
 *
 * @param {Run[]} runs
 * @param {number} now
 * @returns {Bar[]} the oldest first
 */
export function lanes(runs, now) {
  const place = (/** @type {number} */ at) =>
    Math.round(Math.min(1000, Math.max(0, 1000 - ((now - at) / DAY_MS) * 1000)));
  /** @type {number[]} */
  const ends = [];
  const bars = runs.map((run) => {
    const asked = Date.parse(run.createdAt);
    const end = run.completedAt ? Date.parse(run.completedAt) : now;
    const began = Math.min(Math.max(asked, run.startedAt ? Date.parse(run.startedAt) : end), end);
    const to = Math.max(place(end), 3);
    const bar = { from: Math.min(place(asked), to - 3), began: Math.min(place(began), to - 3), to };
    return { run, lane: 0, ...bar, waitMs: Math.max(0, began - asked), runMs: end - began };
  });
  bars.sort((a, b) => a.from - b.from || a.to - b.to);
  for (const bar of bars) {
    const free = ends.findIndex((end) => end < bar.from);
    bar.lane = free >= 0 ? free : Math.min(ends.length, MAX_LANES - 1);
    ends[bar.lane] = Math.max(ends[bar.lane] ?? 0, bar.to);
  }
  return bars;
}
