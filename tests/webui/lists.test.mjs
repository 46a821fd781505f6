// Lists are narrowed as the address says, and triggers stand in the groups the server gave them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { filterOf, listHash, triggerGroups } from "../../webui/js/lists.js";
import { hashOf, routeOf } from "../../webui/js/route.js";

const trigger = (id, group, more = {}) => ({
  id,
  title: id,
  prompt: "",
  group,
  enabled: true,
  createdAt: "2026-01-01T00:00:00Z",
  nextRunAt: null,
  lastRunAt: null,
  words: { en: "every hour", zh: "每小时" },
  ...more,
});
const ids = (found) => found.groups.map((group) => [group.name, group.triggers.map((one) => one.id)]);

describe("the address of a list", () => {
  test("leads back to what was narrowed", () => {
    for (const route of [
      { view: "tasks", state: "failed", trigger: "trig-1", q: "tar & zip" },
      { view: "tasks", q: "备份" },
      { view: "triggers", show: "attention", sort: "last" },
      { view: "triggers" },
      { view: "tasks" },
    ]) {
      assert.deepEqual(routeOf(hashOf(route)), route);
    }
  });

  test("that says nonsense says nothing", () => {
    assert.deepEqual(filterOf("tasks", "state=odd&trigger=../x&show=active&q="), {});
    assert.deepEqual(filterOf("triggers", "show=odd&sort=next&state=failed"), {});
    assert.equal(filterOf("tasks", `q=${"x".repeat(999)}`).q.length, 200);
    assert.equal(listHash("tasks", {}), "#/tasks");
  });
});

describe("triggers", () => {
  const all = [
    trigger("later", "active", { nextRunAt: "2026-01-03T00:00:00Z" }),
    trigger("soon", "active", { nextRunAt: "2026-01-02T00:00:00Z" }),
    trigger("waits", "active", { lastRunAt: "2026-01-01T09:00:00Z" }),
    trigger("broken", "attention", { type: "broken" }),
    trigger("step", "step", { words: { en: "when “Build” is done", zh: "" } }),
  ];

  test("what needs its user is first, then the next to run; what is empty is not there", () => {
    const found = triggerGroups(all, {});
    assert.deepEqual(ids(found), [
      ["attention", ["broken"]],
      ["active", ["soon", "later", "waits"]],
      ["step", ["step"]],
    ]);
    assert.deepEqual(found.counts, { attention: 1, active: 3, paused: 0, step: 1, all: 5 });
  });

  test("are sorted by their last run, or by name", () => {
    assert.deepEqual(ids(triggerGroups(all, { show: "active", sort: "last" })), [
      ["active", ["waits", "later", "soon"]],
    ]);
    assert.deepEqual(ids(triggerGroups(all, { show: "active", sort: "title" })), [
      ["active", ["later", "soon", "waits"]],
    ]);
  });

  test("are found by words, and the counts are those of what is found", () => {
    const found = triggerGroups(all, { q: "BUILD done" });
    assert.deepEqual(ids(found), [["step", ["step"]]]);
    assert.equal(found.counts.all, 1);
    assert.deepEqual(triggerGroups(all, { q: "nowhere" }).groups, []);
  });
});
