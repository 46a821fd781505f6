// An opened task is kept fresh, whichever of stream and answer comes first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DetailKeeper } from "../../webui/js/pages/detail.js";
import { Store } from "../../webui/js/core/store.js";
import { settled } from "./fakes.mjs";

globalThis.document = { hidden: false };

const task = (state) => ({ id: "task-1", seat: "worker", traceId: "trace-1", state, attempts: 1 });
const told = (state) => ({ type: "change", change: { kind: "task", task: task(state) } });

/** A page on which a task is opened; its answers come when the test gives them. */
async function page() {
  const asked = [];
  const draws = [];
  const api = {
    task: () => new Promise((answer) => asked.push((state) => answer({ task: task(state) }))),
    output: async () => ({ events: [], offset: "0", ended: true }),
  };
  const store = new Store((draw) => draws.push(draw));
  const keeper = new DetailKeeper(store, api);
  store.onChange((state, before) => keeper.onChange(state, before));
  const drawn = async () => {
    await settled();
    while (draws.length) draws.shift()();
    await settled();
  };
  store.set({ session: "in", route: { view: "task", id: "task-1" } });
  await drawn();
  return { store, asked, drawn, state: () => store.state.detail.task?.state };
}

test("an answer that is older than what the stream told is asked for again", async () => {
  const { store, asked, drawn, state } = await page();
  store.dispatch(told("failed"));
  asked.shift()("running"); // both before the page is drawn again
  await drawn();
  assert.equal(asked.length, 1);
  asked.shift()("failed");
  await drawn();
  assert.equal(state(), "failed");
});

test("an answer that holds already what the stream told is not asked for again", async () => {
  const { store, asked, drawn, state } = await page();
  store.dispatch(told("failed"));
  asked.shift()("failed");
  await drawn();
  assert.equal(asked.length, 0);
  assert.equal(state(), "failed");
});

test("an answer that nothing overtook is not asked for again", async () => {
  const { store, asked, drawn, state } = await page();
  asked.shift()("running");
  await drawn();
  assert.equal(asked.length, 0);
  store.dispatch(told("done"));
  await drawn();
  assert.equal(asked.length, 1);
  asked.shift()("done");
  await drawn();
  assert.equal(state(), "done");
  assert.equal(asked.length, 0);
});
