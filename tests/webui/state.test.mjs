// The page's state: what each change from the server and from the user makes of it.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { DRAFT_GRACE_MS, initialState, reduce } from "../../webui/js/core/state.js";

const NOW = Date.parse("2026-11-21T12:00:00.000Z");
const at = (seconds = 0) => new Date(NOW + seconds * 1000).toISOString();

const message = (id, more = {}) => ({ id, role: "agent", text: id, createdAt: at(), ...more });
const waiting = (id, more = {}) => ({
  id,
  kind: "user_input",
  text: id,
  createdAt: at(),
  state: "queued",
  ...more,
});
const task = (id, more = {}) => ({
  id,
  seat: "worker",
  state: "queued",
  createdAt: at(),
  completedAt: null,
  attempts: 0,
  traceId: `trace-${id}`,
  ...more,
});
const idle = { state: "idle", since: null, turnId: null };
const status = (more = {}) => ({
  consumer: "ok",
  teller: idle,
  planner: { state: "idle", since: null },
  workers: { busy: 0, seats: 3 },
  version: "1",
  ...more,
});
const snapshot = (more = {}) => ({
  cursor: "c1",
  version: "1",
  now: at(),
  messages: [],
  before: null,
  inbox: [],
  question: null,
  jobs: [],
  totals: {},
  triggers: [],
  status: status(),
  ...more,
});

const loaded = (more) =>
  reduce(initialState(), { type: "snapshot", snapshot: snapshot(more), now: NOW });
const hear = (state, ...changes) =>
  changes.reduce((before, change) => reduce(before, { type: "change", change }), state);
const ids = (items) => items.map((item) => item.id);

describe("a snapshot", () => {
  test("takes the server's clock, however wrong ours is", () => {
    const state = reduce(initialState(), {
      type: "snapshot",
      snapshot: snapshot(),
      now: NOW - 90_000,
    });
    assert.equal(state.skewMs, 90_000);
    assert.equal(reduce(state, { type: "tick", now: NOW - 80_000 }).now, NOW + 10_000);
  });

  test("keeps the older pages that were loaded where it meets them", () => {
    let state = loaded({ messages: [message("m3")], before: "b3" });
    state = reduce(state, {
      type: "olderLoaded",
      messages: [message("m1"), message("m2")],
      before: "b1",
    });
    state = reduce(state, {
      type: "snapshot",
      snapshot: snapshot({ messages: [message("m3"), message("m4")], before: "b3" }),
      now: NOW,
    });
    assert.deepEqual(ids(state.messages), ["m1", "m2", "m3", "m4"]);
    assert.equal(state.before, "b1");
  });

  test("drops the loaded pages where there is a gap between", () => {
    let state = loaded({ messages: [message("m1")], before: "b1" });
    state = reduce(state, {
      type: "snapshot",
      snapshot: snapshot({ messages: [message("m90")], before: "b90" }),
      now: NOW,
    });
    assert.deepEqual(ids(state.messages), ["m90"]);
    assert.equal(state.before, "b90");
  });

  test("ends the unsent state of what it knows, and keeps what it does not", () => {
    const outbox = ["known", "waits", "lost"].map((id) => ({ id, text: id, state: "failed" }));
    const given = snapshot({ messages: [message("known")], inbox: [waiting("waits")] });
    const state = reduce({ ...loaded(), outbox }, { type: "snapshot", snapshot: given, now: NOW });
    assert.deepEqual(ids(state.outbox), ["lost"]);
  });

  test("of another version says that the page is outdated", () => {
    const state = hear(loaded(), { kind: "status", status: status({ version: "2" }) });
    assert.equal(state.outdated, true);
    assert.equal(loaded().outdated, false);
  });
});

describe("a message's way", () => {
  test("goes from the outbox to the inbox to the conversation, one at a time", () => {
    const item = { id: "msg-1", kind: "input", text: "hi", createdAt: at(), state: "accepted" };
    let state = { ...loaded(), outbox: [item] };
    state = hear(state, { kind: "inbox", id: "msg-1", item: waiting("msg-1") });
    assert.deepEqual([state.outbox, ids(state.inbox)], [[], ["msg-1"]]);
    const started = { kind: "turn", state: "started", turnId: "t1", inputs: ["msg-1"] };
    state = hear(state, started);
    assert.equal(state.inbox[0].state, "answering");
    state = hear(state, { kind: "message", message: message("msg-1", { role: "user" }) });
    assert.deepEqual([state.inbox, ids(state.messages)], [[], ["msg-1"]]);
  });

  test("does not go back when an older hint of the inbox comes late", () => {
    let state = hear(loaded(), { kind: "message", message: message("msg-1", { role: "user" }) });
    state = hear(state, { kind: "inbox", id: "msg-1", item: waiting("msg-1") });
    assert.deepEqual(state.inbox, []);
  });

  test("heard twice stands once", () => {
    const change = { kind: "message", message: message("m1") };
    assert.deepEqual(ids(hear(loaded(), change, change).messages), ["m1"]);
  });

  test("counts as new only for a reader who is further up, and only from others", () => {
    let state = hear(loaded(), { kind: "message", message: message("m1") });
    assert.equal(state.unseen, 0);
    state = hear(
      { ...state, following: false },
      { kind: "message", message: message("m2") },
      { kind: "message", message: message("m2") },
      { kind: "message", message: message("m3", { role: "user" }) },
    );
    assert.equal(state.unseen, 1);
  });
});

describe("a turn", () => {
  const started = { kind: "turn", state: "started", turnId: "t1", headline: "", inputs: [] };
  const ended = { kind: "turn", state: "ended", turnId: "t1" };
  const delta = (text) => ({ kind: "delta", turnId: "t1", text });
  const reply = { kind: "message", message: message("m1", { turnId: "t1" }) };

  test("grows its draft until its message comes", () => {
    let state = hear(loaded(), started, delta("Hel"), delta("lo"));
    assert.equal(state.turn.draft, "Hello");
    state = hear(state, reply, delta("!"));
    assert.equal(state.turn.draft, "");
    assert.equal(state.turn.committed, true);
  });

  test("withdraws what a failed try has streamed", () => {
    const again = { ...delta(""), reset: true };
    assert.equal(hear(loaded(), started, delta("Hel"), again, delta("Hello")).turn.draft, "Hello");
  });

  const at_ = (offset, text) => ({ ...delta(text), offset });
  const joined = (draft) =>
    loaded({
      status: status({ teller: { state: "replying", since: at(), turnId: "t1", headline: "" } }),
      draft: { turnId: "t1", text: draft, end: draft.length },
    });

  test("that was joined in the middle shows each word once, wherever that was", () => {
    const whole = "Hello 😀 world";
    for (let from = 0; from <= whole.length; from++) {
      for (const seen of [0, 3, 9]) {
        const heard = [at_(seen, whole.slice(seen, 9)), at_(9, whole.slice(9))];
        const start = joined(whole.slice(0, Math.max(from, seen)));
        assert.equal(hear(start, ...heard).turn.draft, whole);
      }
    }
  });

  test("shows each complete block once, and only where nothing is missing before it", () => {
    const block = (start, end) => ({ start, end, html: `${start}-${end}` });
    const told = (state) => state.turn.blocks.map(({ html }) => html);
    const start = loaded({
      status: status({ teller: { state: "replying", since: at(), turnId: "t1", headline: "" } }),
      draft: { turnId: "t1", text: "a\n\nb", blocks: [block(0, 2)], end: 4 },
    });
    assert.deepEqual(told(start), ["0-2"]);
    const next = { ...at_(2, "\nb\n\nc"), blocks: [block(0, 2), block(2, 5), block(9, 12)] };
    assert.deepEqual(told(hear(start, next)), ["0-2", "2-5"]);
    assert.deepEqual(told(hear(start, at_(5, "\n"), at_(9, "c"), next)), ["0-2"]);
    assert.deepEqual(told(hear(start, next, at_(0, "anew"))), []);
  });

  test("of which a part is missing asks for it once, then says that it is", () => {
    let state = hear(loaded(), at_(3, "lo"));
    assert.deepEqual([state.turn.draft, state.turn.gap], ["", "found"]);
    state = hear(joined("Hel"), at_(3, "lo"), at_(9, "!"));
    assert.deepEqual([state.turn.draft, state.turn.end], ["Hello… !", 10]);
  });

  test("begins anew with another attempt", () => {
    const again = hear(loaded(), started, at_(0, "Hel"), ended, started, at_(0, "Hello"));
    assert.equal(again.turn.draft, "Hello");
  });

  test("whose input waits again is over", () => {
    const began = { ...started, inputs: ["msg-1"] };
    const state = hear(loaded({ inbox: [waiting("msg-1")] }), began, at_(0, "Hel"), ended);
    assert.equal(state.inbox[0].state, "answering");
    const queued = hear(state, { kind: "inbox", id: "msg-1", item: waiting("msg-1") });
    assert.deepEqual([queued.turn.draft, queued.inbox[0].state], ["", "queued"]);
    const late = { state: "replying", since: at(), turnId: "t1", headline: "" };
    const told = hear(queued, { kind: "status", status: status({ teller: late }) });
    assert.equal(told.status.teller.state, "idle");
  });

  test("that ended without a message is forgotten after a moment", () => {
    let state = hear(loaded(), started, delta("Hel"), ended);
    assert.equal(state.turn.endedAt, NOW);
    state = reduce(state, { type: "tick", now: NOW + DRAFT_GRACE_MS });
    assert.notEqual(state.turn, null);
    state = reduce(state, { type: "tick", now: NOW + DRAFT_GRACE_MS + 1 });
    assert.equal(state.turn, null);
  });

  test("is not ended by a status older than it", () => {
    const state = hear(loaded(), started, { kind: "status", status: status() });
    assert.equal(state.turn.endedAt, null);
  });

  test("is ended by a status that has had time to know of it", () => {
    let state = hear(loaded(), started);
    state = reduce(state, { type: "tick", now: NOW + 10_000 });
    state = hear(state, { kind: "status", status: status() });
    assert.equal(state.turn.endedAt, NOW + 10_000);
  });

  test("is known from the status of a page that came later", () => {
    const teller = { state: "replying", since: at(-5), headline: "thinking", turnId: "t9" };
    const state = loaded({ status: status({ teller }) });
    assert.equal(state.turn.turnId, "t9");
    assert.equal(state.turn.since, NOW - 5000);
  });
});

describe("tasks and triggers", () => {
  test("of tasks the last that changed are kept", () => {
    let state = loaded();
    for (let number = 0; number < 210; number += 1) {
      state = hear(state, { kind: "task", task: task(`e${number}`), job: null, totals: {} });
    }
    assert.equal(Object.keys(state.tasks).length, 200);
    assert.ok(state.tasks.e209 && !state.tasks.e9);
  });

  test("a removed trigger is gone", () => {
    const trigger = { id: "trig-1", title: "x" };
    let state = hear(loaded(), { kind: "trigger", id: "trig-1", trigger });
    assert.deepEqual(Object.keys(state.triggers), ["trig-1"]);
    state = hear(state, { kind: "trigger", id: "trig-1", trigger: null });
    assert.deepEqual(state.triggers, {});
  });

  test("a change of the opened task, or of one it belongs with, is seen in its detail", () => {
    let state = loaded();
    const own = task("a", { traceId: "t" });
    state = { ...state, detail: { id: "a", task: own, trace: [own] } };
    state = hear(
      state,
      { kind: "task", task: task("a", { traceId: "t", state: "running" }) },
      { kind: "task", task: task("b", { traceId: "t" }) },
      { kind: "task", task: task("c", { traceId: "other" }) },
    );
    assert.equal(state.detail.task.state, "running");
    assert.deepEqual(ids(state.detail.trace), ["a", "b"]);
  });
});

test("an action that nobody knows is an error, a change that nobody knows is none", () => {
  assert.throws(() => reduce(initialState(), { type: "nonsense" }), /nonsense/);
  const state = loaded();
  assert.equal(hear(state, { kind: "weather" }), state);
});

test("no action changes the state it was given", () => {
  const freeze = (value) => {
    if (value && typeof value === "object" && !Object.isFrozen(value)) {
      Object.freeze(value);
      Object.values(value).forEach(freeze);
    }
    return value;
  };
  let state = freeze(loaded({ messages: [message("m1")], inbox: [waiting("i1")] }));
  const changes = [
    { kind: "message", message: message("m2", { turnId: "t1" }) },
    { kind: "inbox", id: "i1", item: null },
    { kind: "task", task: task("a"), job: null },
    { kind: "turn", state: "started", turnId: "t1", inputs: ["i1"] },
    { kind: "delta", turnId: "t1", text: "x" },
    { kind: "question", question: { questionId: "q1", options: [] } },
    { kind: "status", status: status() },
  ];
  for (const change of changes) state = freeze(hear(state, change));
  assert.equal(state.messages.length, 2);
});
