// From what is typed to what is sent, and back.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  BY_ID,
  changesOf,
  createRequest,
  edited,
  fieldOf,
  formOf,
  inSeconds,
  inUnits,
  localMinute,
  missingOf,
  newForm,
  newRow,
  previewRequest,
  rowEdited,
  whenOf,
  withoutRow,
  withRow,
} from "../../webui/js/pages/trigger-form.js";

const ZONE = "Asia/Shanghai";
test("without a model a new trigger is a command", () => {
  const served = (engine) => newForm("trig-1", ZONE, { engines: { standard: { engine } } }).profile;
  assert.deepEqual(["builtin", "codex"].map(served), ["command", "standard"]);
});

const form = (values = {}) => ({ ...newForm("trig-1", ZONE), prompt: "date", ...values });
const trigger = (values) => ({
  id: "trig-1",
  title: "Dates",
  prompt: "date",
  profile: "command",
  type: "recurring",
  words: { en: "when so", zh: "如此时" },
  enabled: true,
  cooldown: 0,
  once: false,
  overlap: "skip",
  notify: "change",
  notifyGiven: false,
  schedule: null,
  condition: null,
  ...values,
});
const several = (...conditions) => ({ type: "and", params: { conditions } });
const exists = (path) => ({ type: "file_exists", params: { path } });
const asks = (prompt) => ({ type: "llm_eval", params: { prompt } });

describe("a time", () => {
  test("in plain words goes with the reader's zone", () => {
    assert.deepEqual(whenOf(form({ when: "plain", plain: "  明天早上 9 点 " }), ZONE), {
      when: "明天早上 9 点",
      timezone: ZONE,
    });
  });

  test("of an interval is in seconds", () => {
    const every = (count, unit) =>
      whenOf(form({ when: "every", every: count, everyUnit: unit }), ZONE)?.schedule.interval;
    assert.equal(every("10", "minute"), 600);
    assert.equal(every("1.5", "hour"), 5400);
    assert.equal(every("", "hour"), undefined);
    assert.equal(every("soon", "hour"), undefined);
    assert.equal(every("-1", "second"), -1); // the server says why not
  });

  test("of a cron expression has a zone even when its field is empty", () => {
    const given = form({ when: "cron", cron: " 0  9 * * 1-5 ", timezone: "" });
    assert.deepEqual(whenOf(given, ZONE), { schedule: { cron: "0 9 * * 1-5", timezone: ZONE } });
  });

  test("of a date field is the reader's own", () => {
    const at = "2026-12-01T09:30";
    assert.deepEqual(whenOf(form({ when: "at", at }), ZONE), {
      schedule: { runAt: new Date(2026, 11, 1, 9, 30).toISOString() },
    });
    assert.equal(localMinute(new Date(2026, 11, 1, 9, 30).toISOString()), at);
    assert.equal(localMinute("never"), "");
    assert.equal(whenOf(form({ when: "at", at: "" }), ZONE), null);
  });

  test("span is shown in the largest unit without a fraction", () => {
    assert.deepEqual(inUnits(86_400), ["1", "day"]);
    assert.deepEqual(inUnits(5400), ["90", "minute"]);
    assert.deepEqual(inUnits(61), ["61", "second"]);
    assert.deepEqual(inUnits(0), ["0", "second"]);
    for (const seconds of [1, 61, 600, 5400, 86_400, 259_200]) {
      assert.equal(inSeconds(...inUnits(seconds)), seconds);
    }
  });
});

describe("a condition", () => {
  const of = (row, when = row.type) =>
    whenOf(form({ when, rows: [newRow("row-0", row)] }), ZONE)?.condition;

  test("holds what its own fields say and nothing of the others", () => {
    const typed = { path: " src/*.py ", taskId: "task-1", question: "Is it?", fireOnInit: true };
    assert.deepEqual(of({ ...typed, type: "file_changed" }), {
      type: "file_changed",
      params: { path: "src/*.py", fireOnInit: true },
    });
    assert.deepEqual(of({ ...typed, type: "file_exists" }), exists("src/*.py"));
    const after = { type: "task_failed", params: { taskId: "task-1" } };
    assert.deepEqual(of({ ...typed, type: "task_failed" }), after);
    assert.deepEqual(of({ taskId: BY_ID, typedId: " task-1", type: "task_failed" }), after);
    assert.equal(of({ taskId: BY_ID, type: "task_failed" }), undefined);
    assert.deepEqual(of({ ...typed, type: "llm_eval" }), asks("Is it?"));
    assert.equal(of({ type: "llm_eval" }), undefined);
  });

  test("of several is one of them when there is only one", () => {
    const rows = [newRow("row-0", { type: "file_exists", path: "a" })];
    const given = form({ when: "several", join: "or", rows });
    assert.deepEqual(whenOf(given, ZONE), { condition: exists("a") });
    const two = { ...given, rows: [...rows, newRow("row-1", { type: "llm_eval", question: "b" })] };
    assert.deepEqual(whenOf(two, ZONE), {
      condition: { type: "or", params: { conditions: [exists("a"), asks("b")] } },
    });
    const half = { ...given, rows: [...rows, newRow("row-1", { type: "llm_eval" })] };
    assert.equal(whenOf(half, ZONE), null);
  });
});

describe("a request", () => {
  test("for a new trigger leaves out what is not said", () => {
    assert.deepEqual(createRequest(form({ plain: "daily at 9", profile: "command" }), ZONE), {
      id: "trig-1",
      prompt: "date",
      profile: "command",
      when: "daily at 9",
      timezone: ZONE,
      overlap: "skip",
    });
    const rows = [newRow("row-0", { type: "file_exists", path: "a" })];
    const given = form({ when: "file_exists", rows, cooldown: "2", title: " T ", once: true });
    assert.deepEqual(createRequest(given, ZONE), {
      id: "trig-1",
      prompt: "date",
      title: "T",
      profile: "standard",
      condition: exists("a"),
      overlap: "skip",
      once: true,
      cooldown: 120,
    });
    const once = form({ when: "at", at: "2026-12-01T09:30" });
    assert.equal("overlap" in createRequest(once, ZONE), false);
  });

  test("for a preview asks about the time and how long it rests, as soon as there is one", () => {
    assert.equal(previewRequest(form(), ZONE), null);
    const rows = [newRow("row-0", { type: "llm_eval", question: "Is it?" })];
    const given = form({ when: "llm_eval", rows, cooldown: "1", cooldownUnit: "hour" });
    assert.deepEqual(previewRequest(given, ZONE), { condition: asks("Is it?"), cooldown: 3600 });
  });
});

describe("an edit", () => {
  const changed = (stored, change) => {
    const before = formOf(stored, [], ZONE);
    return changesOf({ ...before, ...change }, before, ZONE);
  };

  test("of nothing changes nothing, whatever the trigger is", () => {
    const stored = [
      { schedule: { interval: 5400 } },
      { schedule: { cron: "0 9 * * *", timezone: "Europe/Berlin" } },
      { schedule: { runAt: "2026-12-01T09:30:12.345Z" }, type: "scheduled" },
      { condition: asks("Is it?"), cooldown: 86_400 },
      { condition: several(exists("a"), { type: "not", params: { condition: exists("b") } }) },
      { condition: { type: "not", params: { condition: exists("b") } }, cooldown: 90, once: true },
    ];
    for (const one of stored) assert.deepEqual(changed(trigger(one), {}), {});
  });

  test("who is told is asked for only where it is chosen, and given up as null", () => {
    const usual = trigger({ schedule: { interval: 600 } });
    assert.deepEqual(changed(usual, { notify: "failure" }), { notify: "failure" });
    const asked = trigger({ schedule: { interval: 600 }, notify: "none", notifyGiven: true });
    assert.equal(formOf(asked, [], ZONE).notify, "none");
    assert.deepEqual(changed(asked, { notify: "" }), { notify: null });
    const made = createRequest(form({ plain: "daily at 9", notify: "change" }), ZONE);
    assert.equal(made.notify, "change");
  });

  test("sends only what changed: the rhythm is not begun anew", () => {
    const stored = trigger({ schedule: { interval: 600 } });
    assert.deepEqual(changed(stored, { title: "" }), { title: "" });
    assert.deepEqual(changed(stored, { every: "5" }), { schedule: { interval: 300 } });
    assert.deepEqual(changed(stored, { when: "plain", plain: "daily at 9" }), {
      when: "daily at 9",
      timezone: ZONE,
    });
  });

  test("keeps what was made elsewhere, in its words", () => {
    const inner = { type: "not", params: { condition: exists("b") } };
    const stored = trigger({ condition: several(exists("a"), inner) });
    const node = (path, depth, en, zh) => ({ path, depth, words: { en, zh } });
    const nodes = [
      node("$", 0, "all of these", "以下全部成立"),
      node("$.0", 1, "a exists", "a 存在"),
      node("$.1", 1, "not this", "以下不成立"),
      node("$.1.0", 2, "b exists", "b 存在"),
    ];
    const words = { en: "not this: b exists", zh: "以下不成立：b 存在" };
    const opened = formOf(stored, nodes, ZONE);
    assert.deepEqual(
      opened.rows.map((row) => [row.type, row.path, row.words]),
      [["file_exists", "a", null], ["kept", "", words]],
    );
    const rows = [{ ...opened.rows[0], path: "c" }, opened.rows[1]];
    assert.deepEqual(changesOf({ ...opened, rows }, opened, ZONE), {
      condition: several(exists("c"), inner),
    });
    const whole = formOf(trigger({ condition: inner }), [], ZONE);
    assert.deepEqual([whole.when, whole.rows[0].words?.en], ["kept", "when so"]);
  });

  test("does not take the beginning of the prompt for a title", () => {
    const title = (shown, prompt) => formOf(trigger({ title: shown, prompt }), [], ZONE).title;
    assert.equal(title("Dates", "date"), "Dates");
    assert.equal(title("date", "date"), "");
    assert.equal(title("echo one two t…", "echo one two three"), "");
  });

  test("shows how long it rests only where that is not the usual", () => {
    const shown = (condition, cooldown) => {
      const { cooldown: count, cooldownUnit } = formOf(trigger({ condition, cooldown }), [], ZONE);
      return count && `${count} ${cooldownUnit}`;
    };
    assert.equal(shown(exists("a"), 0), "");
    assert.equal(shown(exists("a"), 86_400), "1 day");
    assert.equal(shown(several(exists("a"), asks("b")), 86_400), "");
    assert.equal(shown(asks("b"), 0), "0 second");
    assert.deepEqual(changed(trigger({ condition: asks("b"), cooldown: 60 }), { cooldown: "" }), {
      cooldown: null,
    });
  });
});

describe("what is wrong", () => {
  test("is said at each field that still lacks something", () => {
    assert.deepEqual(missingOf(form({ prompt: " ", when: "cron" }), ZONE), {
      prompt: "form.need.prompt",
      cron: "form.need.cron",
    });
    const rows = [newRow("row-0", { type: "task_done" }), newRow("row-3", { type: "llm_eval" })];
    assert.deepEqual(missingOf(form({ when: "several", rows }), ZONE), {
      "row-0.taskId": "form.need.taskId",
      "row-3.question": "form.need.question",
    });
    assert.deepEqual(missingOf(form({ when: "several", rows: [] }), ZONE), { when: "form.need.rows" });
    assert.deepEqual(missingOf(form({ plain: "daily" }), ZONE), {});
  });

  test("finds the field the server means", () => {
    const where = (values, name) => fieldOf(form(values), name);
    assert.equal(where({}, null), "form");
    assert.equal(where({}, "id"), "form");
    assert.equal(where({}, "prompt"), "prompt");
    assert.equal(where({ when: "plain" }, "when"), "plain");
    assert.equal(where({ when: "plain" }, "schedule.runAt"), "plain");
    assert.equal(where({ when: "every" }, "schedule.interval"), "every");
    assert.equal(where({ when: "cron" }, "schedule.cron"), "cron");
    assert.equal(where({ when: "cron" }, "schedule.timezone"), "timezone");
    assert.equal(where({ when: "file_exists" }, "cooldown"), "cooldown");
    const task = { when: "task_done", rows: [newRow("row-0", { type: "task_done" })] };
    assert.equal(where(task, "condition.params.taskId"), "row-0.taskId");
    assert.equal(where(task, "condition"), "when");
    const rows = [newRow("row-0"), newRow("row-7", { type: "llm_eval" })];
    const given = { when: "several", rows };
    const inner = "condition.params.conditions.1.params";
    assert.equal(where(given, `${inner}.prompt`), "row-7.question");
    assert.equal(where(given, "condition.params.conditions.0.params.path"), "row-0.path");
    assert.equal(where(given, "condition"), "when");
    const alone = { when: "several", rows: rows.slice(0, 1) };
    assert.equal(where(alone, "condition.params.path"), "row-0.path");
  });
});

describe("a form as it is typed", () => {
  const typed = (...changes) => changes.reduce((form, change) => change(form), newForm("trig-1", ZONE));
  const set = (values) => (form) => edited(form, values);
  const setRow = (key, values) => (form) => rowEdited(form, key, values);

  test("keeps what was typed for another kind of time", () => {
    const { rows, plain } = typed(
      set({ plain: "daily at 9" }),
      set({ when: "file_exists" }),
      setRow("row-0", { path: "out/*" }),
      set({ when: "several" }),
    );
    assert.deepEqual(
      rows.map((row) => [row.key, row.type, row.path]),
      [["row-0", "file_exists", "out/*"], ["row-1", "file_exists", ""]],
    );
    assert.equal(plain, "daily at 9");
  });

  test("gives every condition a name of its own", () => {
    const { rows } = typed(set({ when: "several" }), (form) => withoutRow(form, "row-0"), withRow, withRow);
    assert.deepEqual(rows.map((row) => row.key), ["row-1", "row-2", "row-3"]);
  });

  test("forgets what was said of a field once that is typed anew, and only that", () => {
    const errors = { form: "no", prompt: "empty", every: "too often", "row-0.path": "bad" };
    const told = (form) => ({ ...form, errors });
    const after = typed(told, set({ everyUnit: "hour" })).errors;
    assert.deepEqual(after, { prompt: "empty", "row-0.path": "bad" });
    const row = typed(told, setRow("row-0", { path: "x" })).errors;
    assert.deepEqual(row, { prompt: "empty", every: "too often" });
  });
});
