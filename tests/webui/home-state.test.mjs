// Of what failed again and again, home tells the last; the others are one line.

import assert from "node:assert/strict";
import { test } from "node:test";

import { foldFailures } from "../../webui/js/home-state.js";

const NOW = Date.parse("2026-11-26T12:00:00Z");
const failure = (id, title, hours = 1, triggerId = null) => ({
  id,
  kind: "failure",
  title,
  triggerId,
  at: new Date(NOW - hours * 3_600_000).toISOString(),
});
const ids = (needs) => needs.map((need) => need.id);

test("two failures of a command stand as they are", () => {
  const needs = [failure("b", "make"), failure("a", "make", 2)];
  assert.deepEqual(foldFailures(needs, NOW), { shown: needs, folded: [] });
});

test("of three or more of one command the newest stands, what else needs one keeps its place", () => {
  const late = { id: "late", kind: "late", title: "make", triggerId: "t", at: null };
  const needs = [failure("c", "make"), failure("x", "tidy"), failure("b", "make", 2), failure("a", "make", 3), late];
  const { shown, folded } = foldFailures(needs, NOW);
  assert.deepEqual(ids(shown), ["c", "x", "late"]);
  assert.deepEqual(ids(folded), ["b", "a"]);
});

test("those of another day are folded, and of many different ones all but five", () => {
  const old = [failure("y", "tidy", 25), failure("z", "mend", 30)];
  assert.deepEqual(ids(foldFailures([failure("a", "make"), ...old], NOW).folded), ["y", "z"]);
  const many = Array.from({ length: 8 }, (_, n) => failure(`n${n}`, `command ${n}`, n));
  assert.deepEqual(ids(foldFailures(many, NOW).folded), ["n5", "n6", "n7"]);
});

test("one alone is not hidden behind a line as long as itself", () => {
  const needs = [failure("a", "make"), failure("b", "tidy", 30)];
  assert.deepEqual(foldFailures(needs, NOW).folded, []);
});
