/**
 * Work in the conversation: which message carries whose card, and what is one line. Pure.
 *
 * A job has one card, below the first message that speaks of it, the mind's own before the user's.
 * What code told of it later is the card's result; what a mind told stays a message. What the runs
 * of a trigger told is one line.
 *
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./types.js").Job} Job
 * @typedef {Record<string, Job>} Jobs
 *
 * @typedef {object} CardEntry
 * @property {"card"} type
 * @property {string} key
 * @property {string} at
 * @property {string} jobId
 * @property {Message[]} results what code told of it, oldest first
 *
 * @typedef {object} FoldEntry what the runs of a trigger told since the user spoke last
 * @property {"fold"} type
 * @property {string} key
 * @property {string} at
 * @property {string} since when the first of them was told
 * @property {Message} message the newest
 * @property {number} told how many there are
 * @property {boolean} isLast of its trigger: those before tell of earlier times
 *
 * @typedef {object} NewsEntry that work asked for further up is over
 * @property {"news"} type
 * @property {string} key
 * @property {string} at
 * @property {string} jobId
 * @property {Message} message
 *
 * @typedef {object} SaidEntry
 * @property {"said"} type
 * @property {Message} message
 * @property {string | null} jobId the job of which it tells, where that has a card; empty: all that
 *   came of it has been said
 * @property {boolean} carries its card stands below
 *
 * @typedef {CardEntry | FoldEntry | NewsEntry} WorkEntry
 */

import { isPlanOnly } from "./job-state.js";

/** A longer text is shown in part. Units: characters, lines. */
const LONG = { text: 4000, lines: 60 };
/** Output is looked at, not read: it is cut sooner. */
const LONG_OUTPUT = { text: 1600, lines: 14 };
/** Of a reply whose text is cut at all, so much more must be hidden to be worth a click. */
const OVER = 1.2;

/** @param {Message} message */
export const isFiring = (message) => Boolean(message.triggerId) && !message.reminder;

/** @param {Message} message @param {Jobs} jobs  The request it speaks of, where that has a card. */
function jobOf(message, jobs) {
  const job = message.jobId && !message.reminder ? jobs[message.jobId] : undefined;
  return job?.kind === "request" ? job : undefined;
}

/**
 * Whether nothing is left to be said of a job by a card: it was a plan that began no work of its own,
 * as for a trigger, and the words above it tell what came of it.
 *
 * @param {CardEntry} card
 * @param {Jobs} jobs
 */
function isSpent(card, jobs) {
  return !card.results.length && isPlanOnly(jobs[card.jobId]);
}

/** @param {(SaidEntry | WorkEntry)[]} rows @param {Jobs} jobs */
function withoutSpent(rows, jobs) {
  const cards = rows.flatMap((row) => (row.type === "card" && isSpent(row, jobs) ? [row.jobId] : []));
  const spent = new Set(cards);
  return rows.flatMap((row) => {
    if (row.type === "card") return spent.has(row.jobId) ? [] : [row];
    const isOf = row.type === "said" && spent.has(row.jobId ?? "");
    return isOf ? [{ ...row, jobId: "", carries: false }] : [row];
  });
}

/**
 * @param {Message[]} lines
 * @param {Jobs} jobs
 * @returns {Map<string, string>} by job: the message below which its card stands
 */
function carriersOf(lines, jobs) {
  /** @type {Map<string, {id: string, open: boolean}>} */
  const found = new Map();
  for (const message of lines) {
    if (message.role === "user") for (const one of found.values()) one.open = false;
    const job = jobOf(message, jobs);
    if (!job) continue;
    const held = found.get(job.id);
    if (!held) found.set(job.id, { id: message.id, open: message.role === "user" });
    else if (held.open && message.role === "agent") found.set(job.id, { id: message.id, open: false });
    else held.open = false;
  }
  return new Map([...found].map(([job, { id }]) => [job, id]));
}

/**
 * The messages as they stand in the conversation, with the cards and lines of what was done.
 *
 * @param {Message[]} lines with what tells of one trigger in one, as `inLines` makes them
 * @param {Jobs} jobs
 * @returns {(SaidEntry | WorkEntry)[]}
 */
export function arranged(lines, jobs) {
  const carriers = carriersOf(lines, jobs);
  /** @type {Map<string, {card: CardEntry, asked: number}>} */
  const cards = new Map();
  /** @type {(SaidEntry | WorkEntry)[]} */
  const rows = [];
  let asked = 0; // how often the user has spoken
  for (const message of lines) {
    if (message.role === "user") asked += 1;
    if (isFiring(message)) {
      rows.push(foldOf(message));
      continue;
    }
    const job = jobOf(message, jobs);
    const carries = Boolean(job) && carriers.get(job?.id ?? "") === message.id;
    const known = cards.get(job?.id ?? "");
    const isResult = message.role === "system" && (carries || known !== undefined);
    if (!isResult) rows.push({ type: "said", message, jobId: job?.id ?? null, carries });
    if (job && carries) {
      const card = cardOf(job.id, message.createdAt);
      if (isResult) card.results.push(message);
      cards.set(job.id, { card, asked });
      rows.push(card);
    } else if (job && known && isResult) {
      known.card.results.push(message);
      if (known.asked !== asked) rows.push(newsOf(job.id, message));
    }
  }
  return settled(withoutSpent(rows, jobs));
}

/** @param {string} jobId @param {string} at @returns {CardEntry} */
function cardOf(jobId, at) {
  return { type: "card", key: `job-${jobId}`, at, jobId, results: [] };
}

/** @param {string} jobId @param {Message} message @returns {NewsEntry} */
function newsOf(jobId, message) {
  return { type: "news", key: `news-${message.id}`, at: message.createdAt, jobId, message };
}

/** @param {Message} message @returns {FoldEntry} */
function foldOf(message) {
  const since = message.since ?? message.createdAt;
  const key = `fold-${message.triggerId}-${since}`;
  const told = (message.repeats?.length ?? 0) + 1;
  return { type: "fold", key, at: message.createdAt, since, message, told, isLast: true };
}

/**
 * Lines of triggers that stand together keep their order, however they take turns; the last of each
 * knows that it is.
 *
 * @param {(SaidEntry | WorkEntry)[]} rows changed
 */
function settled(rows) {
  const seen = new Set();
  for (let end = rows.length; end > 0;) {
    let from = end - 1;
    while (from > 0 && rows[from].type === "fold" && rows[from - 1].type === "fold") from -= 1;
    if (rows[from].type === "fold") {
      const folds = /** @type {FoldEntry[]} */ (rows.slice(from, end));
      for (const fold of folds) fold.isLast = !seen.has(fold.message.triggerId);
      for (const fold of folds) seen.add(fold.message.triggerId);
      folds.sort((a, b) => a.since.localeCompare(b.since));
      rows.splice(from, folds.length, ...folds);
    }
    end = from;
  }
  return rows;
}

/**
 * Whether a text is shown in part until one asks for all of it.
 *
 * @param {string} text
 * @param {boolean} [isOutput]
 */
export function isLong(text, isOutput = false) {
  const most = isOutput ? LONG_OUTPUT : LONG;
  if (text.length > most.text * OVER) return true;
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0 && lines <= most.lines; at = text.indexOf("\n", at + 1)) {
    lines += 1;
  }
  return lines > most.lines;
}

/** @param {string} text  Units: bytes, as it would be kept. */
export function sizeOf(text) {
  return new TextEncoder().encode(text).length;
}

/** Of a message of a trigger's: what it says of its run, in a line. */
const FENCE = /^\s*(`{3,}|~{3,})/;

/**
 * The last line that a result's output has; without one, the first of its words.
 *
 * @param {string} text markdown, as code tells a result
 */
export function lastLine(text) {
  const lines = text.split("\n");
  let inside = "";
  let found = "";
  for (const line of lines) {
    const fence = FENCE.exec(line)?.[1];
    if (fence && (!inside || line.trim() === inside)) inside = inside ? "" : fence;
    else if (inside && line.trim()) found = line.trim();
  }
  return (found || (lines.find((line) => line.trim()) ?? "").replaceAll("`", "")).slice(0, 300);
}

/**
 * Why a run failed, as code tells it: the first line of what it shows of the error.
 *
 * @param {string} text
 */
export function errorLine(text) {
  const lines = text.split("\n");
  const begin = lines.findIndex((line) => FENCE.test(line));
  return begin < 0 ? "" : (lines[begin + 1] ?? "").trim().slice(0, 200);
}

/**
 * What goes on, in the order in which it matters.
 *
 * @typedef {object} Happening
 * @property {{since: number, headline: string} | null} reply that is being written
 * @property {Job[]} running the newest first
 * @property {Job[]} planning
 *
 * @param {import("./state-types.js").State} state
 * @returns {Happening | null} null when nothing does
 */
export function happening(state) {
  const { status } = state;
  if (status?.consumer === "down") return null; // whatever runs on paper, nobody does it
  const reply = replyOf(state);
  const busy = Object.values(state.jobs).sort((a, b) => begun(b) - begun(a));
  const running = busy.filter((job) => job.state === "running");
  const planning = busy.filter((job) => job.state === "planning");
  return reply || running.length || planning.length ? { reply, running, planning } : null;
}

/** @param {Job} job */
const begun = (job) => Date.parse(job.startedAt ?? job.createdAt);

/** @param {import("./state-types.js").State} state */
function replyOf({ turn, status, now }) {
  if (turn && turn.endedAt === null) return { since: turn.since, headline: turn.headline };
  const told = status?.teller;
  if (told?.state !== "replying" || (turn && told.turnId === turn.turnId)) return null;
  return { since: told.since ? Date.parse(told.since) : now, headline: told.headline ?? "" };
}
