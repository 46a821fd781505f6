/**
 * The page's state and every way it changes: one pure function. Knows no DOM, network or clock.
 *
 * Everything from the server is an upsert by id, so that hearing a thing twice does no harm.
 */

import { noEngines } from "../pages/engines.js";
import { noLife } from "../pages/life.js";
import { noMemory } from "../pages/memory-keeper.js";
import { afresh, jobsPage, known, noJobs, withJob } from "./jobs.js";

/** How long the draft of a turn that is over waits for its message. */
export const DRAFT_GRACE_MS = 4000;
/** A status may be so old: it does not know of a turn that has just begun. */
const HEARTBEAT_MS = 6000;
const TASKS_KEPT = 200;
const TRACE_KEPT = 100;

/** @returns {State} */
export function initialState() {
  return {
    session: "checking",
    login: { busy: false, error: "" },
    load: "loading",
    loadError: "",
    connection: "connecting",
    skewMs: 0,
    now: 0,
    version: "",
    zone: "",
    outdated: false,
    messages: [],
    before: null,
    older: "idle",
    inbox: [],
    outbox: [],
    question: null,
    answering: { busy: false, error: "" },
    tasks: {},
    ...noJobs(),
    triggers: {},
    status: null,
    turn: null,
    detail: null,
    triggerDetail: null,
    forms: {},
    ...noMemory(),
    engines: noEngines(),
    life: noLife(),
    usage: { load: "loading" },
    home: { load: "loading" },
    pending: {},
    confirming: "",
    route: { view: "chat" },
    panel: "side",
    roomy: true,
    wide: true,
    palette: null,
    notifying: false,
    following: true,
    unseen: 0,
    draft: "",
    files: [],
    notices: [],
    language: "en",
    theme: "system",
  };
}

/** @type {Reducers} */
const ACTIONS = {
  set: (state, { values }) => ({ ...state, ...values }),
  tick,
  signedOut: (state) => ({
    ...state,
    session: "out",
    load: "loading",
    turn: null,
    engines: noEngines(), // a key may have been typed
    life: noLife(),
  }),
  snapshot,
  change: (state, { change }) => CHANGES[change.kind]?.(state, change) ?? state,
  olderLoaded,
  jobsPage,
};

/** @param {State} state @param {Action} action  The same object when nothing changed. */
export function reduce(state, action) {
  const act = ACTIONS[action.type];
  if (!act) throw new Error(`expected a known action, got ${action.type}`);
  return act(state, action);
}

/** @param {State} state @param {{now: number}} action our own clock */
function tick(state, { now }) {
  const next = { ...state, now: now + state.skewMs };
  const endedAt = state.turn?.endedAt;
  if (endedAt != null && next.now - endedAt > DRAFT_GRACE_MS) next.turn = null;
  return next;
}

/** @param {State} state @param {{snapshot: Snapshot, now: number}} action */
function snapshot(state, { snapshot: loaded, now }) {
  const skewMs = Date.parse(loaded.now) - now;
  const older = olderThan(state.messages, loaded.messages);
  const fresh = loaded.messages.filter((message) => !state.messages.some(byId(message.id)));
  const known = new Set([...loaded.messages, ...loaded.inbox].map((item) => item.id));
  /** @type {State} */
  const next = {
    ...state,
    session: "in",
    load: "ready",
    loadError: "",
    login: { busy: false, error: "" },
    skewMs,
    now: now + skewMs,
    version: state.version || loaded.version,
    zone: loaded.timezone ?? state.zone,
    messages: [...older, ...loaded.messages],
    before: older.length ? state.before : loaded.before,
    older: "idle",
    inbox: loaded.inbox,
    outbox: state.outbox.filter((item) => item.state !== "accepted" && !known.has(item.id)),
    question: loaded.question,
    tasks: {},
    jobs: afresh(state, loaded.jobs),
    totals: loaded.totals,
    list: { ...state.list, load: "idle" },
    triggers: Object.fromEntries(loaded.triggers.map((trigger) => [trigger.id, trigger])),
    unseen: state.following || !state.messages.length ? state.unseen : state.unseen + newsIn(fresh),
  };
  return withDraft(withStatus(next, loaded.status), loaded.draft);
}

/**
 * What had come of the reply before we came; deltas that it holds already are dropped by their offset.
 *
 * @param {State} state
 * @param {Draft | null} draft
 * @returns {State}
 */
function withDraft(state, draft) {
  const { turn } = state;
  if (!draft || turn?.turnId !== draft.turnId || turn.committed) return state;
  const { text, end, blocks } = draft;
  /** @type {Turn["gap"]} */
  const gap = text.length === end ? "filled" : "missing";
  const next = { ...turn, draft: text, end, blocks: [], gap };
  return { ...state, turn: withBlocks(next, blocks) };
}

/** @param {Message[]} messages @param {Message[]} next  Those before a snapshot's, where the two meet. */
function olderThan(messages, next) {
  const meets = next.length ? messages.findIndex(byId(next[0].id)) : -1;
  return meets > 0 ? messages.slice(0, meets) : [];
}

/** @param {Message[]} messages how many of them are news: that a job was begun is none */
function newsIn(messages) {
  const begun = (/** @type {Message} */ { engine, taskIds }) => engine === "builtin" && taskIds?.length;
  return messages.filter((message) => message.role !== "user" && !begun(message)).length;
}

/** @param {State} state @param {Status} status */
function withStatus(state, status) {
  const turnId = status.teller.turnId;
  let turn = state.turn;
  const idle = status.teller.state === "idle";
  if (idle && turn?.endedAt === null && state.now - turn.since > HEARTBEAT_MS) {
    turn = { ...turn, endedAt: state.now };
  } else if (status.teller.state === "replying" && turnId && turnId !== turn?.turnId) {
    const since = status.teller.since ? Date.parse(status.teller.since) : state.now;
    turn = newTurn(turnId, since, status.teller.headline);
  }
  const outdated = Boolean(state.version && status.version && state.version !== status.version);
  const known = turn && turn.endedAt !== null ? withoutTurn(status, turn.turnId) : status;
  return { ...state, status: known, turn, outdated: state.outdated || outdated };
}

/**
 * A status may speak of a turn that is known to be over.
 *
 * @template {State["status"]} T
 * @param {T} status
 * @param {string} turnId
 * @returns {T}
 */
function withoutTurn(status, turnId) {
  if (status?.teller.turnId !== turnId) return status;
  const teller = { state: /** @type {const} */ ("idle"), since: null, headline: "", turnId: null };
  return { ...status, teller };
}

/**
 * @param {string} turnId
 * @param {number} since
 * @param {string} [headline]
 * @param {string[]} [inputs]
 * @returns {Turn}
 */
function newTurn(turnId, since, headline = "", inputs = []) {
  const nothing = { draft: "", blocks: [], end: 0, endedAt: null, committed: false };
  return { turnId, since, headline, inputs, ...nothing, gap: "" };
}

/** @type {Reducers}  By the kind of change; a newer server speaks of things this page does not show. */
const CHANGES = {
  message: (state, { message }) => withMessage(state, message),
  inbox: withInbox,
  task: (state, change) => withJob(withTask(state, change.task), change),
  trigger: withTrigger,
  question: withQuestion,
  status: (state, { status }) => withStatus(state, status),
  turn: withTurn,
  delta: withDelta,
};

/** @param {State} state @param {Message} message */
function withMessage(state, message) {
  const at = state.messages.findIndex(byId(message.id));
  const messages = at < 0 ? [...state.messages, message] : state.messages.with(at, message);
  const isNew = at < 0 && !state.following;
  const turn = state.turn;
  const isReply = message.role !== "user" && turn && turn.turnId === message.turnId;
  return {
    ...state,
    messages,
    inbox: without(state.inbox, message.id),
    outbox: without(state.outbox, message.id),
    unseen: isNew ? state.unseen + newsIn([message]) : state.unseen,
    turn: isReply ? { ...turn, draft: "", committed: true } : turn,
  };
}

/** @param {State} state @param {InboxChange} change @returns {State} */
function withInbox(state, { id, item }) {
  const outbox = without(state.outbox, id);
  // It waits again: what had come of its reply is worth nothing.
  const over = item?.state === "queued" && state.turn?.inputs.includes(id);
  if (over && state.turn) {
    state = { ...state, turn: { ...state.turn, draft: "", endedAt: state.turn.endedAt ?? state.now } };
  }
  if (!item || state.messages.some(byId(id))) {
    return { ...state, outbox, inbox: without(state.inbox, id) };
  }
  const at = state.inbox.findIndex(byId(id));
  const inbox = at < 0 ? [...state.inbox, item] : state.inbox.with(at, item);
  return { ...state, outbox, inbox };
}

/** @param {State} state @param {Task} task */
function withTask(state, task) {
  const { [task.id]: _, ...others } = state.tasks;
  const newest = Object.entries(others).slice(1 - TASKS_KEPT);
  const tasks = { ...Object.fromEntries(newest), [task.id]: task };
  const detail = state.detail;
  if (!detail) return { ...state, tasks };
  const trace = detail.trace.map((one) => (one.id === task.id ? task : one));
  const related = task.traceId === detail.task?.traceId && !trace.some(byId(task.id));
  if (related) trace.push(task);
  const own = detail.id === task.id ? task : detail.task;
  const shown = { ...detail, trace: trace.slice(-TRACE_KEPT), task: own };
  return { ...state, tasks, detail: shown };
}

/** @param {State} state @param {TriggerChange} change */
function withTrigger(state, { id, trigger }) {
  const { [id]: _, ...others } = state.triggers;
  return { ...state, triggers: trigger ? { ...others, [id]: trigger } : others };
}

/** @param {State} state @param {QuestionChange} change */
function withQuestion(state, { question }) {
  const same = question?.questionId === state.question?.questionId;
  return { ...state, question, answering: same ? state.answering : { busy: false, error: "" } };
}

/** @param {State} state @param {TurnChange} change @returns {State} */
function withTurn(state, change) {
  const mine = state.turn?.turnId === change.turnId ? state.turn : null;
  if (change.state === "ended") {
    const turn = mine && { ...mine, endedAt: mine.endedAt ?? state.now };
    return { ...state, turn: turn ?? state.turn, status: withoutTurn(state.status, change.turnId) };
  }
  // Of a turn that is known another attempt begins, which says all anew.
  const turn = newTurn(change.turnId, mine?.since ?? state.now, change.headline, change.inputs);
  const inbox = state.inbox.map((item) =>
    turn.inputs.includes(item.id) && item.state !== "answering"
      ? { ...item, state: /** @type {const} */ ("answering") }
      : item,
  );
  return { ...state, turn, inbox };
}

/**
 * A part of the reply, at its place: what is known already is dropped; what is missing before it is
 * to be asked for, once.
 *
 * @param {State} state
 * @param {DeltaChange} delta
 * @returns {State}
 */
function withDelta(state, { turnId, text, reset, offset, blocks: completed }) {
  const turn = state.turn?.turnId === turnId ? state.turn : newTurn(turnId, state.now);
  if (turn.committed) return state;
  const anew = reset || offset === 0; // another engine may say all once more
  const { draft, end, blocks } = anew ? { draft: "", end: 0, blocks: [] } : turn;
  const at = offset ?? end;
  if (at > end && !turn.gap) return { ...state, turn: { ...turn, gap: "found" } };
  const isMissing = at > end;
  const more = (isMissing ? "… " : "") + text.slice(Math.max(0, end - at));
  const next = { ...turn, draft: draft + more, blocks, end: Math.max(end, at + text.length) };
  const gap = isMissing ? "missing" : turn.gap;
  return { ...state, turn: withBlocks({ ...next, gap: anew ? "" : gap }, completed) };
}

/**
 * Blocks are taken in order, each once, and only while the draft is whole.
 *
 * @param {Turn} turn
 * @param {DraftBlock[]} [given]
 * @returns {Turn}
 */
function withBlocks(turn, given = []) {
  const blocks = [...turn.blocks];
  for (const block of turn.gap === "missing" ? [] : given) {
    const isNext = block.start === (blocks.at(-1)?.end ?? 0) && block.end <= turn.end;
    if (isNext) blocks.push(block);
  }
  return { ...turn, blocks };
}

/** @param {State} state @param {MessagesPage} action @returns {State} */
function olderLoaded(state, { messages, jobs = [], before }) {
  const fresh = messages.filter((message) => !state.messages.some(byId(message.id)));
  return { ...known(state, jobs), older: "idle", before, messages: [...fresh, ...state.messages] };
}

/** @param {string} id @returns {(item: {id: string}) => boolean} */
function byId(id) {
  return (item) => item.id === id;
}

/** @template {{id: string}} T @param {T[]} items @param {string} id  The same list when none has the id. */
function without(items, id) {
  return items.some(byId(id)) ? items.filter((item) => item.id !== id) : items;
}
