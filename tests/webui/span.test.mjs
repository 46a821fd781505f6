// Which part of a long list is drawn, and the room for the rest.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Heights, sightOf, spanOf } from "../../webui/js/span.js";

const rows = (count, from = 0) => Array.from({ length: count }, (_, at) => ({ key: `r${from + at}` }));

describe("the part that is drawn", () => {
  test("is the end, until somebody looks further up", () => {
    assert.deepEqual(spanOf(rows(5), null), { from: 0, to: 5 });
    assert.deepEqual(spanOf(rows(100), null), { from: 76, to: 100 });
    assert.deepEqual(spanOf([], null), { from: 0, to: 0 });
  });

  test("stays the same when others come before or after it", () => {
    const sight = { from: "r10", to: "r19" };
    assert.deepEqual(spanOf(rows(100), sight), { from: 10, to: 20 });
    assert.deepEqual(spanOf([...rows(50, 1000), ...rows(200)], sight), { from: 60, to: 70 });
  });
  test("stays also when its first row, a day, goes as older ones come", () => {
    const sight = sightOf([{ key: "day" }, ...rows(100)], 0, "r39");
    assert.deepEqual(spanOf([...rows(50, 1000), ...rows(100)], sight), { from: 50, to: 90 });
  });

  test("reaches to the end, whatever comes there", () => {
    assert.deepEqual(spanOf(rows(100), { from: "r90", to: null }), { from: 90, to: 100 });
    assert.deepEqual(spanOf(rows(120), { from: "r90", to: null }), { from: 90, to: 120 });
  });

  test("holds on to the end of it that is left", () => {
    assert.deepEqual(spanOf(rows(100), { from: "gone", to: "r49" }), { from: 26, to: 50 });
    assert.deepEqual(spanOf(rows(100), { from: "r10", to: "gone" }), { from: 10, to: 34 });
    assert.deepEqual(spanOf(rows(100), { from: "gone", to: "gone" }), { from: 76, to: 100 });
  });
});

describe("heights", () => {
  const known = () => {
    const heights = new Heights();
    heights.learn("r0", 100);
    heights.learn("r1", 50);
    return heights;
  };

  test("that are not known are taken to be like the others", () => {
    assert.equal(known().of("r0"), 100);
    assert.equal(known().of("r9"), 75);
    assert.equal(known().total(rows(4), 0, 4), 300);
  });

  test("are learned anew", () => {
    const heights = known();
    heights.learn("r0", 200);
    assert.equal(heights.of("r9"), 125);
    assert.equal(heights.of("r0"), 200);
  });

  test("tell which rows fill a stretch", () => {
    const heights = new Heights();
    for (const { key } of rows(10)) heights.learn(key, 10);
    assert.deepEqual(heights.between(rows(10), 25, 45), { from: 2, to: 5 });
    assert.deepEqual(heights.between(rows(10), -50, 10), { from: 0, to: 1 });
    assert.deepEqual(heights.between(rows(10), 95, 500), { from: 9, to: 10 });
    assert.deepEqual(heights.between(rows(10), 500, 900), { from: 9, to: 10 });
  });
});
