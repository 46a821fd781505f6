// How turns stand in the conversation: their end, a message answered again, a question answered.

import assert from "node:assert/strict";
import { test } from "node:test";

import { initialState } from "../../webui/js/state.js";
import { TurnActions } from "../../webui/js/turn-actions.js";
import { shownMessages, withRetries } from "../../webui/js/turns.js";

const user = (id, more = {}) => ({ id, role: "user", text: id, ...more });
const agent = (id, more = {}) => ({ id, role: "agent", text: id, ...more });
const line = (id, of) => ({ id, role: "system", text: id, ended: "stopped", inReplyTo: [of] });
const ids = (messages) => shownMessages(messages).map((message) => message.id);

test("how a turn ended stands on the message, not on a line of its own", () => {
  const said = [user("a", { ended: "stopped" }), agent("part", { ended: "stopped" }), line("l", "a")];
  assert.deepEqual(ids(said), ["a", "part"]);
  assert.deepEqual(ids([{ ...line("l", "a"), inReplyTo: [] }]), ["l"]);
});

test("a message that is answered again stays one, and says how that went", () => {
  const said = [user("a", { ended: "failed", why: "one" }), line("l", "a")];
  const again = user("b", { retryOf: "a", ended: "failed", why: "two" });
  assert.deepEqual(ids([...said, again]), ["a"]);
  assert.equal(shownMessages([...said, again])[0].why, "two");
  const answered = shownMessages([...said, again, user("c", { retryOf: "a" }), agent("reply")]);
  assert.deepEqual(answered.map((one) => [one.id, one.ended]), [["a", undefined], ["reply", undefined]]);
});

test("one that is answered again after others were said stands there too", () => {
  const said = [user("a", { ended: "failed" }), user("b"), agent("reply"), user("c", { retryOf: "a" })];
  assert.deepEqual(ids(said), ["a", "b", "reply", "c"]);
});

test("a question is shown with its answer, and by itself until that is there", () => {
  const asked = agent("q", { questionId: "q-1" });
  const answer = user("a", { answered: { questionId: "q-1" } });
  assert.deepEqual(ids([asked]), ["q"]);
  assert.deepEqual(ids([asked, answer]), ["a"]);
});

test("what waits to be answered again shows how far it is where it stands", () => {
  const entry = (message, delivery) => ({ type: "message", key: message.id, message, delivery });
  const spoken = [entry(user("a"), "ended"), entry(agent("part"), null)];
  const waits = entry(user("b", { retryOf: "a" }), "answering");
  const shown = withRetries(spoken, [waits]);
  assert.deepEqual(shown.waiting, []);
  assert.deepEqual(shown.spoken.map((one) => one.delivery), ["answering", null]);
  const lost = entry(user("b", { retryOf: "a" }), "failed");
  assert.deepEqual(withRetries(spoken, [lost]).waiting, [lost]);
  const other = entry(user("c"), "queued");
  assert.deepEqual(withRetries(spoken, [other]), { spoken, waiting: [other] });
});

test("a message that waits to be answered again is not sent once more", () => {
  const handed = [];
  const state = { ...initialState(), messages: [user("a", { ended: "failed" }), user("b"), agent("reply")] };
  const store = { state };
  const act = new TurnActions(/** @type {any} */ (store), /** @type {any} */ ({ hand: (item) => handed.push(item) }));
  act.again("a");
  const [item] = handed;
  assert.equal(item.retryOf, "a");
  store.state = { ...state, outbox: [item] };
  act.again("a");
  store.state = { ...state, inbox: [item] };
  act.again("a");
  assert.equal(handed.length, 1);
  store.state = { ...state, outbox: [{ ...item, state: "failed" }] };
  act.again("a");
  assert.equal(handed.length, 2);
});
