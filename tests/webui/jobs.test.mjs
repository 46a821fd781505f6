// Jobs on the page: what events and pages make of the list, and how many there are.

import assert from "node:assert/strict";
import { test } from "node:test";

import { jobGroups, totalOf } from "../../webui/js/core/jobs.js";
import { initialState, reduce } from "../../webui/js/core/state.js";
import { Store } from "../../webui/js/core/store.js";
import { JobsKeeper } from "../../webui/js/pages/jobs.js";
import { Clock } from "./fakes.mjs";

const job = (id, state = "done", more = {}) => ({ id, title: id, state, kind: "request", askedAt: id, ...more });
const page = (jobs, before = null) => ({ jobs, before, totals: { done: 1000, running: 2, asked: 1 } });
const load = (state, jobs, more = {}) =>
  reduce(state, { type: "jobsPage", page: page(jobs), next: false, filter: state.list, ...more });
const hear = (state, id, jobNow, task = { id: "t", traceId: id }) =>
  reduce(state, { type: "change", change: { kind: "task", task, job: jobNow, totals: { done: 1 } } });
const listed = (state) => Object.values(jobGroups(state)).map((group) => group.map((one) => one.id));

test("pages follow one another, and what is known in full stays", () => {
  let state = { ...initialState(), jobs: { a: job("a", "done", { outcome: {} }) } };
  state = load(state, [job("r", "running"), job("q", "waiting"), job("p", "planning"), job("a")]);
  state = load(state, [job("b")], { next: true });
  assert.deepEqual(listed(state), [["r", "p"], ["q"], ["a", "b"]]);
  assert.ok(state.jobs.a.outcome);
  assert.deepEqual(["all", "live", "queued", "done"].map((chip) => totalOf(state.totals, chip)), [1003, 3, 1, 1000]);
});

test("an event moves a job, and takes one away that came to nothing", () => {
  let state = load(initialState(), [job("a"), job("b")]);
  state = hear(state, "c", job("c", "planning"));
  assert.deepEqual(listed(state), [["c"], [], ["a", "b"]]);
  state = hear(state, "c", job("c"));
  assert.deepEqual(listed(state), [[], [], ["c", "a", "b"]]);
  state = hear(state, "b", job("b", "running"));
  assert.deepEqual(listed(state), [["b"], [], ["c", "a"]]);
  assert.deepEqual(listed(hear(state, "b", null)), [[], [], ["c", "a"]]);
  state = hear(state, "g", job("g", "done", { kind: "trigger" }), { traceId: "b", sourceTriggerId: "g" });
  assert.deepEqual(listed(state), [["b"], [], ["g", "c", "a"]]);
});

test("a filter shows only what fits, and takes no late answer", () => {
  let state = load(initialState(), [job("apple pie")]);
  const filter = state.list;
  state = { ...state, list: { ...state.list, q: "Pie a", chip: "failed", ids: [] } };
  assert.equal(load(state, [job("x")], { filter }), state);
  for (const one of [job("apple pie", "failed"), job("apple", "failed"), job("a pie", "done")]) {
    state = hear(state, one.id, one);
  }
  assert.deepEqual(listed(state), [[], [], ["apple pie"]]);
});

test("the keeper loads what the filter says, and follows what runs on a card", async () => {
  const clock = new Clock();
  globalThis.document = { hidden: false };
  const calls = [];
  const store = new Store(() => {});
  store.set({ session: "in", load: "ready" });
  const before = initialState();
  const api = {
    jobs: async (values) => (calls.push(values), page([job("a")], "next")),
    job: async (id) => (calls.push(id), job(id, "running", { messageId: "m", tail: "step" })),
  };
  const keeper = new JobsKeeper(store, api);
  keeper.onChange(store.state, before);
  await clock.pass(300);
  await keeper.page.load(store.state.list);
  assert.deepEqual(calls, [{ q: "", before: null }, { q: "", before: "next" }]);
  store.patch("jobs", { r: job("r", "running", { messageId: "m" }) });
  keeper.onChange(store.state, store.state);
  await clock.pass(2000);
  assert.equal(store.state.jobs.r.tail, "step");
});
