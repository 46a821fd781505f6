/**
 * How the state of the work changes. Pure; a part of `state.js`.
 *
 * @typedef {import("./types.js").Job} Job
 */

/** @type {Set<Job["state"]>} */
const OVER = new Set(["done", "failed", "canceled"]);

/** @param {Job} job whether nothing of it waits or runs */
export function jobOver(job) {
  return OVER.has(job.state);
}

/** @param {Job} job whether it was a plan that went well and began no work of its own, as for a trigger */
export function isPlanOnly({ kind, state, steps }) {
  return kind === "request" && state === "done" && !steps.some((step) => step.kind === "work");
}

/** So much of what is over is remembered; what is older can be asked for. */
const OVER_KEPT = 500;

/**
 * What is known of the work with these heard of, in the order in which it was heard of. A snapshot
 * names what is at work: what it does not name, and no message speaks of, goes until asked for.
 *
 * @param {Record<string, Job>} known
 * @param {Job[]} heard
 * @param {Set<string | null>} [spoken] they are a snapshot's, and of these the messages speak
 * @returns {Record<string, Job>}
 */
export function withJobs(known, heard, spoken) {
  const anew = new Set(heard.map((job) => job.id));
  const stays = (/** @type {Job} */ job) => !spoken || jobOver(job) || spoken.has(job.id);
  const before = Object.values(known).filter((job) => !anew.has(job.id) && stays(job));
  const jobs = [...before, ...heard];
  let surplus = jobs.filter(jobOver).length - OVER_KEPT;
  const kept = jobs.filter((job) => !(surplus > 0 && jobOver(job) && surplus--));
  return Object.fromEntries(kept.map((job) => [job.id, job]));
}

/** @param {import("./types.js").Message[][]} messages of which work they speak */
export function spokenOf(...messages) {
  return new Set(messages.flat().map((message) => message.jobId));
}

/**
 * The work that is at work as far as is known, and of which a snapshot that came did not tell.
 *
 * @param {Record<string, Job>} known
 * @param {Job[]} given by the snapshot
 */
export function untold(known, given) {
  const told = new Set(given.map((job) => job.id));
  return Object.values(known).filter((job) => !jobOver(job) && !told.has(job.id));
}
