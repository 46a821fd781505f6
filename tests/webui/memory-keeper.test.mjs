// Memory's pages are kept fresh, searches wait for the typing to rest, and nothing typed is lost.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ApiError, words } from "../../webui/js/core/api.js";
import { MemoryActions, REFRESH_MS, REST_MS } from "../../webui/js/pages/memory-keeper.js";
import { Store } from "../../webui/js/core/store.js";
import { Clock, settled } from "./fakes.mjs";

const PATH = "memory/2026-01-28.md";
const file = (text, more = {}) => ({
  path: PATH,
  kind: "raw",
  title: "2026-01-28",
  day: "2026-01-28",
  text,
  html: `<p>${text}</p>`,
  hash: `hash of ${text}`,
  size: text.length,
  modifiedAt: "2026-01-28T01:00:00.000Z",
  editable: true,
  ...more,
});
const NAMES = ["memory", "note", "saveNote", "search", "backlog", "changeBacklog", "turn"];

/** A page with a server that answers what a test says, and a browser that keeps drafts. */
function page(answers = {}, kept = {}) {
  const clock = new Clock();
  const asked = [];
  const went = [];
  const told = [];
  const focused = [];
  const api = Object.fromEntries(
    NAMES.map((name) => [
      name,
      async (...given) => {
        asked.push([name, ...given]);
        const answer = answers[name];
        const said = typeof answer === "function" ? await answer(...given) : answer;
        if (said instanceof Error) throw said;
        return said ?? { files: [], items: [], hits: [] };
      },
    ]),
  );
  const store = new Store((draw) => queueMicrotask(draw));
  const own = (key) => key.replace("mimikit.", "");
  globalThis.localStorage = {
    getItem: (key) => kept[own(key)] ?? null,
    setItem: (key, value) => {
      if (kept.full) throw new Error("full");
      kept[own(key)] = value;
    },
    removeItem: (key) => delete kept[own(key)],
  };
  const around = {
    go: (route) => went.push(route),
    notify: (text) => told.push(text),
    why: words,
    focus: (selector) => focused.push(selector),
    ask: (confirming) => store.set({ confirming }),
    showMessage: (id) => went.push(`message ${id}`),
    loadOlder: async () => answers.older?.(store),
  };
  const act = new MemoryActions(store, api, around);
  store.onChange((state, before) => act.onChange(state, before));
  const open = async (route) => {
    store.set({ session: "in", route });
    await settled();
    await settled();
  };
  const calls = (name) => asked.filter(([one]) => one === name);
  return { clock, asked, went, told, focused, store, act, answers, kept, open, calls };
}

const EDIT = { view: "noteEdit", path: PATH };
const READ = { view: "note", path: PATH, line: null };
const form = ({ store }) => store.state.notes[PATH];

describe("the list", () => {
  test("is asked for when it is opened, and anew when something was said", async () => {
    const { store, clock, open, calls } = page({ memory: { files: [file("a")], index: null } });
    await open({ view: "tasks" });
    assert.equal(calls("memory").length, 0);
    store.set({ load: "ready" });
    await settled();
    await open({ view: "memory" });
    assert.equal(store.state.memory.load, "ready");
    assert.equal(calls("backlog").length, 1);
    const message = { id: "msg-1", role: "agent", text: "kept", createdAt: "2026-01-28T01:00:00Z" };
    store.dispatch({ type: "change", change: { kind: "message", message } });
    store.dispatch({
      type: "change",
      change: { kind: "message", message: { ...message, id: "m2" } },
    });
    await clock.pass(REFRESH_MS);
    assert.equal(calls("memory").length, 2);
  });

  test("that could not be had says so, and what was there stays", async () => {
    const there = page({ memory: new ApiError(0, "") });
    await there.open({ view: "memory" });
    assert.equal(there.store.state.memory.load, "failed");
    there.answers.memory = { files: [file("a")], index: null };
    await there.act.list.load();
    assert.equal(there.store.state.memory.load, "ready");
    there.answers.memory = new ApiError(0, "");
    await there.act.list.load();
    assert.equal(there.store.state.memory.load, "ready");
    assert.equal(there.store.state.memory.files.length, 1);
  });
});

describe("a search", () => {
  test("waits for the typing to rest, and hears only the answer to what stands there", async () => {
    const held = [];
    const there = page({ search: () => new Promise((answer) => held.push(answer)) });
    const { act, clock, store, open, calls } = there;
    await open({ view: "memory" });
    for (const query of ["o", "ot", "otter"]) {
      act.type(query);
      await clock.pass(REST_MS / 2);
    }
    await clock.pass(REST_MS);
    assert.deepEqual(calls("search"), [["search", "otter"]]);
    act.type("otters ");
    await clock.pass(REST_MS);
    assert.equal(calls("search")[1][1], "otters");
    held[1]({ hits: [{ source: "b" }], fallback: null });
    held[0]({ hits: [{ source: "a" }], fallback: null });
    await settled();
    assert.equal(store.state.memory.stage, "ready");
    assert.deepEqual(store.state.memory.hits, [{ source: "b" }]);
    act.clear();
    await settled();
    assert.deepEqual(store.state.memory.hits, []);
    assert.equal(store.state.memory.stage, "idle");
    assert.deepEqual(there.focused, ["#memory-search"]);
  });

  test("that failed says why and is made again on demand, at once", async () => {
    const { act, clock, store, open, calls, answers } = page({ search: new ApiError(503, "busy") });
    await open({ view: "memory" });
    act.type("otter");
    await clock.pass(REST_MS);
    assert.deepEqual([store.state.memory.stage, store.state.memory.error], ["failed", "busy"]);
    answers.search = { hits: [{ source: "a" }] };
    act.search();
    await settled();
    assert.equal(store.state.memory.hits.length, 1);
    assert.equal(calls("search").length, 2);
  });

  test("leads to a message however far back it lies, and says when it cannot", async () => {
    const said = (id, day) => ({ id, role: "user", text: id, createdAt: `${day}T04:00:00.000Z` });
    let pages = 0;
    const older = (store) => {
      pages += 1;
      const id = pages === 3 ? "msg-far" : `msg-${pages}`;
      const messages = [said(id, `2026-01-2${8 - pages}`)];
      store.dispatch({ type: "olderLoaded", messages, before: "more" });
    };
    const { act, store, went, told } = page({ older });
    store.set({ messages: [said("msg-0", "2026-01-28")], before: "more" });
    await act.openMessage("msg-far", "2026-01-25");
    assert.deepEqual([pages, went], [3, ["message msg-far"]]);
    await act.openMessage("msg-none", "2026-01-23");
    assert.equal(pages, 6); // one day before it, the search is over
    assert.equal(told.length, 1);
  });
});

describe("a file", () => {
  test("is opened, missed, and read anew when something was said", async () => {
    const there = page({ note: file("a") });
    const { store, open, answers, clock, calls } = there;
    await open(READ);
    assert.equal(store.state.note.file.text, "a");
    answers.note = new ApiError(404, "");
    await open({ view: "note", path: "memory/none.md", line: null });
    assert.equal(store.state.note.load, "missing");
    answers.note = file("b");
    await open(READ);
    store.set({ load: "ready" });
    await settled();
    store.set({ messages: [] });
    await clock.pass(REFRESH_MS);
    assert.equal(calls("note").length, 4);
    await open({ view: "memory" });
    assert.equal(store.state.note, null);
  });

  test("is saved over the version it was made from", async () => {
    const there = page({ note: file("a\r\nb"), saveNote: (path, { text }) => file(text) });
    const { act, open, calls, went, kept, store } = there;
    await open(EDIT);
    assert.equal(form(there).text, "a\nb");
    act.edit(PATH, { text: "a\nb\nc" });
    await settled();
    assert.match(kept[`note.${PATH}`], /hash of a/);
    await act.save(PATH);
    assert.deepEqual(calls("saveNote"), [
      ["saveNote", PATH, { text: "a\r\nb\r\nc", hash: "hash of a\r\nb" }],
    ]);
    assert.deepEqual(went, [READ]);
    await open(READ);
    assert.deepEqual([kept, store.state.notes], [{}, {}]);
  });

  test("that was not touched is closed without a word to the server", async () => {
    const there = page({ note: file("a") });
    await there.open(EDIT);
    await there.act.save(PATH);
    assert.equal(there.calls("saveNote").length, 0);
    assert.deepEqual(there.went, [READ]);
  });

  test("opens for writing as it is now, unless something was typed", async () => {
    const there = page({ note: file("a") });
    const { open, answers, act } = there;
    await open(EDIT);
    await open(READ);
    answers.note = file("b");
    await open(EDIT);
    assert.equal(form(there).text, "b");
    act.edit(PATH, { text: "b and mine" });
    await open({ view: "tasks" });
    answers.note = file("c");
    await open(EDIT);
    assert.deepEqual([form(there).text, form(there).base.text], ["b and mine", "b"]);
  });

  test("that is not to be edited, or is not there, gets no form", async () => {
    const there = page({ note: file("a", { editable: false }) });
    await there.open(EDIT);
    assert.equal(form(there), undefined);
    there.answers.note = new ApiError(404, "");
    await there.open({ view: "noteEdit", path: "memory/none.md" });
    assert.deepEqual(there.store.state.notes, {});
    await there.open({ view: "noteEdit", path: "memory.md" });
    assert.equal(there.store.state.notes["memory.md"].base, null);
  });
});

describe("a file that changed meanwhile", () => {
  const changed = (text) => {
    const error = new ApiError(409, "changed", "hash", {
      current: text === null ? null : file(text),
    });
    return error;
  };

  test("is told, looked at and overwritten, guarded by the version that was seen", async () => {
    const there = page({ note: file("a"), saveNote: changed("theirs") });
    const { act, open, calls, focused, answers, went } = there;
    await open(EDIT);
    act.edit(PATH, { text: "mine" });
    await act.save(PATH);
    assert.equal(form(there).conflict.current.text, "theirs");
    assert.equal(form(there).text, "mine");
    assert.deepEqual(focused, ["#note-conflict"]);
    answers.saveNote = (path, { text }) => file(text);
    await act.overwrite(PATH);
    assert.deepEqual(calls("saveNote").at(-1)[2], { text: "mine", hash: "hash of theirs" });
    assert.deepEqual(went, [READ]);
  });

  test("may be taken as it is", async () => {
    const there = page({ note: file("a"), saveNote: changed("theirs") });
    const { act, open } = there;
    await open(EDIT);
    act.edit(PATH, { text: "mine" });
    await act.save(PATH);
    act.startFrom(PATH, form(there).conflict.current);
    const { text, conflict, base } = form(there);
    assert.deepEqual([text, conflict, base.hash], ["theirs", null, "hash of theirs"]);
  });

  test("by our own save that came twice is saved", async () => {
    const there = page({ note: file("a"), saveNote: changed("mine") });
    await there.open(EDIT);
    there.act.edit(PATH, { text: "mine" });
    await there.act.save(PATH);
    assert.deepEqual(there.went, [READ]);
  });

  test("or is gone, can be written again", async () => {
    const there = page({ note: file("a"), saveNote: changed(null) });
    await there.open(EDIT);
    there.act.edit(PATH, { text: "mine" });
    await there.act.save(PATH);
    assert.equal(form(there).conflict.current, null);
    there.answers.saveNote = (path, { text }) => file(text);
    await there.act.overwrite(PATH);
    assert.equal(there.calls("saveNote").at(-1)[2].hash, null);
  });
});

describe("what is typed", () => {
  const draft = (text, hash) => ({ [`note.${PATH}`]: JSON.stringify({ title: "", text, hash }) });

  test("is here again after the page was loaded anew", async () => {
    const there = page({ note: file("a") }, draft("a and mine", "hash of a"));
    await there.open(EDIT);
    assert.deepEqual([form(there).text, form(there).restored], ["a and mine", true]);
    assert.equal(form(there).conflict, null);
    there.act.startFrom(PATH, form(there).base);
    await settled();
    assert.equal(form(there).text, "a");
    assert.deepEqual(there.kept, {});
  });

  test("over a version that is no more is laid beside the new one", async () => {
    const there = page({ note: file("b") }, draft("a and mine", "hash of a"));
    await there.open(EDIT);
    assert.equal(form(there).text, "a and mine");
    assert.equal(form(there).conflict.current.text, "b");
    there.act.startFrom(PATH, form(there).conflict.current);
    assert.deepEqual([form(there).text, form(there).conflict], ["b", null]);
  });

  test("is not lost with the file", async () => {
    const there = page({ note: new ApiError(404, "") }, draft("mine", "hash of a"));
    await there.open(EDIT);
    assert.deepEqual(form(there).conflict, { current: null, shown: false });
  });

  test("that the browser cannot keep is said to be so", async () => {
    const there = page({ note: file("a") }, { full: true });
    await there.open(EDIT);
    there.act.edit(PATH, { text: "mine" });
    await settled();
    assert.equal(form(there).unkept, true);
  });

  test("is given up only when that is confirmed", async () => {
    const there = page({ note: file("a") });
    await there.open(EDIT);
    there.act.edit(PATH, { text: "mine" });
    there.act.cancel(PATH);
    assert.equal(there.store.state.confirming, "note");
    assert.equal(form(there).text, "mine");
    there.act.close(PATH);
    assert.deepEqual(there.went, [READ]);
    await there.open(READ);
    assert.deepEqual([there.store.state.notes, there.kept], [{}, {}]);
  });

  test("and could not be saved stays, with the reason", async () => {
    const there = page({ note: file("a"), saveNote: new ApiError(422, "the text is too long") });
    await there.open(EDIT);
    there.act.edit(PATH, { text: "mine" });
    await there.act.save(PATH);
    const { text, error, busy } = form(there);
    assert.deepEqual([text, error, busy], ["mine", "the text is too long", false]);
    assert.deepEqual(there.focused, ["#note-error"]);
  });
});

describe("a new note", () => {
  const NOW = Date.parse("2026-01-27T20:00:00.000Z"); // the 28th in Shanghai

  test("is named by the workspace's day; a name that is taken gets a number", async () => {
    const taken = new Set(["memory/2026-01-28-plan.md", "memory/2026-01-28-plan-2.md"]);
    const saveNote = (path, { text }) =>
      taken.has(path)
        ? new ApiError(409, "there", "hash", { current: file("another") })
        : file(text, { path });
    const { act, store, open, calls, went } = page({ saveNote });
    store.set({ now: NOW, zone: "Asia/Shanghai" });
    await open({ view: "noteNew" });
    act.edit("new", { title: "Plan", text: "do it" });
    await act.save("new");
    assert.deepEqual(calls("saveNote").at(-1), [
      ...["saveNote", "memory/2026-01-28-plan-3.md"],
      { text: "# Plan\n\ndo it\n", hash: null },
    ]);
    assert.deepEqual(went, [{ view: "note", path: "memory/2026-01-28-plan-3.md", line: null }]);
  });

  test("without a word is not made", async () => {
    const { act, store, open, calls } = page({});
    await open({ view: "noteNew" });
    await act.save("new");
    assert.equal(calls("saveNote").length, 0);
    assert.ok(store.state.notes.new.error);
  });
});

describe("the backlog", () => {
  const items = (...done) => done.map((one, at) => ({ text: `item ${at}`, done: one }));

  test("is changed by the words of an item", async () => {
    const there = page({ changeBacklog: { items: items(true) } });
    const { act, store, open, calls } = there;
    await open({ view: "backlog" });
    act.typeItem("  item \n 0 ");
    await act.addItem();
    assert.deepEqual(calls("changeBacklog"), [
      ["changeBacklog", { action: "add", item: "item 0" }],
    ]);
    assert.deepEqual([store.state.backlog.draft, store.state.backlog.items.length], ["", 1]);
    await act.changeItem("undone", "item 0");
    assert.equal(calls("changeBacklog").at(-1)[1].action, "undone");
    await act.removeItem("item 0");
    assert.equal(calls("changeBacklog").at(-1)[1].action, "remove");
  });

  test("that could not be changed keeps what was typed, and is looked at anew", async () => {
    const there = page({ changeBacklog: new ApiError(422, "no such item") });
    const { act, store, open, calls } = there;
    await open({ view: "backlog" });
    act.typeItem("thing");
    await act.addItem();
    assert.deepEqual(
      [store.state.backlog.draft, store.state.backlog.error, store.state.backlog.busy],
      ["thing", "no such item", ""],
    );
    assert.equal(calls("backlog").length, 2);
  });
});

test("the hits of a reply are asked for once, and again when that failed", async () => {
  const there = page({ turn: new ApiError(503, "") });
  const { act, store, calls, answers } = there;
  await act.toggleHits("turn-1");
  assert.deepEqual(
    [store.state.hits["turn-1"].load, store.state.hits["turn-1"].open],
    ["failed", true],
  );
  answers.turn = { hits: [{ source: "memory.md" }] };
  await act.toggleHits("turn-1");
  await act.toggleHits("turn-1");
  assert.equal(store.state.hits["turn-1"].hits.length, 1);
  await act.toggleHits("turn-1");
  await act.toggleHits("turn-1");
  assert.equal(calls("turn").length, 2);
});
