// What came unseen is counted alike in every tab, and told once, by one of them, while nobody looks.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { useDictionary } from "../../webui/js/i18n.js";
import { Notifier, toldBetween } from "../../webui/js/notifier.js";
import { initialState } from "../../webui/js/state.js";
import { badgeOf, furthest, iconWith, isInSight, seenBy, unread } from "../../webui/js/unread.js";
import { UnreadKeeper } from "../../webui/js/unread-keeper.js";
import { settled } from "./fakes.mjs";

const said = (id, more = {}) => ({
  id: `msg-${id}`,
  role: "agent",
  text: "x",
  createdAt: `2026-01-28T01:00:${String(id).padStart(2, "0")}.000Z`,
  ...more,
});
const page = (more = {}) => ({ ...initialState(), session: "in", load: "ready", ...more });
const upTo = (id) => seenBy(page({ messages: [said(id)] }));

describe("the number", () => {
  const messages = [1, 2, 3, 4].map((id) => said(id));
  for (const [what, state, seen, count] of [
    ["nothing after what was seen", { messages }, upTo(4), 0],
    ["what came after it", { messages }, upTo(2), 2],
    ["all that is newer, where what was seen is not loaded", { messages }, { ...upTo(2), id: "x" }, 2],
    ["none of one's own", { messages: [...messages, said(5, { role: "user" })] }, upTo(4), 0],
    ["a trigger's as one", { messages: [...messages, ...[5, 6, 7].map((id) => said(id, { triggerId: "t" }))] }, upTo(3), 2],
    ["a question", { messages, question: { questionId: "q-1" } }, upTo(4), 1],
    ["no question that was seen", { messages, question: { questionId: "q-1" } }, { ...upTo(4), question: "q-1" }, 0],
    ["nothing to one who never came", { messages }, null, 0],
    ["nothing when signed out", { messages, session: "out" }, upTo(1), 0],
    ["what came while one reads in the past", { messages, after: "c", unseen: 3 }, upTo(4), 3],
  ]) {
    test(`is ${what}`, () => assert.equal(unread(page(state), seen), count));
  }

  test("is shown to nine", () => {
    assert.deepEqual([0, 1, 9, 10, 4000].map(badgeOf), ["", "1", "9", "9+", "9+"]);
    assert.match(decodeURIComponent(iconWith("9+")), />9\+<\/text>/);
  });
});

test("a tab that is behind takes back nothing that another has seen", () => {
  const behind = page({ messages: [said(1), said(2)] });
  assert.equal(furthest(upTo(5), behind).id, "msg-5");
  assert.equal(furthest(upTo(1), behind).id, "msg-2");
  const ahead = page({ messages: [said(7)] });
  assert.equal(furthest(upTo(5), ahead).id, "msg-7");
});

test("what is out of sight is not seen", () => {
  assert.ok(isInSight(page()));
  assert.ok(isInSight(page({ route: { view: "tasks" } })), "the chat stands beside it");
  for (const away of [
    { following: false },
    { after: "c" },
    { panelFull: true },
    { wide: false, route: { view: "tasks" } },
    { load: "loading" },
    { session: "out" },
  ]) {
    assert.ok(!isInSight(page(away)), JSON.stringify(away));
  }
});

/** The tabs of one browser: what one keeps, the others hear. */
function browser(count) {
  const kept = {};
  const tabs = Array.from({ length: count }, () => {
    const tab = { hidden: true, store: { state: page({ messages: [said(1)] }) }, title: "" };
    tab.keeper = new UnreadKeeper(tab.store, {
      read: (key) => kept[key] ?? null,
      keep: (key, value) => {
        kept[key] = value;
        for (const other of tabs) if (other !== tab) other.keeper.hear(value);
        return true;
      },
      hidden: () => tab.hidden,
      icon: "own.svg",
      show: (title, icon) => Object.assign(tab, { title, icon }),
    });
    return tab;
  });
  const all = (change) => {
    for (const tab of tabs) {
      tab.store.state = { ...tab.store.state, ...change };
      tab.keeper.look();
    }
  };
  return { tabs, all };
}

test("all tabs count alike, and one that is looked at clears them all", () => {
  const { tabs, all } = browser(3);
  all({});
  all({ messages: [said(1), said(2), said(3)] });
  assert.deepEqual(tabs.map((tab) => tab.title), Array(3).fill("(2) mimikit"));
  tabs[1].hidden = false;
  tabs[1].keeper.look();
  assert.deepEqual(tabs.map((tab) => tab.title), Array(3).fill("mimikit"));
  assert.deepEqual(tabs.map((tab) => tab.icon), Array(3).fill("own.svg"));
});

describe("what is told while nobody looks", () => {
  useDictionary("en", { "notify.question": "A question", "notify.failed": "Failed", "notify.reminder": "A reminder", "notify.breaker": "Paused" });
  const question = { questionId: "q-1", question: "Which one?" };
  const job = (more) => ({ id: "j", kind: "request", title: "Sweep", state: "running", failedTaskId: null, endedAt: null, counts: { failed: 0 }, ...more });
  const trigger = (more) => ({ id: "a", title: "Sweep", pausedBy: null, ...more });
  const failed = job({ state: "failed", failedTaskId: "t", endedAt: "2026-01-28T01:00:00.000Z" });
  const at = Date.parse(failed.endedAt);
  for (const [what, before, after, tags] of [
    ["a question", {}, { question }, ["q-1"]],
    ["no question twice", { question }, { question: { ...question } }, []],
    ["work that fails", { jobs: { j: job() } }, { jobs: { j: failed } }, ["j t"]],
    ["no failure twice", { jobs: { j: failed } }, { jobs: { j: { ...failed } } }, []],
    ["work that failed at once", { now: at - 5 }, { jobs: { j: failed } }, ["j t"]],
    ["no failure of long ago", { now: at + 5 }, { jobs: { j: failed } }, []],
    ["none that was canceled", { jobs: { j: job() } }, { jobs: { j: job({ state: "canceled" }) } }, []],
    ["a firing that fails", { jobs: { j: job({ kind: "trigger" }) } }, { jobs: { j: job({ kind: "trigger", failedTaskId: "t", counts: { failed: 1 } }) } }, ["j t"]],
    ["a firing that fails as one did yesterday", { jobs: { j: job({ kind: "trigger", failedTaskId: "s", counts: { failed: 1 } }) } }, { jobs: { j: job({ kind: "trigger", failedTaskId: "t", counts: { failed: 1 } }) } }, ["j t"]],
    ["the first firing of all, which fails", { now: at - 5 }, { jobs: { j: job({ kind: "trigger", failedTaskId: "t", lastAt: failed.endedAt }) } }, ["j t"]],
    ["no firing of long ago", { now: at + 5 }, { jobs: { j: job({ kind: "trigger", failedTaskId: "t", lastAt: failed.endedAt }) } }, []],
    ["a reminder", { messages: [said(1)] }, { messages: [said(1), said(2, { reminder: "mum" })] }, ["msg-2"]],
    ["no reminder that an older page brings", { messages: [said(2)] }, { messages: [said(1, { reminder: "mum" }), said(2)] }, []],
    ["a trigger that pauses itself", { triggers: { a: trigger() } }, { triggers: { a: trigger({ pausedBy: "breaker" }) } }, ["a breaker"]],
    ["no trigger that somebody pauses", { triggers: { a: trigger() } }, { triggers: { a: trigger() } }, []],
    ["nothing that was there at the beginning", { load: "loading" }, { question, jobs: { j: failed } }, []],
  ]) {
    test(`is ${what}`, () => {
      const told = toldBetween(page(after), page(before));
      assert.deepEqual(told.map((one) => one.tag), tags);
    });
  }

  /** Tabs over one browser's locks; `shown` are those that somebody looks at. */
  function watchers({ leading, shown, permission = "granted", kept = "on" }) {
    const told = [];
    const held = [];
    class FakeNotification {
      static permission = permission;
      static asked = 0;
      static async requestPermission() {
        FakeNotification.asked += 1;
        FakeNotification.permission = "granted";
        return "granted";
      }
      constructor(title, options) {
        told.push([title, options.body, options.tag]);
      }
      close() {}
    }
    const locks = {
      request: async (name, _options, act) => {
        const lock = { name };
        held.push(lock);
        await act(lock);
        held.splice(held.indexOf(lock), 1);
      },
      query: async () => ({ held }),
    };
    const prefs = { notify: kept };
    const tabs = [0, 1, 2].map(
      (number) =>
        new Notifier({ state: page(), set() {} }, {
          secure: true,
          notification: FakeNotification,
          locks,
          hidden: () => number !== shown,
          leading: () => number === leading,
          icon: "",
          read: (key) => prefs[key] ?? null,
          keep: (key, value) => (prefs[key] = value),
          visit: () => {},
        }),
    );
    const ask = async () => {
      for (const tab of tabs) tab.onChange(page({ question }), page());
      await settled();
    };
    return { told, tabs, ask, FakeNotification };
  }
  globalThis.document ??= { documentElement: { lang: "en" } };

  test("is told by the leader alone, once", async () => {
    const { told, ask } = watchers({ leading: 1, shown: -1 });
    await ask();
    assert.deepEqual(told, [["A question", "Which one?", "q-1"]]);
  });

  test("is not told while any tab is looked at", async () => {
    const { told, ask } = watchers({ leading: 1, shown: 2 });
    await ask();
    assert.deepEqual(told, []);
  });

  for (const [what, how] of [
    ["where it is not wanted", { kept: "" }],
    ["where the browser was not asked", { permission: "default" }],
    ["where the browser refuses", { permission: "denied" }],
  ]) {
    test(`is not told ${what}`, async () => {
      const { told, ask, FakeNotification } = watchers({ leading: 0, shown: -1, ...how });
      await ask();
      assert.deepEqual(told, []);
      assert.equal(FakeNotification.asked, 0);
    });
  }

  test("is asked for by the reader's click alone, and put off by another", async () => {
    const { tabs, FakeNotification } = watchers({ leading: 0, shown: 0, kept: "", permission: "default" });
    assert.deepEqual([tabs[0].standing, FakeNotification.asked], ["off", 0]);
    await tabs[0].toggle();
    assert.deepEqual([tabs[0].standing, FakeNotification.asked], ["on", 1]);
    await tabs[0].toggle();
    assert.equal(tabs[0].standing, "off");
  });
});
