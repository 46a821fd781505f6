// The line to the server: what happens when it breaks, is refused, and comes back.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { HIDDEN_MS, Link, POLL_MS, RETRY_MS, STALLED_MS, STREAM_RETRY_MS } from "../../webui/js/core/link.js";
import { Clock, FakeSource, settled } from "./fakes.mjs";

const task = (id) => ({ kind: "task", task: { id } });

let clock, link, heard, polls, answers, hidden;

beforeEach(() => {
  FakeSource.opened = [];
  clock = new Clock();
  heard = { changes: [], connections: [], resets: 0, signedOut: 0 };
  polls = [];
  answers = [];
  hidden = false;
  const changes = async (since) => {
    polls.push(since);
    const answer = answers.shift() ?? { cursor: since, reset: false, events: [] };
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const session = {
    onChanges: (changes) => heard.changes.push(...changes.map((change) => change.task.id)),
    onConnection: (connection) => heard.connections.push(connection),
    load: () => (heard.resets += 1),
    signOutHere: () => (heard.signedOut += 1),
  };
  const api = { stream: (since) => since, headers: () => ({}), changes };
  link = new Link(api, session, () => hidden, FakeSource);
});

const unreachable = () => Object.assign(new Error("unreachable"), { status: 0 });
const unauthorized = () => Object.assign(new Error("no session"), { status: 401 });

test("a stream hands on each change and remembers how far it came", () => {
  link.start("c1");
  FakeSource.last.opens();
  FakeSource.last.change("c2", task("a"));
  FakeSource.last.change("c3", task("b"));
  assert.deepEqual(heard.changes, ["a", "b"]);
  assert.deepEqual(heard.connections, ["online"]);
  assert.equal(link.cursor, "c3");
});

test("a stream that ends is opened anew at once, where it stopped, without a word", () => {
  link.start("c1");
  FakeSource.last.opens();
  FakeSource.last.change("c2", task("a"));
  FakeSource.last.breaks();
  assert.equal(FakeSource.last.since, "c2");
  FakeSource.last.opens();
  assert.deepEqual(heard.connections, ["online", "online"]);
  assert.equal(FakeSource.open.length, 1);
});

test("a server that is gone shows as reconnecting, and heals when it is back", async () => {
  link.start("c1");
  FakeSource.last.opens();
  FakeSource.last.breaks();
  FakeSource.last.breaks();
  assert.equal(heard.connections.at(-1), "reconnecting");
  await clock.pass(RETRY_MS);
  FakeSource.last.opens();
  assert.equal(heard.connections.at(-1), "online");
  await clock.pass(STALLED_MS * 2);
  assert.equal(FakeSource.opened.length, 3);
  link.nudge();
  await clock.pass(STALLED_MS * 2); // no answer at all
  assert.equal(FakeSource.opened.length, 6);
});

test("a stream that nobody answers is given up for a new one", async () => {
  link.start("c1");
  await clock.pass(STALLED_MS);
  assert.equal(FakeSource.opened.length, 2);
  assert.equal(FakeSource.open.length, 1);
});

describe("a stream that is refused", () => {
  test("is replaced by polling from the same place", async () => {
    link.start("c1");
    answers.push({ cursor: "c5", reset: false, events: [task("a"), task("b")] });
    FakeSource.last.refused();
    await settled();
    assert.deepEqual(polls, ["c1"]);
    assert.deepEqual(heard.changes, ["a", "b"]);
    assert.equal(heard.connections.at(-1), "polling");
    await clock.pass(POLL_MS);
    assert.deepEqual(polls, ["c1", "c5"]);
  });

  test("is tried again later, and takes over when it opens", async () => {
    link.start("c1");
    FakeSource.last.refused();
    await clock.pass(STREAM_RETRY_MS + POLL_MS);
    assert.equal(FakeSource.opened.length, 2);
    FakeSource.last.opens();
    const before = polls.length;
    await clock.pass(STREAM_RETRY_MS);
    assert.equal(polls.length, before);
    assert.equal(heard.connections.at(-1), "online");
  });

  test("for want of a session asks for a login and is still", async () => {
    link.start("c1");
    answers.push(unauthorized());
    FakeSource.last.refused();
    await settled();
    assert.equal(heard.signedOut, 1);
    await clock.pass(120_000);
    assert.equal(polls.length, 1);
  });

  test("because nobody is there is asked for with patience, and at once when somebody is", async () => {
    link.start("c1");
    answers.push(unreachable(), unreachable(), unreachable());
    FakeSource.last.refused();
    await clock.pass(1400);
    assert.equal(polls.length, 2);
    assert.equal(heard.connections.at(-1), "reconnecting");
    await clock.pass(2200);
    assert.equal(FakeSource.opened.length, 2);
  });
});

test("a cursor that is worth nothing any more asks for everything anew", async () => {
  link.start("c1");
  FakeSource.last.resets();
  assert.equal(heard.resets, 1);
  answers.push({ cursor: "c9", reset: true, events: [task("a")] });
  FakeSource.last.refused();
  await settled();
  assert.equal(heard.resets, 2);
  assert.deepEqual(heard.changes, []);
});

test("what is stopped is still, whatever comes late", async () => {
  link.start("c1");
  const source = FakeSource.last;
  answers.push({ cursor: "c2", reset: false, events: [task("late")] });
  source.refused();
  link.stop();
  await settled();
  source.change("c3", task("later"));
  await clock.pass(120_000);
  assert.deepEqual(heard.changes, []);
  assert.equal(polls.length, 1);
});

test("a nudge lays the line anew from where it stopped", () => {
  link.nudge();
  assert.equal(FakeSource.opened.length, 0);
  link.start("c1");
  FakeSource.last.change("c2", task("a"));
  link.nudge();
  assert.equal(FakeSource.last.since, "c2");
  assert.equal(FakeSource.open.length, 1);
});

describe("a tab that is hidden", () => {
  const look = (isHidden) => {
    hidden = isHidden;
    link.look();
  };

  test("lets go of its stream after a while, and goes on where it was when it is shown", async () => {
    link.start("c1");
    FakeSource.last.change("c2", task("a"));
    look(true);
    await clock.pass(HIDDEN_MS - 1);
    assert.equal(FakeSource.open.length, 1);
    await clock.pass(1);
    assert.equal(FakeSource.open.length, 0);
    look(false);
    assert.equal(FakeSource.open.length, 1);
    assert.equal(FakeSource.last.since, "c2");
  });

  test("tries at once when it is shown while the line is down", () => {
    link.start("c1");
    FakeSource.last.breaks();
    FakeSource.last.breaks();
    look(false);
    assert.equal(FakeSource.opened.length, 3);
  });

  test("does not poll either", async () => {
    link.start("c1");
    FakeSource.last.refused();
    look(true);
    await clock.pass(HIDDEN_MS);
    const before = polls.length;
    await clock.pass(120_000);
    assert.equal(polls.length, before);
  });

  test("for a moment keeps its stream", async () => {
    link.start("c1");
    FakeSource.last.opens();
    look(true);
    await clock.pass(HIDDEN_MS - 1);
    look(false);
    await clock.pass(HIDDEN_MS);
    assert.equal(FakeSource.opened.length, 1);
  });

  test("from its start opens none before it is shown", () => {
    hidden = true;
    link.start("c1");
    assert.equal(FakeSource.opened.length, 0);
    look(false);
    assert.equal(FakeSource.last.since, "c1");
  });

  test("stays still once it is stopped", () => {
    link.start("c1");
    link.stop();
    look(false);
    link.nudge();
    assert.equal(FakeSource.open.length, 0);
  });
});
