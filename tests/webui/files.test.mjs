// Files that go with a message: added, sent one after the other, kept over a reload, taken once.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { pasted } from "../../webui/js/drops.js";
import { FileActions } from "../../webui/js/file-actions.js";
import { canSend, filesFrom, isPicture, keptFiles, MOST_FILES } from "../../webui/js/file-state.js";
import { readComposing, writeComposing } from "../../webui/js/prefs.js";
import { initialState, reduce } from "../../webui/js/state.js";
import { settled } from "./fakes.mjs";

const sent = (id, more = {}) => ({
  ...{ id, name: `${id}.txt`, mediaType: "text/plain", size: 3, width: null, height: null },
  ...more,
});
const file = (name, type = "text/plain") => ({ name, type, size: 3 });

/** A store, and a server that answers when it is told to. */
function made() {
  const store = {
    state: initialState(),
    dispatch: (action) => (store.state = reduce(store.state, action)),
    set: (values) => store.dispatch({ type: "set", values }),
  };
  const uploads = [];
  const notices = [];
  const forgotten = [];
  const act = new FileActions(store, {
    upload: (given, told, signal) =>
      new Promise((resolve, reject) => uploads.push({ given, told, signal, resolve, reject })),
    fetch: async () => ({}),
    notify: (text) => notices.push(text),
    words: (error) => `why: ${error.message}`,
    say: (key) => key,
    signOut: () => notices.push("signed out"),
    focus: () => {},
    preview: (given) => `blob:${given.name}`,
    forget: (preview) => forgotten.push(preview),
    save: () => {},
    view: () => {},
  });
  const states = () => store.state.files.map((one) => one.state);
  return { store, act, uploads, notices, forgotten, states };
}

describe("sending files", () => {
  test("one goes after the other, and nothing goes out before all are there", async () => {
    const { store, act, uploads, states } = made();
    act.add([file("a"), file("b")]);
    await settled();
    assert.deepEqual(states(), ["sending", "waiting"]);
    assert.equal(canSend(store.state), false);
    uploads[0].told(0.5);
    assert.equal(store.state.files[0].part, 0.5);
    uploads[0].resolve(sent("1"));
    await settled();
    assert.deepEqual(states(), ["ready", "sending"]);
    uploads[1].resolve(sent("2"));
    await settled();
    assert.equal(canSend(store.state), true);
    assert.deepEqual(act.taken().files.map((one) => one.id), ["1", "2"]);
    assert.deepEqual(store.state.files, []);
    assert.deepEqual(act.taken(), {});
  });

  test("one that failed says why, holds the message back, and goes again", async () => {
    const { store, act, uploads, states } = made();
    act.add([file("a")]);
    await settled();
    uploads[0].reject(new Error("full"));
    await settled();
    assert.deepEqual(states(), ["failed"]);
    assert.equal(store.state.files[0].error, "why: full");
    assert.equal(canSend({ ...store.state, draft: "words" }), false);
    act.retry(store.state.files[0].key);
    await settled();
    uploads[1].resolve(sent("1"));
    await settled();
    assert.deepEqual(states(), ["ready"]);
  });

  test("one that is taken away is sent no further, and its picture is let go", async () => {
    const { store, act, uploads, forgotten } = made();
    act.add([file("a.png", "image/png"), file("b")]);
    await settled();
    act.remove(store.state.files[0].key);
    assert.equal(uploads[0].signal.aborted, true);
    uploads[0].reject(new Error("aborted"));
    await settled();
    assert.deepEqual(forgotten, ["blob:a.png"]);
    assert.equal(uploads[1].given.name, "b");
  });

  test("the same file twice is one", async () => {
    const { store, act, uploads } = made();
    act.add([file("a"), file("copy of a")]);
    await settled();
    uploads[0].resolve(sent("1"));
    await settled();
    uploads[1].resolve(sent("1"));
    await settled();
    assert.equal(store.state.files.length, 1);
  });

  test("more than a message takes are not taken", () => {
    const { store, act, notices } = made();
    act.add(Array.from({ length: MOST_FILES + 1 }, (_, number) => file(`${number}`)));
    assert.equal(store.state.files.length, MOST_FILES);
    assert.deepEqual(notices, ["files.tooMany"]);
  });

  test("one that is too large is not sent at all", async () => {
    const { store, act, uploads, states } = made();
    act.add([{ ...file("a"), size: 10 * 2 ** 20 + 1 }]);
    await settled();
    assert.deepEqual([states(), uploads], [["failed"], []]);
    assert.equal(store.state.files[0].error, "error.file_too_large");
  });

  test("who is logged out is told so", async () => {
    const { act, uploads, notices } = made();
    act.add([file("a")]);
    await settled();
    uploads[0].reject(Object.assign(new Error("no"), { status: 401 }));
    await settled();
    assert.deepEqual(notices, ["signed out"]);
  });

  test("those of a message that is taken back stand beside what is there, once", async () => {
    const { store, act, uploads, forgotten } = made();
    act.add([file("a"), file("p.png", "image/png")]);
    await settled();
    uploads[0].resolve(sent("1"));
    await settled();
    uploads[1].resolve(sent("2", { mediaType: "image/png" }));
    await settled();
    act.takeBack([sent("2"), sent("3")]);
    assert.deepEqual(store.state.files.map((one) => one.sent.id), ["2", "3", "1"]);
    assert.deepEqual(forgotten, ["blob:p.png"]);
    act.takeBack(undefined);
    assert.equal(store.state.files.length, 3);
  });

  test("what is let go is not sent any more, and its preview is freed", async () => {
    const { store, act, uploads, forgotten } = made();
    act.add([file("p.png", "image/png"), file("b")]);
    await settled();
    act.letGo(store.state.files);
    assert.equal(uploads[0].signal.aborted, true);
    uploads[0].reject(new Error("aborted"));
    await settled();
    assert.deepEqual([uploads.length, forgotten], [1, ["blob:p.png"]]);
  });

  test("an answer takes no files: what comes makes a message of it", () => {
    const { store, act } = made();
    store.set({ question: { questionId: "q" }, composing: { about: null, answers: "q" } });
    act.add([file("a")]);
    assert.equal(store.state.composing.answers, "");
  });
});

describe("files over a reload", () => {
  test("those that wait while a message is said anew are there again", () => {
    const kept = new Map();
    globalThis.localStorage = /** @type {any} */ ({
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, text) => kept.set(key, text),
      removeItem: (key) => kept.delete(key),
    });
    const one = { ...file("a"), key: "1", state: "ready", sent: sent("1"), preview: "blob:gone" };
    const about = { how: "edit", id: "msg-1", text: "tea", before: "half", files: [one] };
    writeComposing({ about, answers: "" });
    const read = readComposing().about;
    assert.deepEqual([read.before, read.files.map((own) => own.sent.id)], ["half", ["1"]]);
    assert.equal(read.files[0].preview, "", "no page has that any more");
    writeComposing({ about: { ...about, how: "quote", files: [] }, answers: "" });
    assert.deepEqual(readComposing().about.files, []);
    writeComposing({ about: null, answers: "" });
    assert.equal(kept.size, 0);
  });

  test("what was sent is there again, what was not is to be chosen again", () => {
    const one = { ...file("a"), key: "1", mediaType: "text/plain", state: "ready", sent: sent("1") };
    const other = { ...file("b"), key: "2", mediaType: "", state: "sending", sent: null };
    const again = filesFrom(keptFiles([one, other]));
    assert.deepEqual(again.map((it) => [it.state, it.sent?.id]), [["ready", "1"], ["lost", undefined]]);
    assert.equal(canSend({ ...initialState(), files: again }), false);
    assert.equal(canSend({ ...initialState(), files: again.slice(0, 1) }), true);
  });

  test("what the browser kept of another version is nothing", () => {
    for (const kept of [null, "", "{", "{}", "7", '[null, {"name": 1}, {"size": 2}]']) {
      assert.deepEqual(filesFrom(kept || null), []);
    }
    assert.equal(keptFiles([]), "");
  });
});

describe("what is pasted", () => {
  const given = (text, ...names) => ({
    getData: () => text,
    items: names.map((name) => ({
      kind: "file",
      getAsFile: () => file(name),
      webkitGetAsEntry: () => ({ isDirectory: name.endsWith("/") }),
    })),
  });

  test("a picture is a file; text that brings one is text; a folder is nothing", () => {
    assert.equal(pasted(given("", "image.png")).length, 1);
    assert.equal(pasted(given("cells of a table", "image.png")).length, 0);
    assert.equal(pasted(given("notes.txt", "notes.txt")).length, 1);
    assert.equal(pasted(given("", "folder/")).length, 0);
  });

  test("only what a browser shows safely is a picture", () => {
    const kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    assert.ok(kinds.every((mediaType) => isPicture({ mediaType })));
    for (const mediaType of ["image/svg+xml", "text/html", "application/pdf", "image/tiff", ""]) {
      assert.equal(isPicture({ mediaType }), false);
    }
  });
});
