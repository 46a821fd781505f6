/** What the page knows of jobs: one for each request, one for each trigger. Pure. */

const LIVE = ["running", "planning", "asked", "waiting"];
/** What the list can be narrowed to, as the server is asked for it. */
export const CHIPS = {
  all: {},
  live: { state: "live" },
  done: { state: "done" },
  failed: { state: "failed" },
  canceled: { state: "canceled" },
  trigger: { kind: "trigger" },
};

/** @param {{state: string}} job */
export const isLive = ({ state }) => LIVE.includes(state);

/** @returns {Pick<State, "jobs" | "totals" | "list" | "runs">} */
export function noJobs() {
  const list = { load: /** @type {const} */ ("idle"), q: "", chip: "all", ids: [], before: null };
  return { jobs: {}, totals: {}, list, runs: {} };
}

/** @param {State} state @param {{page: JobPage, next: boolean, filter: JobList}} action */
export function jobsPage(state, { page, next, filter }) {
  const { list } = state;
  if (filter.q !== list.q || filter.chip !== list.chip) return state;
  const ended = page.jobs.filter((job) => !isLive(job)).map((job) => job.id);
  const ids = [...new Set([...(next ? list.ids : []), ...ended])];
  /** @type {JobList} */
  const loaded = { ...list, load: "ready", ids, before: page.before };
  return { ...known(state, page.jobs), totals: page.totals, list: loaded };
}

/** @param {State} state @param {Job[]} jobs  Without details: what is known already is not replaced. */
export function known(state, jobs) {
  const older = Object.fromEntries(jobs.map((job) => [job.id, job]));
  return { ...state, jobs: { ...older, ...state.jobs } };
}

/** @param {State} state @param {Job[]} jobs  Those of a snapshot, and of those before it what has ended. */
export function afresh(state, jobs) {
  const ended = Object.entries(state.jobs).filter(([, job]) => !isLive(job));
  return { ...Object.fromEntries(ended), ...Object.fromEntries(jobs.map((job) => [job.id, job])) };
}

/** @param {State} state @param {TaskChange} change @returns {State} */
export function withJob(state, { task, job, totals }) {
  const id = job?.id ?? task.sourceTriggerId ?? task.traceId;
  const { [id]: _, ...others } = state.jobs;
  const ids = state.list.ids.filter((one) => one !== id);
  if (job && !isLive(job) && fits(state.list, job)) ids.unshift(id);
  const jobs = job ? { ...others, [id]: job } : others;
  const trigger = task.sourceTriggerId ? state.triggers[id] : null;
  const triggers = trigger ? { ...state.triggers, [id]: withRun(trigger, task) } : state.triggers;
  const runs = { ...state.runs };
  const shown = runs[id];
  if (shown && job && task.completedAt && !shown.jobs.some((run) => run.taskId === task.id)) {
    runs[id] = { ...shown, jobs: [job, ...shown.jobs] };
  }
  return { ...state, jobs, totals, triggers, runs, list: { ...state.list, ids } };
}

/** @param {Trigger} trigger @param {Task} task  A run of it, the newest. */
function withRun(trigger, { id, state, completedAt, createdAt }) {
  const others = trigger.recent.filter((run) => run.id !== id);
  return { ...trigger, recent: [...others, { id, state, at: completedAt ?? createdAt }].slice(-12) };
}

/** @param {JobList} list @param {Job} job */
function fits({ q, chip }, job) {
  const words = q.toLowerCase().split(/\s+/);
  if (!words.every((word) => job.title.toLowerCase().includes(word))) return false;
  if (chip === "trigger") return job.kind === "trigger";
  return chip === "all" || (chip === "live" ? isLive(job) : job.state === chip);
}

/** @param {State} state  Those of the list: what runs, what waits, what has ended. */
export function jobGroups(state) {
  const live = Object.values(state.jobs)
    .filter((job) => isLive(job) && fits(state.list, job))
    .sort((a, b) => LIVE.indexOf(a.state) - LIVE.indexOf(b.state) || a.askedAt.localeCompare(b.askedAt));
  const waits = (/** @type {Job} */ job) => job.state === "asked" || job.state === "waiting";
  return {
    running: live.filter((job) => !waits(job)),
    queued: live.filter(waits),
    ended: state.list.ids.flatMap((id) => state.jobs[id] ?? []),
  };
}

/** @param {State["totals"]} totals @param {string} chip  How many there are, whatever is loaded. */
export function totalOf(totals, chip) {
  const of = (/** @type {string[]} */ states) => states.reduce((sum, one) => sum + (totals[one] ?? 0), 0);
  if (chip === "all") return of(Object.keys(totals));
  return of({ live: LIVE, running: LIVE.slice(0, 2), queued: LIVE.slice(2) }[chip] ?? [chip]);
}

/** @param {State["jobs"]} jobs  Those that are cards, by the message that asked for them. */
export function cardsOf(jobs) {
  const cards = Object.values(jobs).filter((job) => job.messageId && job.kind === "request");
  return new Map(cards.map((job) => [job.messageId, job]));
}

/**
 * Whether a message says only what a card shows: that it was begun, or how it ended.
 *
 * @param {Message} message
 * @param {Map<string | null, Job>} cards those that stand on the page
 */
export function isOnCard(message, cards) {
  if (!message.taskIds?.length || message.reminder) return false;
  if (message.role === "agent" && message.engine === "builtin") {
    return message.inReplyTo.some((id) => cards.has(id));
  }
  const steps = new Set([...cards.values()].flatMap((job) => job.steps.map((step) => step.id)));
  return message.role === "system" && message.taskIds.every((id) => steps.has(id));
}
