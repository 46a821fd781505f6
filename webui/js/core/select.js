/** What the views show, worked out from the state. Pure. */

import { cardsOf, isOnCard } from "./jobs.js";
import { dayKey } from "./time.js";

/** Messages of one speaker within this time stand together. */
const TOGETHER_MS = 5 * 60_000;

/** @type {{messages: Message[] | null, jobs: State["jobs"] | null, entries: Entry[]}} */
let last = { messages: null, jobs: null, entries: [] };

/**
 * The conversation as it stands on the page: what was said, what is being answered, the reply as it
 * grows, what waits, what is on its way.
 *
 * @param {State} state
 * @returns {Entry[]}
 */
export function timeline(state) {
  const { messages, jobs } = state;
  if (last.messages !== messages || last.jobs !== jobs) {
    last = { messages, jobs, entries: spoken(messages, jobs) };
  }
  /** @type {Entry[]} */
  const entries = [];
  const known = new Set(state.messages.map((message) => message.id));
  const inbox = state.inbox.filter((item) => !known.has(item.id));
  const waiting = new Set(inbox.map((item) => item.id));
  const turn = state.turn;
  const engine = state.status?.engines.teller;
  const waits = (!turn || turn.endedAt !== null) && engine?.state === "waiting";
  const queued = waits ? "waiting" : "queued";
  const why = (waits && engine.reason) || "";
  for (const item of inbox.filter((one) => one.state === "answering")) {
    entries.push(unspoken(item, waits ? "waiting" : "answering", why));
  }
  if (turn && turn.draft && !turn.committed) {
    const rest = restOf(turn.draft.slice(turn.blocks.at(-1)?.end ?? 0));
    const blocks = turn.blocks.map((block) => block.html);
    entries.push({ type: "draft", key: `draft-${turn.turnId}`, blocks, rest });
  }
  for (const item of inbox.filter((one) => one.state !== "answering")) {
    entries.push(unspoken(item, queued, why));
  }
  for (const item of state.outbox) {
    if (known.has(item.id) || waiting.has(item.id)) continue;
    entries.push(unspoken(item, item.state === "accepted" ? "queued" : item.state, item.error));
  }
  return entries.length ? withDays(last.entries, entries) : last.entries;
}

/** @param {string} text  The unfinished block of a draft: code while its fence is open. @returns {DraftRest} */
export function restOf(text) {
  const rest = text.replace(/^(\s*\n)+/, "").trimEnd();
  const fence = /^ {0,3}(?:`{3,}|~{3,}) *([^\s`]*)[^\n`]*(?:\n|$)/.exec(rest);
  if (!fence) return { text: rest, language: null };
  return { text: rest.slice(fence[0].length).replace(/\n?[`~]*$/, ""), language: fence[1] };
}

/** @param {Message[]} messages @param {State["jobs"]} jobs @returns {Entry[]} */
function spoken(messages, jobs) {
  const outcomes = new Map(
    messages.flatMap((message) => (message.inReplyTo ?? []).map((id) => [id, outcomeOf(message)])),
  );
  const shown = new Set(messages.map(({ id }) => id));
  const cards = new Map([...cardsOf(jobs)].filter(([id]) => id && shown.has(id)));
  const told = toldTasks(messages);
  /** @type {Entry[]} */
  const entries = [];
  for (const message of inLines(messages)) {
    const { id, role, triggerId, createdAt: at } = message;
    const runs = role === "system" && triggerId ? jobs[triggerId] : null;
    const delivery = role === "user" ? (outcomes.get(id) ?? "answered") : null;
    if (runs) {
      entries.push({ type: "runs", key: `runs-${runs.id}`, job: runs, at, messageId: id });
    } else if (!isOnCard(message, cards)) {
      entries.push({ type: "message", key: id, message, delivery, error: "", joined: false });
    }
    const job = cards.get(id);
    if (job) entries.push({ type: "job", key: `job-${job.id}`, job, at, told: told.has(job.taskId) });
  }
  return withDays([], entries);
}

/** @param {Message[]} messages  The tasks whose results a model told in its own words. */
function toldTasks(messages) {
  const own = messages.filter((it) => it.role === "agent" && it.engine !== "builtin");
  return new Set(own.flatMap((it) => (it.inReplyTo?.length ? [] : (it.taskIds ?? []))));
}

/**
 * What was answered to a question that is no longer open; empty: nothing. Null for other messages.
 *
 * @param {State} state
 * @param {Message} message
 */
export function choiceOf(state, { questionId, options }) {
  if (!options?.length || state.question?.questionId === questionId) return null;
  const answer = state.messages.find((one) => one.role === "user" && one.questionId === questionId);
  return answer?.text ?? "";
}

/** @param {Message} message a reply @returns {Delivery} */
function outcomeOf({ stopped, failed }) {
  if (stopped) return "stopped";
  return failed ? "unanswered" : "answered";
}

/**
 * What tells runs of one trigger is one line, where the newest is; of what a model says, what the
 * user says begins anew. So the server's pages come; here with what was heard since.
 *
 * @param {Message[]} messages
 * @returns {Message[]}
 */
export function inLines(messages) {
  /** @type {Map<string, Message>} */
  const open = new Map();
  /** @type {Set<Message>} */
  const lines = new Set();
  for (const message of messages) {
    if (message.role === "user") {
      for (const [id, line] of open) if (line.role !== "system") open.delete(id);
    }
    const before = message.triggerId ? open.get(message.triggerId) : undefined;
    const line = before ? standFor(before, message) : message;
    if (before) lines.delete(before);
    if (message.triggerId) open.set(message.triggerId, line);
    lines.add(line);
  }
  return [...lines];
}

/** @param {Message} before @param {Message} message @returns {Message} */
function standFor(before, message) {
  const ids = new Set([...(before.repeats ?? []), before.id, ...(message.repeats ?? [])]);
  const since = [before.since, before.createdAt, message.since].filter((at) => at != null).sort()[0];
  return { ...message, repeats: [...ids], since };
}

/**
 * @param {{id: string, text: string, createdAt: string, files?: FileRef[]}} item
 * @param {Delivery} delivery
 * @param {string} [error]
 * @returns {MessageEntry}
 */
function unspoken(item, delivery, error = "") {
  const { id, text, createdAt, files } = item;
  const message = /** @type {Message} */ ({ id, role: "user", text, html: null, createdAt, files });
  return { type: "message", key: id, message, delivery, error, joined: false };
}

/** @type {Map<string, string>} */
const days = new Map();

/** @param {string} at */
function day(at) {
  let key = days.get(at);
  if (key === undefined) days.set(at, (key = dayKey(at)));
  return key;
}

/**
 * Put entries after others, with a separator where the day changes.
 *
 * @param {Entry[]} before
 * @param {Entry[]} added
 * @returns {Entry[]}
 */
function withDays(before, added) {
  const result = [...before];
  const final = before.at(-1);
  let previous = final && spokenBy(final);
  for (const entry of added) {
    const spoken = spokenBy(entry);
    const at = spoken?.createdAt ?? "";
    if (spoken && (!previous || day(previous.createdAt) !== day(at))) {
      result.push({ type: "day", key: `day-${day(at)}-${entry.key}`, at });
      previous = undefined;
    }
    const follows = entry.type === "message" && previous && together(previous, entry.message);
    result.push(follows ? { ...entry, joined: true } : entry);
    previous = spoken ?? previous;
  }
  return result;
}

/** @param {Entry} entry @returns {{createdAt: string, role: string} | undefined} a draft has no time yet */
function spokenBy(entry) {
  if (entry.type === "message") return entry.message;
  return "at" in entry ? { createdAt: entry.at, role: "job" } : undefined;
}

/** @param {{createdAt: string, role: string}} above @param {Message} below */
function together(above, below) {
  const apart = Date.parse(below.createdAt) - Date.parse(above.createdAt);
  return above.role === below.role && apart < TOGETHER_MS;
}

const BUSY = new Set(["running", "planning"]);

/** @param {State} state  Whether a trigger fires within a minute, or was to: its seconds are shown. */
export function firesSoon({ triggers, now }) {
  const times = Object.values(triggers).map(({ nextRunAt }) => Date.parse(nextRunAt ?? ""));
  return times.some((at) => Math.abs(at - now) < 60_000);
}

/**
 * @param {State} state
 * @returns {Live | null} null when nothing goes on
 */
export function live(state) {
  const status = state.status;
  if (status?.consumer === "down") return null; // whatever runs on paper, nobody does it
  const running = Object.values(state.jobs).filter((job) => BUSY.has(job.state));
  const turn = state.turn && state.turn.endedAt === null ? state.turn : null;
  // A status may still speak of a turn that is known to be over.
  const stale = state.turn !== null && status?.teller.turnId === state.turn.turnId;
  const teller = turn?.since ?? sinceOf(state, stale ? undefined : status?.teller, "replying");
  const planning = running.filter((job) => job.state === "planning");
  const planner = planning.length
    ? earliest(planning)
    : sinceOf(state, status?.planner, "planning");
  const working = running.filter((job) => job.state === "running");
  const count = working.length || status?.workers.busy || 0;
  if (teller === null && planner === null && !count) return null;
  const newest = running.toSorted((a, b) => (b.startedAt ?? "").localeCompare(a.startedAt ?? ""));
  const busiest = newest.find((job) => job.headline);
  return {
    teller,
    planner,
    workers: { count, since: working.length ? earliest(working) : null },
    headline: turn?.headline || status?.teller.headline || (!turn && busiest?.headline) || "",
    turnId: turn?.turnId ?? null,
    running: newest.map((job) => ({ id: job.taskId, title: job.title })),
  };
}

/**
 * @param {State} state
 * @param {{state: string, since: string | null} | undefined} seat
 * @param {string} busy
 */
function sinceOf(state, seat, busy) {
  if (seat?.state !== busy) return null;
  return seat.since ? Date.parse(seat.since) : state.now;
}

/** @param {Job[]} jobs */
function earliest(jobs) {
  return Math.min(...jobs.map((job) => Date.parse(job.startedAt ?? job.askedAt)));
}

/**
 * How long a task has waited and run, as of now.
 *
 * @param {Task} task
 * @param {number} now
 * @returns {{waitMs: number | null, runMs: number | null}}
 */
export function taskTimes(task, now) {
  const began = task.startedAt ? Date.parse(task.startedAt) : null;
  const ended = task.completedAt ? Date.parse(task.completedAt) : null;
  const waited = task.state === "queued" ? null : task.waitMs;
  const waitMs = waited ?? (began ?? ended ?? now) - Date.parse(task.createdAt);
  const runMs = began === null ? null : (task.runMs ?? (ended ?? now) - began);
  const running = task.state === "running" && began !== null;
  return { waitMs: Math.max(0, waitMs), runMs: running ? Math.max(0, now - began) : runMs };
}

/**
 * Which message of the conversation speaks of a task, or of another of its trace.
 *
 * @param {State} state
 * @param {string} taskId
 * @param {Task[]} trace
 * @returns {string | null}
 */
export function messageAbout(state, taskId, trace) {
  const job = trace.map((task) => state.jobs[task.traceId]).find((one) => one?.messageId);
  if (job && state.messages.some((message) => message.id === job.messageId)) return job.messageId;
  const naming = (/** @type {Set<string>} */ ids) => {
    const id = state.messages.findLast((message) => message.taskIds?.some((one) => ids.has(one)))?.id;
    if (!id) return null;
    return inLines(state.messages).find((line) => line.repeats?.includes(id))?.id ?? id;
  };
  return naming(new Set([taskId])) ?? naming(new Set(trace.map((task) => task.id)));
}

/**
 * Each line with its number before and after; null where it is not.
 *
 * @param {DiffHunk} hunk
 * @returns {{mark: string, text: string, before: number | null, after: number | null}[]}
 */
export function numbered(hunk) {
  let [before, after] = [hunk.oldStart, hunk.newStart];
  return hunk.lines.map((line) => {
    const [mark, text] = [line[0], line.slice(1)];
    const row = { mark, text, before: /** @type {any} */ (null), after: /** @type {any} */ (null) };
    if (mark === " " || mark === "-") row.before = before++;
    if (mark === " " || mark === "+") row.after = after++;
    return row;
  });
}
