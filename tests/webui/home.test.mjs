// The home: when it is loaded, and where the bars of the last day stand.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Store } from "../../webui/js/core/store.js";
import { HomeKeeper, lanes } from "../../webui/js/pages/home-keeper.js";
import { Clock, settled } from "./fakes.mjs";

const NOW = Date.parse("2026-11-21T12:00:00.000Z");
const ago = (hours) => new Date(NOW - hours * 3_600_000).toISOString();
const run = (id, created, started, completed) => ({
  id,
  createdAt: ago(created),
  startedAt: started === null ? null : ago(started),
  completedAt: completed === null ? null : ago(completed),
});

test("bars stand within the day, wait before run, those at one time below one another", () => {
  const runs = [
    run("going", 6, 3, null),
    run("beside", 12, 12, 0.001),
    run("before", 30, 20, 18),
    run("never began", 10, null, 9),
    run("clock set back", 1, 2, 0.5),
  ];
  const bars = Object.fromEntries(
    lanes(runs, NOW).map(({ run: { id }, lane, from, began, to }) => [id, [lane, from, began, to]]),
  );
  assert.deepEqual(bars, {
    before: [0, 0, 167, 250],
    beside: [0, 500, 500, 1000],
    "never began": [1, 583, 622, 625],
    going: [1, 750, 875, 1000],
    "clock set back": [2, 958, 958, 979],
  });
});

test("the home is loaded where it is shown, anew when something changed, and kept when that fails", async () => {
  const clock = new Clock();
  const store = new Store((draw) => draw());
  let asked = 0;
  const answers = [{ running: [] }, { running: ["a"] }];
  const home = async () => {
    asked += 1;
    if (!answers.length) throw new Error("gone");
    return answers.shift();
  };
  const keeper = new HomeKeeper(store, { home });
  store.onChange((state, before) => keeper.onChange(state, before));
  store.set({ session: "in", wide: false, route: { view: "chat" } });
  assert.equal(asked, 0);
  store.set({ route: { view: "home" } });
  await settled();
  assert.deepEqual(store.state.home, { load: "ready", data: { running: [] } });
  for (const id of ["x", "y"]) store.set({ tasks: { [id]: {} } });
  await clock.pass(3000);
  assert.deepEqual([asked, store.state.home.data], [2, { running: ["a"] }]);
  store.set({ triggers: {} });
  await clock.pass(3000);
  assert.deepEqual([asked, store.state.home.data], [3, { running: ["a"] }]);
});
