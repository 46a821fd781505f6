/**
 * The list of work as it is loaded: a page from the server's order, older ones as they are asked for.
 * Pure; a part of `state.js`.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Work} Work
 * @typedef {import("./state-types.js").ListFilter} ListFilter
 * @typedef {import("./types.js").Job} Job
 * @typedef {import("./types.js").JobList} JobList
 */

import { jobOver } from "./job-state.js";

/** @type {Record<string, (state: State, action: any) => State>} */
export const WORK_ACTIONS = {
  workTold: (state, values) => withWork(state, () => without(values)),
  workLoaded: (state, { asked, answer, older }) =>
    withWork(state, (work) => (work.asked === asked ? loaded(work, answer, Boolean(older)) : {})),
  workOpened: (state, { id, open }) =>
    withWork(state, ({ open: known }) => ({ open: { ...known, [id]: open } })),
  workWhole: (state, { job }) =>
    withWork(state, ({ whole }) => ({ whole: { ...whole, [job.id]: job } })),
};

/** @returns {Work} */
export function noWork() {
  const nothing = { asked: "", error: null, jobs: [], before: null, total: 0, counts: {} };
  return { ...nothing, load: "idle", older: "idle", open: {}, whole: {} };
}

/** @param {State} state @param {(work: Work) => Partial<Work>} change @returns {State} */
function withWork(state, change) {
  return { ...state, work: { ...state.work, ...change(state.work) } };
}

/** @param {any} values of an action */
function without({ type: _, ...values }) {
  return values;
}

/**
 * What the server is asked by a filter.
 *
 * @param {ListFilter} filter
 * @returns {Record<string, string>}
 */
export function questionOf({ state, trigger, q }) {
  const named = state === "running" ? "active" : state; // planning and asking run, too
  const asked = { state: named, trigger, q: trigger ? "" : q?.trim() };
  const given = Object.entries(asked).filter(([, value]) => value);
  return /** @type {Record<string, string>} */ (Object.fromEntries(given));
}

/** @param {Work} work @param {JobList} answer @param {boolean} older @returns {Partial<Work>} */
function loaded(work, answer, older) {
  const { total, counts } = answer;
  const told = { load: /** @type {const} */ ("ready"), error: null, total, counts };
  const fresh = new Set(answer.jobs.map((job) => job.id));
  const rest = work.jobs.filter((job) => !fresh.has(job.id));
  if (older) {
    return { ...told, older: "idle", before: answer.before, jobs: [...rest, ...answer.jobs] };
  }
  // Those that were loaded beyond the first page stay, as long as they meet it.
  const beyond = work.jobs.length > answer.jobs.length && answer.before ? rest.filter(jobOver) : [];
  const before = beyond.length ? work.before : answer.before;
  return { ...told, before, jobs: [...answer.jobs, ...beyond] };
}

/**
 * How many jobs each filter has.
 *
 * @param {Work["counts"]} counts
 * @returns {Record<string, number>}
 */
export function workCounts(counts) {
  const of = (/** @type {string[]} */ ...states) =>
    states.reduce((sum, state) => sum + (/** @type {any} */ (counts)[state] ?? 0), 0);
  return {
    "": of("planning", "waiting", "running", "asking", "done", "failed", "canceled"),
    running: of("planning", "running", "asking"),
    waiting: of("waiting"),
    failed: of("failed"),
  };
}

/**
 * The jobs of the list as they stand now, those that run, wait and have ended apart.
 *
 * @param {Work} work
 * @param {Record<string, Job>} known as the stream told of them
 */
export function workGroups({ jobs }, known) {
  const now = jobs.map((job) => known[job.id] ?? job);
  return [
    { name: "running", jobs: now.filter((job) => !jobOver(job) && job.state !== "waiting") },
    { name: "queued", jobs: now.filter((job) => job.state === "waiting") },
    { name: "ended", jobs: now.filter(jobOver) },
  ];
}

/**
 * Whether a list is to be asked for anew: something came, or is in another state.
 *
 * @param {Record<string, Job>} known
 * @param {Record<string, Job>} before
 */
export function hasMoved(known, before) {
  if (known === before) return false;
  return Object.values(known).some((job) => {
    const was = before[job.id];
    return !was || was.state !== job.state || was.total !== job.total;
  });
}
