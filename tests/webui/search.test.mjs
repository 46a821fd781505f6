// What is looked for waits for the typing to rest and stands in the address; a message of long ago is
// shown amid those around it, and from there one reads on to now.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ApiError } from "../../webui/js/api.js";
import { hashOf, routeOf } from "../../webui/js/route.js";
import { SearchActions } from "../../webui/js/search-actions.js";
import { REST_MS, SearchKeeper } from "../../webui/js/search-keeper.js";
import { upFrom } from "../../webui/js/search-state.js";
import { Store } from "../../webui/js/store.js";
import { Clock, settled } from "./fakes.mjs";

const NONE = { messages: 0, memory: 0, work: 0 };
const answerOf = (...sources) => ({
  hits: sources.map((source) => ({ source })),
  counts: { ...NONE, memory: sources.length },
  fallback: null,
});
const said = (id, more = {}) => ({
  id,
  role: "agent",
  text: id,
  createdAt: "2026-01-28T01:00:00.000Z",
  ...more,
});

/** A page with a server that answers what a test says. */
function page(answers = {}) {
  const clock = new Clock();
  const asked = [];
  const told = [];
  const heard = [];
  const api = Object.fromEntries(
    ["search", "around", "newer"].map((name) => [
      name,
      async (...given) => {
        asked.push([name, ...given]);
        const answer = answers[name];
        const made = typeof answer === "function" ? await answer(...given) : answer;
        if (made instanceof Error) throw made;
        return made;
      },
    ]),
  );
  const store = new Store((draw) => queueMicrotask(draw));
  const words = (error) => error.message || "no";
  const addresses = [];
  const keeper = new SearchKeeper(store, api, {
    later: clock.later,
    drop: clock.drop,
    words,
    replace: (hash) => addresses.push(hash),
  });
  store.onChange((state, before) => keeper.onChange(state, before));
  const act = new SearchActions(store, api, {
    notify: (text) => told.push(text),
    words,
    signOut: () => told.push("out"),
    focus: (selector) => heard.push(selector),
    showMessage: (id) => heard.push(`message ${id}`),
    settle: () => keeper.settle(),
    load: async () => void heard.push("load"),
  });
  const open = async (hash) => {
    store.set({ session: "in", route: routeOf(hash) });
    await settled();
    await settled();
  };
  return { clock, asked, told, heard, addresses, store, act, answers, open };
}

describe("a search", () => {
  test("waits for the typing to rest, and hears only the answer to what stands there", async () => {
    const held = [];
    const there = page({ search: () => new Promise((answer) => held.push(answer)) });
    const { act, clock, store, open, asked, addresses } = there;
    await open("#/search");
    for (const query of ["o", "ot", "otter"]) {
      act.type(query);
      await clock.pass(REST_MS / 2);
    }
    await clock.pass(REST_MS);
    assert.deepEqual(asked, [["search", "otter", "all", 50]]);
    act.type("otters ");
    await clock.pass(REST_MS);
    assert.equal(asked[1][1], "otters");
    assert.deepEqual(addresses, ["#/search?q=otter", "#/search?q=otters"]);
    held[1](answerOf("b"));
    held[0](answerOf("a"));
    await settled();
    assert.equal(store.state.search.state, "ready");
    assert.deepEqual(store.state.search.hits, [{ source: "b" }]);
    act.clear();
    await settled();
    assert.deepEqual([store.state.search.hits, store.state.search.state], [[], "idle"]);
    assert.equal(addresses.at(-1), "#/search");
    assert.deepEqual(there.heard, ["#search-field"]);
  });

  test("that failed says why and is made again on demand, at once", async () => {
    const { act, clock, store, open, asked, answers } = page({ search: new ApiError(503, { message: "busy" }) });
    await open("#/search");
    act.type("otter");
    await clock.pass(REST_MS);
    assert.deepEqual([store.state.search.state, store.state.search.error], ["failed", "busy"]);
    answers.search = answerOf("a");
    act.now();
    await settled();
    assert.equal(store.state.search.hits.length, 1);
    assert.equal(asked.length, 2);
  });

  test("is what the address says, also when one comes back to another", async () => {
    const { store, open, asked } = page({ search: answerOf("a") });
    await open("#/search?q=%E8%AF%81%E4%B9%A6&kind=memory");
    assert.deepEqual(asked.at(-1), ["search", "证书", "memory", 100]);
    assert.equal(store.state.search.query, "证书");
    await open("#/search?q=otter");
    assert.deepEqual(asked.at(-1), ["search", "otter", "all", 50]);
    await open("#/search");
    assert.deepEqual([store.state.search.query, store.state.search.hits], ["", []]);
    await open("#/note");
    await open("#/search?q=otter");
    assert.equal(asked.length, 3, "what is gone to again may have changed");
  });
});

describe("the address", () => {
  const all = ["otter", "a&b=c #?%/", "证书 🍵", "  x", ""];
  for (const q of all) {
    for (const kind of ["all", "messages", "memory", "work"]) {
      test(`holds ${kind} ${JSON.stringify(q)}`, () => {
        const route = { view: "search", q, kind };
        assert.deepEqual(routeOf(hashOf(route)), route);
      });
    }
  }

  test("with an unknown kind searches everything", () => {
    assert.deepEqual(routeOf("#/search?q=x&kind=secrets"), { view: "search", q: "x", kind: "all" });
  });

  test("of what was found is one level up from a file", () => {
    const route = { view: "note", path: "memory.md", line: 3 };
    const search = { query: "otter ", kind: "memory" };
    assert.deepEqual(upFrom({ route, search }), { view: "search", q: "otter", kind: "memory" });
    assert.deepEqual(upFrom({ route, search: { query: "", kind: "all" } }), { view: "memory" });
  });
});

describe("a message of long ago", () => {
  const around = { messages: [said("msg-9"), said("msg-10")], before: "b", after: "c" };

  test("is shown amid those around it; what comes new is no part of that", async () => {
    const { act, store, heard, asked, open } = page({ around });
    await open("#/search");
    store.set({ messages: [said("msg-99")], load: "ready", following: true });
    await act.openMessage("msg-9", "2026-01-28");
    assert.deepEqual(asked.at(-1), ["around", "msg-9", "2026-01-28"]);
    const ids = () => store.state.messages.map((message) => message.id);
    assert.deepEqual([ids(), store.state.after], [["msg-9", "msg-10"], "c"]);
    assert.deepEqual(heard, ["message msg-9"]);
    store.dispatch({ type: "change", change: { kind: "message", message: said("msg-100") } });
    assert.deepEqual(ids(), ["msg-9", "msg-10"]);
    assert.equal(store.state.unseen, 1);
  });

  test("that a line stands for leads to the line", async () => {
    const { act, store, heard, open } = page();
    await open("#/search");
    store.set({ messages: [said("msg-3", { repeats: ["msg-1", "msg-2"] })] });
    await act.openMessage("msg-1");
    assert.deepEqual(heard, ["message msg-3"]);
  });

  test("leads on to now, page by page, and then what came meanwhile is fetched", async () => {
    const newer = [
      { messages: [said("msg-11")], before: "c", after: "d" },
      { messages: [said("msg-11"), said("msg-12")], before: "d", after: null },
    ];
    const { act, store, heard, asked, open } = page({ around, newer: () => newer.shift() });
    await open("#/search");
    await act.openMessage("msg-9");
    await act.loadNewer();
    await act.loadNewer();
    await act.loadNewer();
    assert.deepEqual(
      store.state.messages.map((message) => message.id),
      ["msg-9", "msg-10", "msg-11", "msg-12"],
    );
    assert.deepEqual(
      asked.filter(([name]) => name === "newer").map(([, after]) => after),
      ["c", "d"],
    );
    assert.equal(heard.filter((one) => one === "load").length, 1);
  });

  test("is left at once by the way back to now", async () => {
    const { act, store, heard, open } = page({ around });
    await open("#/search");
    await act.openMessage("msg-9");
    act.toNow();
    assert.equal(store.state.after, null);
    assert.equal(heard.at(-1), "load");
  });

  test("that is gone says so", async () => {
    const { act, told, heard, open } = page({ around: new ApiError(404, { message: "no" }) });
    await open("#/search");
    await act.openMessage("msg-9");
    assert.deepEqual([told, heard], [["search.messageGone"], []]);
  });
});
