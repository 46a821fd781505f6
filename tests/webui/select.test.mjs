// What the views show of a state.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  choiceOf,
  firesSoon,
  inLines,
  live,
  messageAbout,
  restOf,
  taskTimes,
  timeline,
} from "../../webui/js/core/select.js";
import { initialState } from "../../webui/js/core/state.js";

const NOW = Date.parse("2026-11-21T12:00:00.000Z");
const at = (seconds = 0) => new Date(NOW + seconds * 1000).toISOString();
const state = (values) => ({ ...initialState(), now: NOW, ...values });
const said = (id, seconds = 0, role = "user") => ({ id, role, text: id, createdAt: at(seconds) });
const task = (id, more = {}) => ({
  id,
  seat: "worker",
  state: "queued",
  title: id,
  prompt: id,
  priority: 5,
  createdAt: at(),
  startedAt: null,
  completedAt: null,
  traceId: id,
  ...more,
});
const job = (id, more = {}) => ({
  id,
  kind: "request",
  title: id,
  state: "done",
  messageId: null,
  taskId: id,
  askedAt: at(),
  startedAt: null,
  endedAt: null,
  headline: "",
  steps: [],
  ...more,
});
const byId = (...tasks) => Object.fromEntries(tasks.map((one) => [one.id, one]));

test("seconds are shown while a trigger fires within a minute", () => {
  const fires = (...times) => firesSoon(state({ triggers: times.map((nextRunAt) => ({ nextRunAt })) }));
  assert.deepEqual([fires(), fires(null, at(60)), fires(at(90), at(59)), fires(at(-9))], [false, false, true, true]);
});

describe("messages of one trigger", () => {
  const told = (id, seconds, more = {}) => ({
    ...said(id, seconds, "system"),
    triggerId: "g1",
    taskIds: [`t-${id}`],
    ...more,
  });
  const lines = (...messages) =>
    inLines(messages).map((line) => [line.id, line.repeats ?? [], line.since ?? null]);

  test("are one line, where the newest is", () => {
    const given = [told("a", 0), said("x", 1, "agent"), told("b", 2), told("c", 3)];
    assert.deepEqual(lines(...given), [["x", [], null], ["c", ["a", "b"], at(0)]]);
  });

  test("are one across what the user says, unless a model said them; each trigger has its own", () => {
    const given = [told("a", 0), told("b", 1, { triggerId: "g2" }), said("m", 2), told("c", 3)];
    const ids = (messages) => lines(...messages).map(([id]) => id);
    assert.deepEqual(ids(given), ["b", "m", "c"]);
    assert.deepEqual(ids(given.map((one) => ({ ...one, role: one.role === "user" ? "user" : "agent" }))), ["a", "b", "m", "c"]);
  });

  test("count what the server counted once, however they come", () => {
    const page = told("c", 3, { repeats: ["a", "b"], since: at(0) });
    assert.deepEqual(lines(told("b", 2), page, told("d", 4)), [["d", ["b", "a", "c"], at(0)]]);
  });

  test("are found by the tasks of those the newest stands for", () => {
    const given = state({ messages: [told("a", 0), told("b", 1)] });
    assert.equal(messageAbout(given, "t-a", []), "b");
  });
});

describe("the timeline", () => {
  const shown = (given) =>
    timeline(given)
      .filter((entry) => entry.type !== "day")
      .map((entry) => (entry.type === "draft" ? entry.rest.text : `${entry.key}:${entry.delivery}`));

  test("says of what is asked that it waits, while who answers does", () => {
    const given = { inbox: [{ ...said("now"), state: "answering" }] };
    const status = /** @type {any} */ ({ engines: { teller: { state: "waiting" } } });
    assert.deepEqual(shown(state({ ...given, status })), ["now:waiting"]);
    status.engines.teller.state = "ready";
    assert.deepEqual(shown(state({ ...given, status })), ["now:answering"]);
  });

  test("stands in the order in which things are answered", () => {
    const given = state({
      messages: [said("a"), said("b", 1, "agent")],
      inbox: [{ ...said("later"), state: "queued" }, { ...said("now"), state: "answering" }],
      outbox: [
        { ...said("out"), state: "sending" },
        { ...said("taken"), state: "accepted" },
        { ...said("lost"), state: "failed", error: "why" },
      ],
      turn: { turnId: "t", draft: "Hel", blocks: [], committed: false, endedAt: null },
    });
    assert.deepEqual(shown(given), [
      "a:answered",
      "b:null",
      "now:answering",
      "Hel",
      "later:queued",
      "out:sending",
      "taken:queued",
      "lost:failed",
    ]);
  });

  test("shows a job once, at the message that asked for it, and all runs of a trigger in one line", () => {
    const agent = (id, more) => ({ ...said(id, 1, "agent"), engine: "builtin", inReplyTo: ["a"], ...more });
    const told = (id, taskIds, more) => ({ ...said(id, 2, "system"), taskIds, ...more });
    const jobs = byId(
      job("j", { messageId: "a", steps: [{ id: "w" }] }),
      job("g", { kind: "trigger" }),
      job("old", { messageId: "not loaded", steps: [{ id: "v" }] }),
    );
    const messages = [
      said("a"),
      agent("begun", { taskIds: ["p"] }),
      agent("words", { taskIds: ["p"], engine: "codex" }),
      told("ended", ["w"]),
      told("other", ["w", "v"]),
      told("r1", ["t1"], { triggerId: "g" }),
      agent("chat", { taskIds: [], inReplyTo: ["b"] }),
      told("r2", ["t2"], { triggerId: "g" }),
      told("r3", ["t3"], { triggerId: "removed" }),
    ];
    const keys = timeline(state({ messages, jobs })).map((entry) => entry.key);
    assert.deepEqual(keys.slice(1), ["a", "job-j", "words", "other", "chat", "runs-g", "r3"]);
    assert.equal(messageAbout(state({ messages, jobs }), "w", [task("w", { traceId: "j" })]), "a");
  });

  test("shows nothing twice while a message is on its way", () => {
    const given = state({
      messages: [said("a")],
      inbox: [{ ...said("a"), state: "answering" }, { ...said("b"), state: "queued" }],
      outbox: [{ ...said("b"), state: "sending" }],
    });
    assert.deepEqual(shown(given), ["a:answered", "b:queued"]);
  });

  test("says of each message how its reply ended, or what it waits for", () => {
    const reply = (id, more) => ({ ...said(`${id}-reply`, 1, "agent"), inReplyTo: [id], ...more });
    const given = state({
      messages: [
        ...[said("a"), reply("a", {})],
        ...[said("b"), reply("b", { stopped: true })],
        ...[said("c"), reply("c", { failed: true })],
      ],
      inbox: [{ ...said("d"), state: "queued" }],
      status: { engines: { teller: { state: "waiting", reason: "its endpoint is silent" } } },
      turn: { turnId: "t", draft: "", committed: false, endedAt: NOW },
    });
    const mine = timeline(given).filter((one) => one.message?.role === "user");
    assert.deepEqual(
      mine.map((one) => [one.delivery, one.error]),
      [
        ["answered", ""],
        ["stopped", ""],
        ["unanswered", ""],
        ["waiting", "its endpoint is silent"],
      ],
    );
  });

  test("keeps of a question that was answered what was chosen", () => {
    const asked = { ...said("q", 0, "agent"), questionId: "q-1", options: ["left", "right"] };
    const answer = { ...said("a"), questionId: "q-1" };
    const choice = (more, message = asked) => choiceOf(state(more), message);
    assert.equal(choice({ messages: [asked, answer] }), "a");
    assert.equal(choice({ messages: [asked] }), "");
    assert.equal(choice({ messages: [asked], question: { questionId: "q-1" } }), null);
    assert.equal(choice({ messages: [answer] }, answer), null);
  });

  for (const [text, rest, language] of [
    ["\n\n one two\n", " one two", null],
    ["\n```py\nx = 1\n\ny", "x = 1\n\ny", "py"],
    ["~~~\nx\n~~", "x", ""],
    ["```js {a}\nx\n```", "x", "js"],
    ["```", "", ""],
    ["`` x", "`` x", null],
  ]) {
    test(`shows the unfinished block ${JSON.stringify(text)} as text or code`, () => {
      assert.deepEqual(restOf(text), { text: rest, language });
    });
  }

  test("hides the draft when its message has come", () => {
    const turn = { turnId: "t", draft: "lo", blocks: [], committed: false, endedAt: null };
    assert.deepEqual(shown(state({ turn })), ["lo"]);
    assert.deepEqual(shown(state({ turn: { ...turn, committed: true } })), []);
  });

  test("separates days, also between what was said and what waits", () => {
    const given = state({
      messages: [said("a", -86_400), said("b", -86_390)],
      inbox: [{ ...said("c"), state: "queued" }],
    });
    assert.deepEqual(
      timeline(given).map((entry) => entry.type),
      ["day", "message", "message", "day", "message"],
    );
  });

  test("joins what one says within five minutes", () => {
    const given = state({
      messages: [said("a"), said("b", 60), said("c", 400), said("d", 410, "agent")],
    });
    const joined = timeline(given).filter((entry) => entry.joined);
    assert.deepEqual(joined.map((entry) => entry.key), ["b"]);
  });

  test("is not made anew when nothing was said", () => {
    const given = state({ messages: [said("a")] });
    assert.equal(timeline(given), timeline({ ...given, now: NOW + 1000 }));
  });
});

describe("what goes on", () => {
  const idle = { state: "idle", since: null };
  const status = { consumer: "ok", teller: idle, planner: idle, workers: { busy: 0, seats: 3 } };

  test("is nothing when nobody is busy", () => {
    assert.equal(live(state({ status })), null);
  });

  test("tells the reply, which Stop ends, from the tasks that run beside it", () => {
    const turn = { turnId: "t1", since: NOW - 3000, headline: "Reading", endedAt: null };
    const jobs = byId(
      job("w1", { state: "running", startedAt: at(-60) }),
      job("w2", { state: "running", startedAt: at(-5), headline: "editing" }),
      job("p1", { state: "planning", startedAt: at(-9) }),
      job("q1", { state: "waiting" }),
    );
    const now = live(state({ status, turn, jobs }));
    assert.equal(now.teller, NOW - 3000);
    assert.equal(now.planner, NOW - 9000);
    assert.deepEqual(now.workers, { count: 2, since: NOW - 60_000 });
    assert.equal(now.headline, "Reading");
    assert.equal(now.turnId, "t1");
    assert.deepEqual(now.running.map((one) => one.id), ["w2", "p1", "w1"]);
  });

  test("does not believe a status that speaks of a turn known to be over", () => {
    const teller = { state: "replying", since: at(-2), turnId: "t1" };
    const over = { turnId: "t1", since: NOW, headline: "", endedAt: NOW, committed: true };
    assert.equal(live(state({ status: { ...status, teller }, turn: over })), null);
    assert.equal(live(state({ status: { ...status, teller } })).teller, NOW - 2000);
  });

  test("is nothing while the consumer is down, whatever stands on paper", () => {
    const jobs = byId(job("w1", { state: "running", startedAt: at(-60) }));
    assert.equal(live(state({ status: { ...status, consumer: "down" }, jobs })), null);
  });
});

test("waiting and running are told apart, and go on while they last", () => {
  const queued = task("a", { createdAt: at(-30), waitMs: 1 });
  assert.deepEqual(taskTimes(queued, NOW), { waitMs: 30_000, runMs: null });
  const running = task("b", { state: "running", createdAt: at(-30), startedAt: at(-20) });
  assert.deepEqual(taskTimes(running, NOW), { waitMs: 10_000, runMs: 20_000 });
  const done = task("c", {
    state: "done",
    createdAt: at(-30),
    startedAt: at(-20),
    completedAt: at(-5),
    runMs: 14_999,
  });
  assert.deepEqual(taskTimes(done, NOW), { waitMs: 10_000, runMs: 14_999 });
});

test("a task is found in the chat by its own name, else by its trace's", () => {
  const messages = [
    { ...said("m1", 0, "agent"), taskIds: ["plan"] },
    { ...said("m2", 0, "agent"), taskIds: ["work"] },
    said("m3"),
  ];
  const given = state({ messages });
  assert.equal(messageAbout(given, "work", []), "m2");
  assert.equal(messageAbout(given, "other", [task("plan")]), "m1");
  assert.equal(messageAbout(given, "other", []), null);
});
