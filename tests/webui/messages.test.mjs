// What can be done with a message, and what the text in the field is for.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { MessageActions } from "../../webui/js/message-actions.js";
import { answersNow, isAnswerSent, MOST_QUOTED, workOf } from "../../webui/js/message-state.js";
import { ReasonKeeper } from "../../webui/js/reason-keeper.js";
import { hashOf, routeOf } from "../../webui/js/route.js";
import { initialState, reduce } from "../../webui/js/state.js";
import { settled } from "./fakes.mjs";

const QUESTION = { questionId: "q1", question: "Which?", options: [], expiresAt: "2026-11-21" };
const SAID = { id: "msg-1", role: "user", text: "tea at four", taskIds: [] };
const REPLY = { id: "msg-2", role: "agent", text: "Fine.", taskIds: ["task-1"], inReplyTo: ["msg-1"] };

function page(values = {}) {
  const store = {
    state: { ...initialState(), messages: [SAID, REPLY], ...values },
    set: (given) => (store.state = { ...store.state, ...given }),
    dispatch: (action) => (store.state = reduce(store.state, action)),
  };
  let focused = 0;
  const freed = [];
  const act = new MessageActions(store, {
    focusComposer: () => (focused += 1),
    later: () => {},
    letGo: (files) => freed.push(...files.map((one) => one.key)),
  });
  return { store, act, freed, focused: () => focused };
}

const hear = (store, question) =>
  store.dispatch({ type: "change", change: { kind: "question", question } });

describe("what the text in the field is for", () => {
  test("a question that comes is answered in the field, until it is closed", () => {
    const { store } = page();
    hear(store, QUESTION);
    assert.equal(answersNow(store.state), true);
    hear(store, null);
    assert.deepEqual([answersNow(store.state), store.state.composing.answers], [false, ""]);
  });

  test("an answer that is being read is not asked for again; one of an earlier question is no answer", () => {
    const answer = { id: "msg-9", kind: "answer", text: "left", createdAt: "2026-11-21T04:00:05Z" };
    const asked = { ...QUESTION, createdAt: "2026-11-21T04:00:00Z" };
    for (const [items, sent] of [
      [[answer], true],
      [[{ ...answer, createdAt: "2026-11-21T03:59:00Z" }], false],
      [[{ ...answer, kind: "user_input" }], false],
    ]) {
      const { store } = page({ inbox: items });
      hear(store, asked);
      assert.equal(isAnswerSent(store.state), sent);
      assert.equal(answersNow(store.state), !sent);
    }
  });

  test("what is being written when a question comes never goes out as its answer", () => {
    for (const values of [{ draft: "buy milk" }, { composing: { about: { id: "msg-1" }, answers: "" } }]) {
      const { store, act } = page(values);
      hear(store, QUESTION);
      assert.equal(answersNow(store.state), false);
      act.answerHere(true);
      assert.equal(answersNow(store.state), true);
      hear(store, { ...QUESTION });
      assert.equal(answersNow(store.state), true, "heard again it changes nothing");
      act.answerHere(false);
      assert.equal(answersNow(store.state), false);
    }
  });

  test("an answer that is on its way is not given twice", () => {
    const { store } = page();
    hear(store, QUESTION);
    const item = { id: "msg-9", kind: "answer", questionId: "q1", state: "sending", text: "left" };
    store.dispatch({ type: "queueOut", item });
    assert.equal(answersNow(store.state), false);
    store.dispatch({ type: "outState", id: "msg-9", state: "failed" });
    assert.equal(answersNow(store.state), true);
  });
});

describe("with a message one can", () => {
  test("quote it, or what is marked of it, once", () => {
    const { store, act, focused } = page({ question: QUESTION, composing: { about: null, answers: "q1" } });
    act.quote("msg-2");
    assert.deepEqual(store.state.composing.about, { how: "quote", id: "msg-2", text: "Fine.", before: "", files: [] });
    assert.equal(store.state.composing.answers, "", "an answer quotes nothing");
    assert.equal(focused(), 1);
    act.quote("msg-2", " in ");
    assert.deepEqual(act.taken(), { quote: "in" });
    assert.deepEqual(act.taken(), {});
  });

  test("say it anew, and find again what one was writing before", () => {
    const { store, act } = page({ draft: "half a thought" });
    act.edit("msg-1");
    assert.equal(store.state.draft, "tea at four");
    store.set({ draft: "tea at five" });
    act.forget();
    assert.deepEqual([store.state.draft, store.state.composing.about], ["half a thought", null]);
    act.edit("msg-1");
    assert.deepEqual(act.taken(), { quote: "tea at four", edits: "msg-1" });
  });

  test("say it anew without losing the files that were to go with what one was writing", () => {
    const own = { key: "file-1", name: "own.png", state: "sending", part: 0, sent: null };
    const said = { id: "f".repeat(64), name: "said.txt", size: 3, mediaType: "text/plain" };
    const { store, act, freed } = page({
      ...{ draft: "look", files: [own], messages: [{ ...SAID, files: [said] }, REPLY] },
    });
    const keys = () => store.state.files.map((one) => one.key);
    act.edit("msg-1");
    assert.deepEqual(keys(), [said.id]);
    store.dispatch({ type: "fileTold", key: "file-1", values: { state: "ready", part: 1 } });
    store.dispatch({ type: "filesAdded", files: [{ ...own, key: "file-2" }] });
    act.edit("msg-1");
    assert.deepEqual([keys(), freed], [[said.id], [said.id, "file-2"]], "of the edit before");
    act.forget();
    assert.deepEqual([keys(), store.state.draft], [["file-1"], "look"]);
    assert.equal(store.state.files[0].state, "ready", "it went on its way meanwhile");
    assert.ok(!freed.includes("file-1"));
  });

  test("quote another while saying one anew: what was put aside is let go", () => {
    const { act, freed } = page({ files: [{ key: "file-1", name: "a" }] });
    act.edit("msg-1");
    act.quote("msg-2");
    assert.deepEqual(freed, ["file-1"]);
  });

  test("quote so much of a long one as a message may quote", () => {
    const text = "𝒳".repeat(MOST_QUOTED + 5);
    const { act } = page({ messages: [{ ...REPLY, text }] });
    act.quote("msg-2");
    assert.equal([...act.taken().quote].length, MOST_QUOTED);
  });

  test("open its work: of what the user said, the work that its reply began", () => {
    const { store } = page();
    const task = (id) => ({ view: "task", id });
    assert.deepEqual(workOf(store.state, REPLY), task("task-1"));
    assert.deepEqual(workOf(store.state, SAID), task("task-1"));
    assert.equal(workOf({ ...store.state, messages: [SAID] }, SAID), null);
    const jobs = { t1: { id: "t1", kind: "request", taskId: "task-2" }, x: { id: "x", kind: "trigger" } };
    const said = (jobId) => workOf({ ...store.state, jobs }, { ...REPLY, jobId });
    assert.deepEqual(said("t1"), task("task-2"), "of several the one that runs, or failed");
    assert.deepEqual(said("x"), { view: "trigger", id: "x" });
  });

  test("nothing, when it is not there any more", () => {
    const { store, act } = page();
    act.quote("msg-gone");
    act.edit("msg-gone");
    assert.equal(store.state.composing.about, null);
  });
});

describe("why a reply says what it says", () => {
  const opened = (turn) => {
    const { store } = page({ session: "in", route: { view: "reason", id: "turn-1" } });
    const keeper = new ReasonKeeper(store, { turn });
    keeper.onChange(store.state);
    return { store, keeper };
  };

  test("is asked for when its page is opened, and again when that failed", async () => {
    const answers = [Promise.reject(new Error("away")), Promise.resolve({ id: "turn-1" })];
    const { store, keeper } = opened(() => answers.shift());
    await settled();
    assert.equal(store.state.reason.load, "failed");
    keeper.again();
    await settled();
    assert.deepEqual([store.state.reason.load, store.state.reason.told], ["ready", { id: "turn-1" }]);
  });

  test("an answer that comes after one has gone on is not heard", async () => {
    const { store, keeper } = opened(() => Promise.resolve({ id: "turn-1" }));
    store.set({ route: { view: "chat" } });
    keeper.onChange(store.state);
    await settled();
    assert.equal(store.state.reason, null);
  });

  test("has an address of its own", () => {
    const route = { view: "reason", id: "turn-1" };
    assert.deepEqual(routeOf(hashOf(route)), route);
  });
});
