/** What the views show, worked out from the state. Pure. */

import { inQueue } from "./state.js";
import { dayKey } from "./time.js";

/**
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./types.js").Task} Task
 *
 * @typedef {"sending" | "queued" | "answering" | "waiting" | "answered" | "stopped" | "unanswered"
 *   | "failed"} Delivery
 *
 * @typedef {{type: "day", key: string, at: string}} DayEntry
 * @typedef {{type: "draft", key: string, text: string}} DraftEntry
 * @typedef {object} MessageEntry
 * @property {"message"} type
 * @property {string} key
 * @property {Message} message
 * @property {Delivery | null} delivery of what the user said
 * @property {string} error
 * @property {boolean} joined said by the same one right after the one above
 * @typedef {DayEntry | DraftEntry | MessageEntry} Entry
 */

/** Messages of one speaker within this time stand together. */
const TOGETHER_MS = 5 * 60_000;

/** @type {{messages: Message[] | null, entries: Entry[]}} */
let last = { messages: null, entries: [] };

/**
 * The conversation as it stands on the page: what was said, what is being answered, the reply as it
 * grows, what waits, what is on its way.
 *
 * @param {State} state
 * @returns {Entry[]}
 */
export function timeline(state) {
  if (last.messages !== state.messages) {
    last = { messages: state.messages, entries: spoken(state.messages) };
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
    entries.push({ type: "draft", key: `draft-${turn.turnId}`, text: turn.draft });
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

/** @param {Message[]} messages @returns {Entry[]} */
function spoken(messages) {
  const outcomes = new Map(
    messages.flatMap((message) =>
      (message.inReplyTo ?? []).map((id) => [id, outcomeOf(message)]),
    ),
  );
  return withDays(
    [],
    inLines(messages).map((message) => ({
      type: "message",
      key: message.id,
      message,
      delivery: message.role === "user" ? (outcomes.get(message.id) ?? "answered") : null,
      error: "",
      joined: false,
    })),
  );
}

/** @param {Message} message a reply @returns {Delivery} */
function outcomeOf({ stopped, failed }) {
  if (stopped) return "stopped";
  return failed ? "unanswered" : "answered";
}

/**
 * What tells runs of one trigger is one line, where the newest is; what the user says begins anew.
 * So the server's pages come; here with what was heard since.
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
    if (message.role === "user") open.clear();
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
 * @param {{id: string, text: string, createdAt: string}} item
 * @param {Delivery} delivery
 * @param {string} [error]
 * @returns {MessageEntry}
 */
function unspoken(item, delivery, error = "") {
  const { id, text, createdAt } = item;
  /** @type {Message} */
  const message = { id, role: "user", text, html: null, createdAt };
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
  /** @type {MessageEntry | undefined} */
  let previous = /** @type {any} */ (before.findLast((entry) => entry.type === "message"));
  for (const entry of added) {
    if (entry.type !== "message") {
      result.push(entry);
      continue;
    }
    const at = entry.message.createdAt;
    if (!previous || day(previous.message.createdAt) !== day(at)) {
      result.push({ type: "day", key: `day-${day(at)}-${entry.key}`, at });
      previous = undefined;
    }
    result.push(previous && together(previous.message, entry.message) ? joined(entry) : entry);
    previous = entry;
  }
  return result;
}

/** @param {Message} above @param {Message} below */
function together(above, below) {
  const apart = Date.parse(below.createdAt) - Date.parse(above.createdAt);
  return above.role === below.role && apart < TOGETHER_MS;
}

/** @param {MessageEntry} entry @returns {MessageEntry} */
function joined(entry) {
  return { ...entry, joined: true };
}

/** @param {string} at */
const ms = (at) => Date.parse(at);

/** @param {State} state @param {import("./state-types.js").TaskState} wanted */
function tasksIn(state, wanted) {
  return Object.values(state.tasks).filter((task) => task.state === wanted);
}

/**
 * The tasks as their list shows them: the newest run first, the queue in its own order.
 *
 * @param {State} state
 * @returns {{running: Task[], queued: Task[], ended: Task[]}}
 */
export function taskGroups(state) {
  const begun = (/** @type {Task} */ task) => ms(task.startedAt ?? task.createdAt);
  const atIt = [...tasksIn(state, "running"), ...tasksIn(state, "asking")];
  const running = atIt.sort((a, b) => begun(b) - begun(a));
  const queued = tasksIn(state, "queued").sort(inQueue);
  const ended = state.ended.flatMap((id) => state.tasks[id] ?? []);
  return { running, queued, ended };
}

/** A count that is off by so much is no count of a moment ago: the queue is longer than we know. */
const QUEUE_SLACK = 20;

/**
 * How many tasks wait: those we know, or as many as the server counts where we know only the head.
 *
 * @param {State} state
 * @param {number} known
 */
export function queueLength(state, known) {
  const counted = Object.values(state.status?.queues ?? {}).reduce((sum, one) => sum + one, 0);
  return counted > known + QUEUE_SLACK ? counted : known;
}

/**
 * @typedef {object} Live what goes on right now
 * @property {number | null} teller since when it replies
 * @property {number | null} planner since when it plans
 * @property {{count: number, since: number | null}} workers
 * @property {string} headline
 * @property {string | null} turnId of the reply that is being made
 * @property {{id: string, title: string}[]} running tasks, the newest first
 */

/**
 * @param {State} state
 * @returns {Live | null} null when nothing goes on
 */
export function live(state) {
  const status = state.status;
  if (status?.consumer === "down") return null; // whatever runs on paper, nobody does it
  const running = tasksIn(state, "running");
  const turn = state.turn && state.turn.endedAt === null ? state.turn : null;
  // A status may still speak of a turn that is known to be over.
  const stale = state.turn !== null && status?.teller.turnId === state.turn.turnId;
  const told = stale ? undefined : status?.teller;
  const teller = turn?.since ?? sinceOf(state, told, "replying");
  const planning = running.filter((task) => task.seat === "planner");
  const planner = planning.length
    ? earliest(planning)
    : sinceOf(state, status?.planner, "planning");
  const working = running.filter((task) => task.seat === "worker");
  const count = working.length || status?.workers.busy || 0;
  if (teller === null && planner === null && !count) return null;
  const newest = running.toSorted((a, b) => ms(b.startedAt ?? "") - ms(a.startedAt ?? ""));
  const busiest = newest.find((task) => task.headline);
  return {
    teller,
    planner,
    workers: { count, since: working.length ? earliest(working) : null },
    headline: turn?.headline || status?.teller.headline || (!turn && busiest?.headline) || "",
    turnId: turn?.turnId ?? null,
    running: newest.map((task) => ({ id: task.id, title: task.title || task.prompt })),
  };
}

/**
 * @param {State} state
 * @param {{state: string, since: string | null} | undefined} seat
 * @param {string} busy
 */
function sinceOf(state, seat, busy) {
  if (seat?.state !== busy) return null;
  return seat.since ? ms(seat.since) : state.now;
}

/** @param {Task[]} tasks */
function earliest(tasks) {
  return Math.min(...tasks.map((task) => ms(task.startedAt ?? task.createdAt)));
}

/**
 * How long a task has waited and run, as of now.
 *
 * @param {Task} task
 * @param {number} now
 * @returns {{waitMs: number | null, runMs: number | null}}
 */
export function taskTimes(task, now) {
  const began = task.startedAt ? ms(task.startedAt) : null;
  const ended = task.completedAt ? ms(task.completedAt) : null;
  const waited = task.state === "queued" ? null : task.waitMs;
  const waitMs = waited ?? (began ?? ended ?? now) - ms(task.createdAt);
  const runMs = began === null ? null : (task.runMs ?? (ended ?? now) - began);
  const running = task.state === "running" && began !== null;
  return { waitMs: Math.max(0, waitMs), runMs: running ? Math.max(0, now - began) : runMs };
}

/** @type {{tasks: State["tasks"] | null, traces: Map<string, Task[]>}} */
let traced = { tasks: null, traces: new Map() };

/** @param {State["tasks"]} tasks  The tasks that were made for one request, by their trace. */
function tracesOf(tasks) {
  if (traced.tasks === tasks) return traced.traces;
  /** @type {Map<string, Task[]>} */
  const traces = new Map();
  for (const task of Object.values(tasks)) {
    if (task.sourceTriggerId) continue; // a trigger's runs come long after
    const trace = traces.get(task.traceId);
    if (trace) trace.push(task);
    else traces.set(task.traceId, [task]);
  }
  traced = { tasks, traces };
  return traces;
}

/**
 * What a message that names a task shows of it: a plan that is made stands for the work it made.
 *
 * @param {State["tasks"]} tasks
 * @param {string} id
 * @returns {{task: Task, state: import("./state-types.js").TaskState} | null}
 */
export function namedTask(tasks, id) {
  const task = tasks[id];
  if (!task) return null;
  if (task.seat !== "planner" || task.state !== "done") return { task, state: task.state };
  const work = (tracesOf(tasks).get(task.traceId) ?? []).filter((one) => one.seat === "worker");
  const states = new Set(work.map((one) => one.state));
  const order = /** @type {const} */ (["running", "queued", "failed", "canceled"]);
  const state = order.find((one) => states.has(one)) ?? task.state;
  return { task: work.length === 1 ? work[0] : task, state };
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
 * @param {import("./types.js").DiffHunk} hunk
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
