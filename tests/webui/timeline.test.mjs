// Where the bars of the last hours stand, and where arrow keys lead.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { barOf, layout, MOST_LANES, step, ticks } from "../../webui/js/timeline.js";

const HOUR = 3_600_000;
const UNTIL = Date.parse("2026-03-01T12:00:00Z");
const at = (hoursAgo) => new Date(UNTIL - hoursAgo * HOUR).toISOString();
const bar = (taskId, started, ended, more = {}) => ({
  taskId,
  state: "done",
  title: taskId,
  createdAt: started === null ? null : at(started),
  startedAt: started === null ? null : at(started),
  endedAt: ended === null ? null : at(ended),
  count: 1,
  failed: 0,
  waitMs: 0,
  runMs: 0,
  ...more,
});
const row = (kind, ...bars) => ({ kind, id: kind, title: kind, runs: bars.length, failed: 0, bars });
const shown = (...rows) =>
  layout({ since: at(24), until: at(0), runs: 0, failed: 0, rows, moreRows: 0, whole: true }, UNTIL, 0);
const near = (value, wanted) => assert.ok(Math.abs(value - wanted) < 0.01, `${value}, not ${wanted}`);

describe("a bar", () => {
  test("lies where it ran, and its wait before it", () => {
    const [placed] = shown(row("trigger", bar("a", 12, 6, { createdAt: at(18) }))).rows[0].bars;
    near(placed.waitX, 25);
    near(placed.waitWidth, 25);
    near(placed.x, 50);
    near(placed.width, 25);
  });

  test("that is over in a moment is seen, inside of the picture", () => {
    const [first, last] = shown(row("trigger", bar("a", 12, 12), bar("b", 0, 0))).rows[0].bars;
    assert.ok(first.width > 0.1 && last.x + last.width <= 100);
    assert.equal(first.waitWidth, 0);
  });

  test("that goes on reaches to now, one that waits has no run", () => {
    const running = bar("r", 6, null, { state: "running" });
    const queued = bar("q", null, null, { state: "queued", createdAt: at(12) });
    const found = shown(row("trigger", running, queued)).rows[0].bars;
    const [r, q] = ["r", "q"].map((id) => found.find((one) => one.bar.taskId === id));
    near(r.x + r.width, 100);
    near(q.waitX, 50);
    near(q.waitX + q.waitWidth, 100);
    assert.equal(q.width, 0);
  });

  test("moves back as time passes, until it is out", () => {
    const view = { since: at(24), until: at(0), rows: [row("trigger", bar("a", 12, 11))] };
    near(layout(view, UNTIL + 6 * HOUR, 0).rows[0].bars[0].x, 25);
    assert.deepEqual(layout(view, UNTIL + 14 * HOUR, 0).rows, []);
  });

  test("that began before the picture begins at its edge", () => {
    const [placed] = shown(row("trigger", bar("a", 30, 18))).rows[0].bars;
    near(placed.x, 0);
    near(placed.width, 25);
  });
});

describe("lanes", () => {
  const lanes = (placed) => Object.fromEntries(placed.bars.map((one) => [one.bar.taskId, one.lane]));

  test("keep requests apart that overlap, and are used again", () => {
    const placed = shown(row("request", bar("a", 12, 8), bar("b", 10, 6), bar("c", 7, 5))).rows[0];
    assert.deepEqual(lanes(placed), { a: 0, b: 1, c: 0 });
    assert.equal(placed.lanes, 2);
  });

  test("are few, however many overlap", () => {
    const many = Array.from({ length: 9 }, (_, n) => bar(`t${n}`, 12, 2));
    assert.equal(shown(row("request", ...many)).rows[0].lanes, MOST_LANES);
  });

  test("are one for a trigger, with its failures on top", () => {
    const failed = bar("f", 12, 11, { failed: 1, state: "failed" });
    const placed = shown(row("trigger", failed, bar("a", 12, 10))).rows[0];
    assert.equal(placed.lanes, 1);
    assert.deepEqual(placed.bars.map((one) => one.bar.taskId), ["a", "f"]);
  });
});

test("ticks stand at round hours of the reader's day", () => {
  const hours = (offset) =>
    ticks(UNTIL - 24 * HOUR, UNTIL, offset).map(({ at: when }) => ((when + offset) / HOUR) % 24);
  assert.deepEqual(hours(0), [12, 18, 0, 6, 12]);
  assert.deepEqual(hours(8 * HOUR), [0, 6, 12, 18]); // 20:00 there
  assert.equal(ticks(UNTIL - 3 * HOUR, UNTIL, 0).length, 4);
});

test("arrow keys go along a row and to what is nearest in the next", () => {
  const picture = shown(
    row("request", bar("a", 20, 19), bar("b", 4, 3)),
    row("trigger", bar("c", 18, 17), bar("d", 5, 4), bar("e", 1, 0)),
  );
  const key = (id) => picture.rows.flatMap((one) => one.bars).find((one) => one.bar.taskId === id).key;
  const led = (from, arrow) => {
    const to = step(picture, from && key(from), arrow);
    return to && barOf(picture, to).bar.taskId;
  };
  assert.equal(led("", "ArrowLeft"), "b");
  assert.equal(led("b", "ArrowLeft"), "a");
  assert.equal(led("a", "ArrowLeft"), null);
  assert.equal(led("b", "ArrowDown"), "d");
  assert.equal(led("c", "ArrowUp"), "a");
  assert.equal(led("c", "End"), "e");
  assert.equal(led("e", "Home"), "c");
  assert.equal(led("c", "ArrowDown"), null);
  assert.equal(step(shown(), "", "End"), null);
});
