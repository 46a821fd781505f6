// Home is looked at anew when something moved, and by itself where nobody would tell.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HomeKeeper } from "../../webui/js/home-keeper.js";
import { Store } from "../../webui/js/store.js";
import { Clock, settled } from "./fakes.mjs";

/** Home in the page, beside a server whose background service is as a test says. */
async function page(consumer) {
  const clock = new Clock();
  const server = { consumer, asked: 0, drawn: 0 };
  const api = {
    home: async () => {
      server.asked += 1;
      return { needs: [], health: { consumer: server.consumer } };
    },
    timeline: async () => {
      server.drawn += 1;
      return {};
    },
  };
  const store = new Store((draw) => queueMicrotask(draw));
  const keeper = new HomeKeeper(store, api, { later: clock.later, drop: clock.drop });
  store.onChange((state, before) => keeper.onChange(state, before));
  const after = async (ms) => {
    store.set({ now: store.state.now + ms });
    await settled();
    await clock.pass(ms);
    await settled();
  };
  store.set({ now: 100_000, session: "in", load: "ready", route: { view: "home" } });
  await settled();
  return { server, store, keeper, after };
}

test("a service that has not come up is looked for again and again, without a word from it", async () => {
  const { server, store, after } = await page("down");
  assert.equal(server.asked, 1);
  server.consumer = "ok";
  await after(6000);
  assert.equal(server.asked, 2);
  assert.equal(store.state.home.view.health.consumer, "ok");
});

test("while it works home rests for a minute", async () => {
  const { server, after } = await page("ok");
  await after(50_000);
  assert.equal(server.asked, 1);
  await after(12_000);
  assert.equal(server.asked, 2);
});

test("who looks at it waits no longer for what moved than who does not, however slow a look is", async () => {
  const { server, store, keeper, after } = await page("ok");
  keeper.took = 8000;
  store.set({ question: { id: "q-1" } });
  await after(6000);
  assert.equal(server.asked, 2);
});

const job = (state, more = {}) => ({ id: "job-1", state, taskId: "task-1", total: 1, lines: [], ...more });

test("a run that begins or ends is in the last hours at once, its lines move nothing", async () => {
  const { server, store, after } = await page("ok");
  assert.equal(server.drawn, 1);
  store.set({ jobs: { "job-1": job("running") } });
  await after(2000);
  assert.equal(server.drawn, 2);
  store.set({ jobs: { "job-1": job("running", { lines: ["copied"] }) } });
  await after(2000);
  assert.equal(server.drawn, 2);
  store.set({ jobs: { "job-1": job("done") } });
  await after(2000);
  assert.equal(server.drawn, 3);
});

test("what ran while one looked elsewhere is there when one comes back", async () => {
  const { server, store, after } = await page("ok");
  store.set({ route: { view: "chat" }, wide: false, panelOpen: false });
  store.set({ jobs: { "job-1": job("done") } });
  await after(7000);
  assert.equal(server.drawn, 1);
  store.set({ route: { view: "home" } });
  await after(100);
  assert.equal(server.drawn, 2);
});
