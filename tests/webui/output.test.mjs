// Output is loaded in pages from both ends; what is missing is seen, and nothing stands there twice.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { PAGES_KEPT, blocksOf, hasGaps, noOutput, outputParts, taken } from "../../webui/js/output.js";

const event = (type, text = "", more = {}) => ({ at: "x", type, text, stream: null, data: {}, ...more });
const part = (start, offset, events, more = {}) => ({
  start: String(start),
  offset: String(offset),
  size: more.size ?? offset,
  events,
  ended: false,
  ...more,
});
const page = (start, offset, more = {}) =>
  part(start, offset, [event("output", `${start}-${offset} `)], more);
const parts = (output) =>
  outputParts(output).map((one) => ("page" in one ? one.page.blocks[0].text : [one.from, one.to]));

describe("pages", () => {
  test("between the beginning and the end stands what is not loaded, until it is", () => {
    let output = taken(noOutput(), page(700_000, 1_000_000, { ended: true }));
    assert.deepEqual(parts(output), [[0, 700_000], "700000-1000000 "]);
    output = taken(output, page(0, 300_000, { size: 1_000_000 }));
    assert.deepEqual(parts(output), ["0-300000 ", [300_000, 700_000], "700000-1000000 "]);
    assert.equal(output.ended, true);
    output = taken(output, page(300_000, 700_000, { size: 1_000_000 }));
    assert.deepEqual(parts(output), ["0-300000 ", "300000-700000 ", "700000-1000000 "]);
  });

  test("a page that comes twice is there once", () => {
    const once = taken(noOutput(), page(0, 100));
    assert.deepEqual(taken(once, page(0, 100)).pages, once.pages);
    assert.deepEqual(taken(once, page(50, 150)).pages, once.pages);
  });

  test("what comes bit by bit is one page and one block", () => {
    let output = noOutput();
    for (let at = 0; at < 100; at += 10) output = taken(output, page(at, at + 10));
    assert.equal(output.pages.length, 1);
    assert.equal(output.pages[0].blocks.length, 1);
    output = taken(output, part(100, 100, [], { ended: true }));
    assert.equal(output.ended, true);
  });

  test("a page that watches for long keeps the beginning and the end", () => {
    let output = noOutput();
    for (let at = 0; at < PAGES_KEPT + 5; at += 1) {
      output = taken(output, page(at * 200_000, (at + 1) * 200_000));
    }
    assert.equal(output.pages.length, PAGES_KEPT);
    assert.equal(output.pages[0].start, 0);
    assert.deepEqual(outputParts(output)[1], { from: 200_000, to: 1_200_000 });
  });
});

describe("blocks", () => {
  test("texts of one stream that follow each other are one, of another they are told apart", () => {
    const blocks = blocksOf([
      event("output", "a\n", { stream: "stdout" }),
      event("output", "b\n", { stream: "stdout" }),
      event("output", "oh\n", { data: { stream: "stderr" } }),
      event("ended"),
      event("started", "engine", { data: { attempt: 1 } }),
    ]);
    assert.deepEqual(
      blocks.map(({ text, stream }) => [text, stream]),
      [
        ["a\nb\n", "stdout"],
        ["oh\n", "stderr"],
      ],
    );
  });

  test("a command that has ended is the one that began, with what it printed and what that lacks", () => {
    const blocks = blocksOf([
      event("command", "make", { data: { id: "7", status: "in_progress" } }),
      event("note", "thinking"),
      event("command", "make", { data: { id: "7", output: "ok", cutBytes: 12 } }),
    ]);
    assert.deepEqual(
      blocks.map(({ text, printed, bytes }) => [text, printed, bytes]),
      [
        ["make", "ok", 12],
        ["thinking", undefined, undefined],
      ],
    );
  });

  test("a message that was streamed before stands there once", () => {
    const streamed = [event("delta", "It "), event("delta", "works."), event("message", "It works.")];
    assert.deepEqual(
      blocksOf(streamed).map(({ type, text }) => [type, text]),
      [["message", "It works."]],
    );
  });

  test("a gap that is still counted becomes the one that was", () => {
    const open = event("gap", "", { data: { bytes: 0, open: true } });
    const closed = event("gap", "", { data: { bytes: 500 } });
    assert.deepEqual(
      blocksOf([open]).map(({ bytes, open: isOpen }) => [bytes, isOpen]),
      [[0, true]],
    );
    assert.deepEqual(
      blocksOf([open, closed]).map(({ bytes, open: isOpen }) => [bytes, isOpen]),
      [[500, false]],
    );
    assert.equal(hasGaps(taken(noOutput(), part(0, 9, [open, closed]))), true);
  });

  test("a gap of nothing is none", () => {
    const open = event("gap", "", { data: { bytes: 0, open: true } });
    const none = event("gap", "", { data: { bytes: 0 } });
    assert.deepEqual(blocksOf([event("output", "a"), none]).length, 1);
    assert.deepEqual(blocksOf([open, none, event("output", "b")]).map((one) => one.text), ["b"]);
  });

  test("another attempt begins with a mark", () => {
    const blocks = blocksOf([event("started", "engine", { data: { attempt: 2 } })]);
    assert.deepEqual(blocks.map(({ type, attempt }) => [type, attempt]), [["started", 2]]);
  });
});
