/**
 * The page's state and every way it changes: one pure function. Knows no DOM, network or clock.
 *
 * Everything from the server is an upsert by id, so that hearing a thing twice does no harm.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./state-types.js").OutboxItem} OutboxItem
 */

import { CARD_ACTIONS, noCards, trimmed } from "./cards-state.js";
import { spokenOf, withJobs } from "./job-state.js";
import { noHome } from "./home-state.js";
import { OUTPUT_ACTIONS, noOutput } from "./output.js";
import { SEARCH_ACTIONS, inPast, noSearch } from "./search-state.js";
import { FILE_ACTIONS, noFiles } from "./file-state.js";
import { composingWith, MESSAGE_ACTIONS, noMessages } from "./message-state.js";
import { turnAt, turnByStatus, turnOf, turnTold, withDelta, withTurn } from "./turn-state.js";
import { standsAlone } from "./turns.js";
import { WORK_ACTIONS, noWork } from "./work-state.js";

const ENDED_KEPT = 200;
const QUEUED_KEPT = 500;
const TRACE_KEPT = 100;
/** @type {import("./types.js").Graph} */
const NO_GRAPH = { nodes: [], edges: [] };

/** @type {import("./state-types.js").EnginesPage} nothing is known, nothing typed */
const NO_ENGINES = {
  load: "idle",
  error: "",
  list: null,
  form: null,
  removing: "",
  seat: "all",
  busy: "",
};

/** @type {State["channels"]} */
const NO_CHANNELS = {
  load: "idle",
  error: "",
  list: null,
  form: null,
  removing: "",
  busy: "",
  tests: {},
};

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
    after: null,
    newer: "idle",
    inbox: [],
    outbox: [],
    question: null,
    answering: { busy: false, error: "" },
    jobs: {},
    tasks: {},
    ended: [],
    triggers: {},
    status: null,
    turn: null,
    detail: null,
    triggerDetail: null,
    forms: {},
    ...noCards(),
    memory: { load: "idle", files: [], index: null, whole: [] },
    note: null,
    notes: {},
    backlog: {
      load: "idle",
      items: [],
      draft: "",
      due: "",
      dating: "",
      date: "",
      busy: "",
      error: "",
    },
    search: noSearch(),
    ...noMessages(),
    ...noFiles(),
    ...noHome(),
    engines: NO_ENGINES,
    channels: NO_CHANNELS,
    usage: { load: "loading" },
    work: noWork(),
    wraps: true,
    chainListed: false,
    pending: {},
    confirming: "",
    route: { view: "chat" },
    places: {},
    panelOpen: true,
    panelFull: false,
    notify: "insecure",
    install: "none",
    panelWidth: null,
    wide: true,
    following: true,
    unseen: 0,
    draft: "",
    notices: [],
    language: "en",
    theme: "system",
  };
}

/** @type {Record<string, (state: State, action: any) => State>} */
const ACTIONS = {
  set: (state, { values }) => ({ ...state, ...values }),
  tick,
  signedOut: (state) => ({
    ...state,
    session: "out",
    load: "loading",
    turn: null,
    ...noHome(),
    engines: NO_ENGINES, // a key may have been typed
    channels: NO_CHANNELS, // and an address
  }),
  snapshot,
  change: (state, { change }) => applyChange(state, change),
  olderLoaded,
  queueOut: (state, { item }) => ({ ...state, outbox: [...state.outbox, item] }),
  outState: (state, { id, ...values }) => ({
    ...state,
    outbox: state.outbox.map((item) => (item.id === id ? { ...item, ...values } : item)),
  }),
  outGone: (state, { id }) => ({ ...state, outbox: without(state.outbox, id) }),
  following: (state, { following }) => ({
    ...state,
    following,
    unseen: following ? 0 : state.unseen,
  }),
  detailOpened,
  detailLoaded,
  detailFailed,
  detailJob: (state, { id, job }) =>
    state.detail?.id === id ? { ...state, detail: { ...state.detail, job } } : state,
  diffLoaded,
  unfolded,
  pending,
  notice: (state, { notice }) => ({ ...state, notices: [...state.notices.slice(-2), notice] }),
  noticeGone: (state, { id }) => ({
    ...state,
    notices: state.notices.filter((notice) => notice.id !== id),
  }),
  ...CARD_ACTIONS,
  ...OUTPUT_ACTIONS,
  ...WORK_ACTIONS,
  ...SEARCH_ACTIONS,
  ...MESSAGE_ACTIONS,
  ...FILE_ACTIONS,
};

/** @param {typeof ACTIONS} actions  Of a place that has come. */
export function addActions(actions) {
  Object.assign(ACTIONS, actions);
}

/**
 * The state after an action; the same object when nothing changed.
 *
 * @param {State} state
 * @param {{type: string} & Record<string, any>} action
 * @returns {State}
 */
export function reduce(state, action) {
  const act = ACTIONS[action.type];
  if (!act) throw new Error(`expected a known action, got ${action.type}`);
  return act(state, action);
}

/** @param {State} state @param {{now: number}} action our own clock */
function tick(state, { now: own }) {
  const now = own + state.skewMs;
  return { ...state, now, turn: turnAt(state.turn, now) };
}

/**
 * @param {State} state
 * @param {{snapshot: import("./types.js").Snapshot, now: number}} action
 */
function snapshot(state, { snapshot: given, now }) {
  const skewMs = Date.parse(given.now) - now;
  const kept = olderThan(state.messages, given.messages);
  const fresh = given.messages.filter((message) => !state.messages.some(byId(message.id)));
  const known = new Set([...given.messages, ...given.inbox].map((item) => item.id));
  /** @type {State} */
  const next = {
    ...state,
    session: "in",
    load: "ready",
    loadError: "",
    login: { busy: false, error: "" },
    skewMs,
    now: now + skewMs,
    version: state.version || given.version,
    zone: given.timezone ?? state.zone,
    messages: [...kept, ...given.messages],
    before: kept.length ? state.before : given.before,
    after: null,
    older: "idle",
    ...inPast(state, given.messages),
    inbox: given.inbox,
    outbox: state.outbox.filter((item) => item.state !== "accepted" && !known.has(item.id)),
    question: given.question,
    composing: composingWith(state, given.question),
    jobs: withJobs(state.jobs, given.jobs ?? [], spokenOf(kept, given.messages)),
    turn: turnOf(given),
    tasks: Object.fromEntries(given.tasks.map((task) => [task.id, task])),
    ended: given.tasks.filter(isOver).map((task) => task.id),
    triggers: Object.fromEntries(given.triggers.map((trigger) => [trigger.id, trigger])),
    unseen: state.following || !state.messages.length ? state.unseen : state.unseen + heard(fresh),
  };
  return withStatus(next, given.status);
}

/**
 * The loaded messages that lie before a snapshot's: kept only where the two meet.
 *
 * @param {Message[]} loaded
 * @param {Message[]} given
 */
function olderThan(loaded, given) {
  const meets = given.length ? loaded.findIndex(byId(given[0].id)) : -1;
  return meets > 0 ? loaded.slice(0, meets) : [];
}

/** @param {Message[]} messages how many of them someone else said */
function heard(messages) {
  return messages.filter((message) => message.role !== "user" && standsAlone(message)).length;
}

/** @param {State} state @param {import("./types.js").Status} status */
function withStatus(state, status) {
  const turn = turnByStatus(state, status);
  const outdated = Boolean(state.version && status.version && state.version !== status.version);
  return { ...state, status, turn, outdated: state.outdated || outdated };
}

/**
 * @param {State} state
 * @param {Change} change
 * @returns {State}
 */
function applyChange(state, change) {
  switch (change.kind) {
    case "message":
      return withMessage(state, change.message);
    case "inbox":
      return withInbox(state, change.id ?? change.item?.id ?? "", change.item);
    case "task":
      return withTask(state, change.task);
    case "job":
      return { ...state, jobs: withJobs(state.jobs, [change.job]) };
    case "trigger":
      return withTrigger(state, change.id ?? change.trigger?.id ?? "", change.trigger);
    case "question":
      return withQuestion(state, change.question);
    case "status":
      return withStatus(state, change.status);
    case "turn":
      return withTurn(state, change);
    case "delta":
      return withDelta(state, change);
    default:
      return state; // a newer server speaks of things this page does not show
  }
}

/** @param {State} state @param {Message} message */
function withMessage(state, message) {
  const at = state.messages.findIndex(byId(message.id));
  const messages = withNewest(state, at, message);
  const isNew = at < 0 && !state.following;
  return {
    ...state,
    messages,
    inbox: without(state.inbox, message.id),
    outbox: without(state.outbox, message.id),
    unseen: isNew ? state.unseen + heard([message]) : state.unseen,
    turn: turnTold(state.turn, message),
  };
}

/** @param {State} state @param {number} at @param {Message} message  What is new is no part of the past. */
function withNewest({ messages, after }, at, message) {
  if (at >= 0) return messages.with(at, message);
  return after === null ? trimmed([...messages, message]) : messages;
}

/**
 * @param {State} state
 * @param {string} id
 * @param {import("./types.js").InboxItem | null} item
 */
function withInbox(state, id, item) {
  const outbox = without(state.outbox, id);
  if (!item || state.messages.some(byId(id))) {
    return { ...state, outbox, inbox: without(state.inbox, id) };
  }
  const at = state.inbox.findIndex(byId(id));
  const inbox = at < 0 ? [...state.inbox, item] : state.inbox.with(at, item);
  return { ...state, outbox, inbox };
}

/** @param {State} state @param {import("./types.js").Task} task */
function withTask(state, task) {
  const isNew = isOver(task) && !state.ended.includes(task.id);
  const ended = isNew ? [task.id, ...state.ended] : [...state.ended];
  const tasks = bounded({ ...state.tasks, [task.id]: task }, ended.splice(ENDED_KEPT));
  const detail = state.detail;
  if (!detail) return { ...state, tasks, ended };
  const trace = detail.trace.map((one) => (one.id === task.id ? task : one));
  const related = task.traceId === detail.task?.traceId && !trace.some(byId(task.id));
  if (related) trace.push(task);
  const own = detail.id === task.id ? task : detail.task;
  const shown = { ...detail, trace: trace.slice(-TRACE_KEPT), task: own };
  return { ...state, tasks, ended, detail: shown };
}

/**
 * All that run, the last of those that ended, and of a long queue its head.
 *
 * @param {Record<string, import("./types.js").Task>} tasks
 * @param {string[]} surplus ids of those that ended before the last
 */
function bounded(tasks, surplus) {
  const queued = Object.values(tasks).filter((task) => task.state === "queued");
  if (!surplus.length && queued.length <= QUEUED_KEPT) return tasks;
  queued.sort(inQueue);
  const kept = { ...tasks };
  for (const id of [...surplus, ...queued.slice(QUEUED_KEPT).map((task) => task.id)]) {
    delete kept[id];
  }
  return kept;
}

/** @param {import("./types.js").Task} task */
const isOver = (task) => !["running", "queued", "asking"].includes(task.state);

/**
 * The order in which tasks are taken.
 *
 * @param {import("./types.js").Task} a
 * @param {import("./types.js").Task} b
 */
export function inQueue(a, b) {
  return b.priority - a.priority || Date.parse(a.createdAt) - Date.parse(b.createdAt);
}

/**
 * @param {State} state
 * @param {string} id
 * @param {import("./types.js").Trigger | null} trigger
 */
function withTrigger(state, id, trigger) {
  const { [id]: _, ...others } = state.triggers;
  return { ...state, triggers: trigger ? { ...others, [id]: trigger } : others };
}

/** @param {State} state @param {import("./types.js").Question | null} question */
function withQuestion(state, question) {
  const same = question?.questionId === state.question?.questionId;
  return {
    ...state,
    question,
    composing: composingWith(state, question),
    answering: same ? state.answering : { busy: false, error: "" },
  };
}

/**
 * @param {State} state
 * @param {import("./types.js").MessagesPage} action
 * @returns {State}
 */
function olderLoaded(state, { messages, before, jobs }) {
  const fresh = messages.filter((message) => !state.messages.some(byId(message.id)));
  const known = withJobs(state.jobs, jobs ?? []);
  return { ...state, older: "idle", before, messages: [...fresh, ...state.messages], jobs: known };
}

/** @param {State} state @param {{id: string | null}} action */
function detailOpened(state, { id }) {
  if (id === null) return { ...state, detail: null };
  if (state.detail?.id === id) return state;
  const task = state.tasks[id] ?? null;
  const load = /** @type {const} */ ("loading");
  const detail = { id, load, task, prompt: "", result: null };
  /** @type {Pick<import("./state-types.js").TaskDetail, "diff" | "diffLoad" | "unfolded">} */
  const unchanged = { diff: null, diffLoad: "idle", unfolded: {} };
  const none = { events: [], trace: [], graph: NO_GRAPH, usage: null, job: null, ...unchanged };
  return { ...state, detail: { ...detail, ...none, output: noOutput() } };
}

/** @param {State} state @param {{id: string, answer: any}} action @returns {State} */
function detailLoaded(state, { id, answer }) {
  if (state.detail?.id !== id) return state;
  return {
    ...state,
    detail: {
      ...state.detail,
      load: "ready",
      task: answer.task,
      prompt: answer.prompt ?? "",
      result: answer.result ?? null,
      events: answer.events ?? [],
      trace: answer.trace ?? [],
      graph: answer.graph ?? NO_GRAPH,
      usage: answer.usage ?? null,
    },
  };
}

/**
 * @param {State} state
 * @param {{id: string, diff: import("./types.js").Diff | null, load: "idle" | "failed"}} action
 * @returns {State}
 */
function diffLoaded(state, { id, diff, load }) {
  const { detail } = state;
  return detail?.id === id ? { ...state, detail: { ...detail, diff, diffLoad: load } } : state;
}

/** @param {State} state @param {{key: string, open: boolean}} action @returns {State} */
function unfolded(state, { key, open }) {
  const { detail } = state;
  if (!detail) return state;
  return { ...state, detail: { ...detail, unfolded: { ...detail.unfolded, [key]: open } } };
}

/** @param {State} state @param {{id: string, load: "missing" | "failed"}} action @returns {State} */
function detailFailed(state, { id, load }) {
  const { detail } = state;
  return detail?.id === id ? { ...state, detail: { ...detail, load } } : state;
}

/** @param {State} state @param {{id: string, what: string}} action empty: no longer */
function pending(state, { id, what }) {
  const { [id]: _, ...others } = state.pending;
  return { ...state, pending: what ? { ...others, [id]: what } : others };
}

/** @param {string} id @returns {(item: {id: string}) => boolean} */
function byId(id) {
  return (item) => item.id === id;
}

/**
 * @template {{id: string}} T
 * @param {T[]} items
 * @param {string} id
 * @returns {T[]} the same list when it is not among them
 */
function without(items, id) {
  return items.some(byId(id)) ? items.filter((item) => item.id !== id) : items;
}
