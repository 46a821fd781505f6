// Notification channels, improvements and limits: what is sent, and what is wrong with what is typed.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { LifeActions, nameOf, noLife, valueOf, wrongChannel } from "../../webui/js/pages/life.js";

/** A page with these answers of the server, and what was asked of it. */
function page(answers = {}, life = {}) {
  const asked = [];
  const store = {
    state: { life: { ...noLife(), ...life }, pending: {}, confirming: "" },
    set: (values) => Object.assign(store.state, values),
    patch: (part, values) => store.set({ [part]: { ...store.state[part], ...values } }),
  };
  const api = new Proxy(
    {},
    {
      get: (_, name) => async (...given) => {
        asked.push([name, ...given]);
        if (answers[name] instanceof Error) throw answers[name];
        return answers[name] ?? { ok: true };
      },
    },
  );
  const actions = {
    focus: () => {},
    why: (error) => error.message,
    ordered: async (_id, _what, _tell, act) => {
      try {
        return (await act()).ok !== false;
      } catch {
        return false;
      }
    },
  };
  return { store, asked, life: new LifeActions(store, api, actions) };
}

describe("a channel", () => {
  test("is named after its service, with a number where that is taken", () => {
    assert.equal(nameOf("ntfy://topic", []), "ntfy");
    assert.equal(nameOf("NTFY://topic", ["ntfy", "ntfy-2"]), "ntfy-3");
    assert.equal(nameOf("://", []), "channel");
  });

  test("needs an address, and a name that is free", () => {
    const wrong = (name, url) => Object.keys(wrongChannel({ name, url, errors: {} }, ["phone"]));
    assert.deepEqual(wrong("", " ntfy://x "), []);
    assert.deepEqual(wrong("Phone!", "ntfy"), ["url", "name"]);
    assert.deepEqual(wrong("phone", "ntfy://x"), ["name"]);
  });

  test("is sent once, and its address is forgotten", async () => {
    const { store, asked, life } = page({}, { channel: { name: "", url: "ntfy://x", errors: {} } });
    await life.addChannel();
    assert.deepEqual(asked[0], ["changeNotify", { action: "add", name: "ntfy", url: "ntfy://x" }]);
    assert.deepEqual(store.state.life.channel, noLife().channel);
  });

  test("that is refused stays in the form, with the reason", async () => {
    const channel = { name: "", url: "bad://x", errors: {} };
    const { store, life } = page({ changeNotify: new Error("not known") }, { channel });
    await life.addChannel();
    assert.deepEqual(store.state.life.channel, { ...channel, errors: { url: "not known" } });
  });
});

describe("a limit", () => {
  test("is a whole number, quiet hours are two times, nothing is the default", () => {
    assert.equal(valueOf("budget.daily_tokens", " 1,000_000 "), 1_000_000);
    assert.equal(valueOf("budget.daily_tokens", ""), null);
    for (const odd of ["0", "-1", "1.5", "x"]) assert.equal(valueOf("retention.days", odd), undefined);
    assert.equal(valueOf("notify.quiet", "22:00 - 08:00"), "22:00-08:00");
    assert.equal(valueOf("notify.quiet", "22-8"), undefined);
  });

  test("is sent if it was changed; a wrong one keeps what was typed", async () => {
    const { store, asked, life } = page({}, { typed: { "retention.days": "7", "notify.quiet": "x" } });
    await life.save();
    assert.equal(asked.filter(([name]) => name === "changeSetting").length, 1);
    assert.equal(asked[0][1].value, 7);
    assert.deepEqual(store.state.life.typed, { "notify.quiet": "x" });
    assert.deepEqual(Object.keys(store.state.life.errors), ["notify.quiet"]);
  });
});

describe("a branch", () => {
  test("shows its diff, or why there is none, and hides it again", async () => {
    const { store, life } = page({ branchDiff: { files: [] } });
    await life.showDiff("b");
    assert.deepEqual(store.state.life.shown.diff, { files: [] });
    life.unfold("0", true);
    assert.deepEqual(store.state.life.shown.unfolded, { 0: true });
    await life.showDiff("b");
    assert.equal(store.state.life.shown, null);
    const broken = page({ branchDiff: new Error("gone") });
    await broken.life.showDiff("b");
    assert.equal(broken.store.state.life.shown.error, "gone");
  });

  test("is deleted by a command of its name", async () => {
    const { asked, life } = page();
    await life.selfAwake("discard", "mimikit/self-awake-x");
    const { action, target } = asked[0][1];
    assert.deepEqual([action, target], ["discard", "mimikit/self-awake-x"]);
  });
});
