// What the actions reach of places that come later.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Actions } from "../../webui/js/actions.js";
import { CardActions } from "../../webui/js/card-actions.js";
import { initialState } from "../../webui/js/state.js";

test("what a place brings with it is reached also by who was there before", () => {
  const store = { state: initialState(), set: () => {}, dispatch: () => {} };
  const nobody = () => {};
  const hands = { files: {}, loadJob: nobody, settleSearch: nobody };
  const actions = new Actions(/** @type {any} */ (store), /** @type {any} */ ({}), /** @type {any} */ ({}), /** @type {any} */ (hands));
  const heard = [];
  hands.loadJob = (/** @type {string} */ id) => heard.push(id);
  hands.settleSearch = () => heard.push("settled");
  actions.tasks.openSteps(/** @type {any} */ ({ id: "job", total: 2, steps: [] }), true);
  actions.search.now();
  assert.deepEqual(heard, ["job", "settled"]);
});

test("work is canceled as a whole, by its own id, wherever its button stands", async () => {
  const asked = [];
  const marked = [];
  const store = { state: initialState(), set: () => {}, dispatch: (/** @type {any} */ action) => marked.push(`${action.id} ${action.what}`) };
  const api = { cancelJob: async (/** @type {string} */ id) => void asked.push(id) };
  const help = { notify: () => {}, words: () => "", signOut: () => {} };
  await new CardActions(/** @type {any} */ (store), /** @type {any} */ (api), /** @type {any} */ (help)).cancel("job");
  const actions = new Actions(/** @type {any} */ (store), /** @type {any} */ (api), /** @type {any} */ ({}), /** @type {any} */ ({}));
  actions.notify = () => {};
  assert.equal(await actions.cancelJob("other"), true);
  assert.deepEqual(asked, ["job", "other"]);
  assert.deepEqual(marked, ["job cancel", "job ", "other cancel", "other "]);
});
