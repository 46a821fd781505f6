// An opened trigger is kept fresh, and what is typed is tried on the server.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ApiError } from "../../webui/js/core/api.js";
import { Store } from "../../webui/js/core/store.js";
import { edited } from "../../webui/js/pages/trigger-form.js";
import { REFRESH_MS, REST_MS, TriggerActions } from "../../webui/js/pages/trigger-keeper.js";
import { Clock, settled } from "./fakes.mjs";

const ZONE = "Asia/Shanghai";
const stored = {
  id: "trig-1",
  title: "Dates",
  prompt: "date",
  profile: "command",
  type: "recurring",
  words: { en: "every 10 minutes", zh: "每 10 分钟" },
  enabled: true,
  createdAt: "2026-11-21T12:00:00.000Z",
  recent: [],
  schedule: { interval: 600 },
  condition: null,
};
const detail = { trigger: stored, explanation: { nodes: [], slots: [] }, chain: [] };

/** A page with a server that answers what a test says. */
function page(answers = {}) {
  const clock = new Clock();
  const asked = [];
  const went = [];
  const told = [];
  const api = Object.fromEntries(
    ["triggerDetail", "previewTrigger", "addTrigger", "editTrigger"].map((name) => [
      name,
      async (...given) => {
        asked.push([name, ...given]);
        const answer = answers[name];
        if (answer instanceof Error) throw answer;
        return answer ?? detail;
      },
    ]),
  );
  const store = new Store((draw) => queueMicrotask(draw));
  const forms = new TriggerActions(store, api, {
    zone: () => ZONE,
    go: (route) => went.push(route),
    notify: (text) => told.push(text),
    signOut: () => went.push("out"),
    focus: () => told.push("focus"),
  });
  store.onChange((state, before) => forms.onChange(state, before));
  const edit = (key, values) => forms.change(key, (form) => edited(form, values));
  const open = async (route) => {
    store.set({ session: "in", route });
    await settled();
  };
  const names = () => asked.map(([name]) => name);
  return { clock, asked, went, told, store, forms, answers, open, names, edit };
}

const change = (trigger) => ({
  type: "change",
  change: { kind: "trigger", id: trigger.id, trigger },
});

describe("an opened trigger", () => {
  test("is asked for once, and again when it or a run of it moves", async () => {
    const { store, clock, open, names } = page({ triggerDetail: detail });
    await open({ view: "trigger", id: "trig-1" });
    assert.equal(store.state.triggerDetail.load, "ready");
    store.dispatch(change(stored));
    store.dispatch(change({ ...stored, fireCount: 1 }));
    await clock.pass(REFRESH_MS);
    assert.deepEqual(names(), ["triggerDetail", "triggerDetail"]);
    const run = { id: "task-1", state: "queued", sourceTriggerId: "trig-1", priority: 5 };
    store.dispatch({ type: "change", change: { kind: "task", task: run } });
    await clock.pass(REFRESH_MS);
    const other = { ...run, id: "task-2", sourceTriggerId: "trig-2" };
    store.dispatch({ type: "change", change: { kind: "task", task: other } });
    await clock.pass(REFRESH_MS);
    assert.equal(names().length, 3);
  });

  test("that is not there says so until it is", async () => {
    const there = page({ triggerDetail: new ApiError(404, "no") });
    const { store, clock, open, answers } = there;
    await open({ view: "trigger", id: "trig-1" });
    assert.equal(store.state.triggerDetail.load, "missing");
    answers.triggerDetail = detail; // it was on its way: its creation is heard of
    store.dispatch(change(stored));
    await clock.pass(REFRESH_MS);
    assert.equal(store.state.triggerDetail.load, "ready");
  });

  test("is let go with its page", async () => {
    const { store, clock, open, names } = page({ triggerDetail: detail });
    await open({ view: "trigger", id: "trig-1" });
    await open({ view: "triggers" });
    assert.equal(store.state.triggerDetail, null);
    store.dispatch(change(stored));
    await clock.pass(REFRESH_MS);
    assert.equal(names().length, 1);
  });
});

describe("a form", () => {
  test("tries the time on the server once the typing rests", async () => {
    const answer = { next: ["2026-12-01T01:00:00.000Z"], notes: [] };
    const { store, clock, open, asked, edit } = page({ previewTrigger: answer });
    await open({ view: "triggerNew" });
    for (const text of ["d", "daily", "daily at 9"]) {
      edit("new", { plain: text });
      await clock.pass(REST_MS / 2);
    }
    await clock.pass(REST_MS);
    assert.deepEqual(asked, [["previewTrigger", { when: "daily at 9", timezone: ZONE }]]);
    assert.deepEqual(store.state.forms.new.preview.answer, answer);
    edit("new", { prompt: "date" });
    await clock.pass(REST_MS);
    assert.equal(asked.length, 1);
    edit("new", { plain: "" });
    await clock.pass(REST_MS);
    assert.equal(store.state.forms.new.preview.state, "idle");
    assert.equal(store.state.forms.new.preview.answer, null);
  });

  test("says what the server cannot read, and no more when it could not be asked", async () => {
    const there = page({ previewTrigger: new ApiError(422, "expected a time", "when") });
    const { store, clock, open, answers, edit } = there;
    await open({ view: "triggerNew" });
    edit("new", { plain: "someday" });
    await clock.pass(REST_MS);
    assert.deepEqual(store.state.forms.new.preview.error, {
      field: "when",
      text: "expected a time",
    });
    answers.previewTrigger = new ApiError(503, "busy");
    edit("new", { plain: "daily" });
    await clock.pass(REST_MS);
    const { state, error } = store.state.forms.new.preview;
    assert.deepEqual([state, error], ["failed", null]);
    let come = () => {};
    answers.previewTrigger = new Promise((resolve) => (come = resolve));
    edit("new", { plain: "hourly" });
    await clock.pass(REST_MS);
    edit("new", { plain: "weekly" });
    await settled();
    come({ next: ["2026-12-01T09:00:00.000Z"] }); // of what stood there before: it is not heard
    await settled();
    assert.equal(store.state.forms.new.preview.answer, null);
  });

  test("is kept while one looks elsewhere, and is gone once it is sent", async () => {
    const { store, forms, open, asked, went, edit } = page({
      addTrigger: { id: "trig-9", notes: [] },
    });
    await open({ view: "triggerNew" });
    const { id } = store.state.forms.new;
    assert.match(id, /^trig-/);
    edit("new", { prompt: "date", plain: "daily at 9" });
    await open({ view: "tasks" });
    await open({ view: "triggerNew" });
    assert.equal(store.state.forms.new.plain, "daily at 9");
    await forms.send("new");
    assert.deepEqual(asked.at(-1)[0], "addTrigger");
    assert.equal(asked.at(-1)[1].id, id);
    await settled(); // the page it leads to has not opened yet
    assert.equal(store.state.forms.new.plain, "daily at 9");
    await open({ view: "trigger", id: "trig-9" });
    assert.deepEqual(store.state.forms, {});
    assert.deepEqual(went, [{ view: "trigger", id: "trig-9" }]);
  });

  test("loses nothing when it is refused, and says why at the field", async () => {
    const refused = new ApiError(422, "cron: expected five fields", "schedule.cron");
    const { store, forms, open, asked, told, edit } = page({ addTrigger: refused });
    await open({ view: "triggerNew" });
    await forms.send("new");
    assert.deepEqual(Object.keys(store.state.forms.new.errors), ["prompt", "plain"]);
    assert.equal(asked.length, 0);
    edit("new", { prompt: "date", when: "cron", cron: "9" });
    await forms.send("new");
    const { errors, cron, busy } = store.state.forms.new;
    assert.deepEqual(errors, { cron: "cron: expected five fields" });
    assert.deepEqual([cron, busy, told], ["9", false, ["focus", "focus"]]);
  });

  test("of a trigger opens with what that is, and sends only what changed", async () => {
    const there = page({ triggerDetail: detail, editTrigger: { ok: true } });
    const { store, forms, open, asked, went, answers, edit } = there;
    await open({ view: "triggerEdit", id: "trig-1" });
    await settled();
    assert.equal(store.state.forms["trig-1"].every, "10");
    edit("trig-1", { every: "5" });
    answers.editTrigger = { ok: false, message: "it runs just now" };
    await forms.send("trig-1");
    assert.deepEqual(store.state.forms["trig-1"].errors, { form: "it runs just now" });
    answers.editTrigger = { ok: true };
    await forms.send("trig-1");
    assert.deepEqual(asked.at(-1), ["editTrigger", "trig-1", { schedule: { interval: 300 } }]);
    assert.deepEqual(went, [{ view: "trigger", id: "trig-1" }]);
    await open({ view: "trigger", id: "trig-1" });
    await open({ view: "triggerEdit", id: "trig-1" });
    const calls = asked.length;
    await forms.send("trig-1");
    assert.equal(asked.length, calls);
  });
});
