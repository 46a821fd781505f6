// Many tabs, one stream.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { Link } from "../../webui/js/link.js";
import { HIDDEN_MS, SILENT_MS, Tabs } from "../../webui/js/tabs.js";
import { Air, Clock, FakeLocks, FakeSource, settled } from "./fakes.mjs";

const task = (id) => ({ kind: "task", task: { id } });

let clock, locks, air;

beforeEach(() => {
  FakeSource.opened = [];
  clock = new Clock();
  locks = new FakeLocks();
  air = new Air();
});

/** A tab; `alone` is one of a browser without locks. */
function tab({ alone = false } = {}) {
  const made = { heard: [], connections: [], resets: 0, out: 0, back: 0, hidden: false };
  made.channel = alone ? null : air.channel();
  made.polled = 401;
  const ports = {
    open: (since) => new FakeSource(since),
    poll: async () => {
      throw Object.assign(new Error("refused"), { status: made.polled });
    },
    later: clock.later,
    drop: clock.drop,
  };
  made.tabs = new Tabs(
    (hearers) => new Link(ports, hearers),
    {
      locks: alone ? undefined : locks,
      channel: made.channel,
      hidden: () => made.hidden,
      later: clock.later,
      drop: clock.drop,
    },
    {
      changes: (changes) => made.heard.push(...changes.map((change) => change.task.id)),
      reset: () => (made.resets += 1),
      connection: (connection) => made.connections.push(connection),
      signedOut: () => (made.out += 1),
      signedIn: () => (made.back += 1),
    },
  );
  return made;
}

async function three() {
  const all = [tab(), tab(), tab()];
  for (const one of all) {
    one.tabs.start("c1");
    await settled();
  }
  FakeSource.last.opens();
  return all;
}

test("of many tabs one holds the stream, and all hear it", async () => {
  const all = await three();
  assert.equal(FakeSource.opened.length, 1);
  FakeSource.last.change("c2", task("a"));
  assert.deepEqual(
    all.map((one) => one.heard),
    [["a"], ["a"], ["a"]],
  );
  assert.deepEqual(
    all.map((one) => one.connections.at(-1)),
    ["online", "online", "online"],
  );
});

test("a tab that comes later learns how the line is", async () => {
  await three();
  const late = tab();
  late.tabs.start("c1");
  await settled();
  assert.equal(late.connections.at(-1), "online");
});

test("when the leader is closed another goes on where it stopped", async () => {
  const [first, second, third] = await three();
  FakeSource.last.change("c2", task("a"));
  first.channel.dead = true;
  locks.holderDies();
  await settled();
  assert.equal(FakeSource.opened.length, 2);
  assert.equal(FakeSource.last.since, "c2");
  FakeSource.last.change("c3", task("b"));
  assert.deepEqual(second.heard, ["a", "b"]);
  assert.deepEqual(third.heard, ["a", "b"]);
});

test("a leader that sleeps is replaced by a tab in use, and follows when it wakes", async () => {
  const [first, second, third] = await three();
  first.channel.dead = true; // frozen: says nothing, and hears nothing
  third.hidden = true;
  await clock.pass(SILENT_MS);
  assert.equal(second.tabs.leading, true);
  assert.equal(first.tabs.leading, false);
  assert.equal(third.tabs.leading, false);
  assert.equal(FakeSource.open.length, 1);
  first.channel.dead = false;
  FakeSource.last.change("c2", task("a"));
  assert.deepEqual(first.heard, ["a"]);
});

test("a leader that lives is not replaced, however quiet it is", async () => {
  const [first] = await three();
  await clock.pass(10 * SILENT_MS);
  assert.equal(first.tabs.leading, true);
  assert.equal(FakeSource.opened.length, 1);
});

test("a reset reaches every tab", async () => {
  const all = await three();
  FakeSource.last.heard.reset({});
  assert.deepEqual(
    all.map((one) => one.resets),
    [1, 1, 1],
  );
  for (const one of all) one.tabs.start("c9");
  await settled();
  assert.equal(FakeSource.open.length, 1);
  assert.equal(FakeSource.last.since, "c9");
});

test("a session that ends ends in every tab, and comes back in every tab", async () => {
  const all = await three();
  FakeSource.last.refused();
  await settled();
  assert.deepEqual(
    all.map((one) => one.out),
    [1, 1, 1],
  );
  for (const one of all) one.tabs.stop();
  await clock.pass(120_000);
  assert.equal(FakeSource.open.length, 0);
  all[1].tabs.signedIn();
  assert.deepEqual(
    all.map((one) => one.back),
    [1, 0, 1],
  );
  for (const one of all) one.tabs.start("c2");
  await settled();
  assert.equal(FakeSource.open.length, 1);
});

describe("without locks", () => {
  test("each tab has its own stream and lets go of it when nobody looks", async () => {
    const [one, two] = [tab({ alone: true }), tab({ alone: true })];
    one.tabs.start("c1");
    two.tabs.start("c1");
    assert.equal(FakeSource.open.length, 2);
    two.hidden = true;
    two.tabs.look();
    await clock.pass(HIDDEN_MS - 1);
    assert.equal(FakeSource.open.length, 2);
    await clock.pass(1);
    assert.equal(FakeSource.open.length, 1);
  });

  test("a tab that is looked at again catches up from where it was", async () => {
    const one = tab({ alone: true });
    one.tabs.start("c1");
    FakeSource.last.change("c2", task("a"));
    one.hidden = true;
    one.tabs.look();
    await clock.pass(HIDDEN_MS);
    one.hidden = false;
    one.tabs.look();
    assert.equal(FakeSource.last.since, "c2");
    assert.equal(FakeSource.open.length, 1);
  });

  test("a glance away costs nothing", async () => {
    const one = tab({ alone: true });
    one.tabs.start("c1");
    one.hidden = true;
    one.tabs.look();
    await clock.pass(HIDDEN_MS - 1);
    one.hidden = false;
    one.tabs.look();
    await clock.pass(HIDDEN_MS);
    assert.equal(FakeSource.opened.length, 1);
  });
});
