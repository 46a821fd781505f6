// What the page knows of the work: each thing once, what a snapshot does not name forgotten, bounded.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { jobOver, untold, withJobs } from "../../webui/js/job-state.js";
import { Session } from "../../webui/js/session.js";
import { initialState, reduce } from "../../webui/js/state.js";
import { Store } from "../../webui/js/store.js";

const job = (id, state = "running", more = {}) => ({ id, state, title: id, ...more });

const said = (id, jobId = null) => ({ id, role: "user", text: id, jobId, taskIds: [], createdAt: "2026-01-01T00:00:00.000Z" });
const wholeOf = (messages, jobs) => {
  const empty = { inbox: [], question: null, draft: null, tasks: [], triggers: [], before: null };
  const snapshot = { ...empty, messages, jobs, now: "2026-01-01T00:00:00.000Z", status: { teller: { state: "idle" }, consumer: "ok" }, version: "1" };
  return { type: "snapshot", snapshot, now: 0 };
};

/** A page's first look, then what it knew before is looked up, unless something was heard of it since. */
async function loadedWith({ known, snapshot, found }) {
  const store = new Store(() => {});
  store.set({ jobs: withJobs({}, known) });
  const asked = [];
  const api = {
    snapshot: async () => snapshot,
    job: async (id) => {
      asked.push(id);
      if (!found[id]) throw new Error("it is gone");
      return found[id];
    },
  };
  await new Session(store, api).load();
  await Promise.resolve();
  await Promise.resolve();
  return { asked, jobs: store.state.jobs };
}

describe("the work", () => {
  test("that a snapshot does not tell of is asked for where a message speaks of it", async () => {
    const snapshot = wholeOf([said("m1", "a"), said("m2", "b"), said("m3", "c")], [job("c")]).snapshot;
    const { asked, jobs } = await loadedWith({ known: [job("a"), job("b"), job("c"), job("d")], snapshot, found: { a: job("a", "done") } });
    assert.deepEqual(asked, ["a", "b"]);
    assert.deepEqual(Object.values(jobs).map((one) => `${one.id} ${one.state}`).sort(), ["a done", "b running", "c running"]);
  });

  test("is known as it was heard of last", () => {
    const known = withJobs({}, [job("a"), job("b")]);
    const after = withJobs(known, [job("a", "done")]);
    assert.deepEqual(Object.values(after).map((one) => [one.id, one.state]), [
      ["b", "running"],
      ["a", "done"],
    ]);
  });

  test("that neither a snapshot nor a message names goes: what ended is kept", () => {
    const known = withJobs({}, [job("a"), job("b", "failed"), job("c", "waiting")]);
    assert.deepEqual(Object.keys(withJobs(known, [job("d")], new Set())), ["b", "d"]);
    assert.deepEqual(Object.keys(withJobs(known, [job("d")], new Set(["c", null]))), ["b", "c", "d"]);
  });

  test("of which a snapshot did not tell is to be asked for, unless it is over", () => {
    const known = withJobs({}, [job("a"), job("b", "failed"), job("c", "waiting")]);
    assert.deepEqual(untold(known, [job("a")]).map((one) => one.id), ["c"]);
  });

  test("that an older message speaks of keeps its card when the whole is loaded anew", () => {
    const first = reduce(initialState(), wholeOf([said("m1", "long"), said("m2")], [job("long"), job("other")]));
    const anew = reduce(first, wholeOf([said("m2"), said("m3")], []));
    assert.deepEqual(anew.messages.map((one) => one.id), ["m1", "m2", "m3"]);
    assert.deepEqual(Object.keys(anew.jobs), ["long"]);
  });

  test("does not grow for ever, and what is at work is never dropped", () => {
    let known = withJobs({}, [job("live"), job("asks", "asking")]);
    for (let n = 0; n < 700; n += 1) known = withJobs(known, [job(`job-${n}`, "done")]);
    const over = Object.values(known).filter(jobOver);
    assert.equal(over.length, 500);
    assert.equal(over.at(-1).id, "job-699");
    assert.ok(known.live && known.asks);
  });

  test("moves with the changes of its tasks", () => {
    const change = { kind: "job", job: job("a", "planning") };
    assert.equal(reduce(initialState(), { type: "change", change }).jobs.a.state, "planning");
  });
});
