// An opened task is kept fresh, whichever of stream and answer comes first.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { DetailKeeper, OUTPUT_SHOWN, withMore } from "../../webui/js/pages/detail.js";
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

test("an answer for a task that is no longer open changes nothing", async () => {
  const { store, asked, drawn } = await page();
  store.set({ route: { view: "tasks" } });
  await drawn();
  asked.shift()("done");
  await drawn();
  assert.equal(store.state.detail, null);
});

describe("output", () => {
  const none = { blocks: [], dropped: 0, whole: false };
  const event = (type, text, stream = null) => ({ type, text, stream });
  const texts = ({ blocks }) => blocks.map((block) => block.text);

  test("an unfinished line is rewritten, and goes when it ends", () => {
    const begun = [event("output", "begun\n", "stdout"), event("line", "10%", "stdout")];
    let output = withMore(none, begun);
    output = withMore(output, [event("output", "oh\n", "stderr"), event("line", "20%", "stdout")]);
    assert.deepEqual(texts(output), ["begun\n", "oh\n", "20%"]);
    output = withMore(output, [event("output", "30%\n", "stdout")]);
    assert.deepEqual(texts(output), ["begun\n", "oh\n", "30%\n"]);
  });

  test("of one stream flows together; what is said beside it stands apart", () => {
    const output = withMore(none, [
      event("started", "worker"),
      event("output", "a\n", "stdout"),
      event("output", "b\n", "stdout"),
      { ...event("output", "oh\n"), data: { stream: "stderr" } },
      event("tool", "search"),
      event("tool", "search"),
    ]);
    assert.deepEqual(texts(output), ["a\nb\n", "oh\n", "search", "search"]);
  });

  test("shows the end of what is too long, unless all is wanted", () => {
    const long = "x".repeat(OUTPUT_SHOWN);
    const all = [event("output", "first", "stdout"), event("output", long, "stderr")];
    const output = withMore(withMore(none, all), [event("output", "end", "stderr")]);
    assert.deepEqual([output.dropped, output.blocks.length], [8, 1]);
    assert.ok(output.blocks[0].text.endsWith("end"));
    const whole = withMore({ ...none, whole: true }, all);
    assert.deepEqual([whole.dropped, whole.blocks.length], [0, 2]);
  });
});
