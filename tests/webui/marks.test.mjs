// Names of entries: out of sight while one types, and back at their lines when it is saved.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { bare, marked } from "../../webui/js/core/marks.js";

const SOURCE = [
  "# Notes",
  "",
  "- The user prefers pnpm. <!-- note-01a -->",
  "- The server is called otter.  <!-- note-01b -->",
  "- 周报每周五发给李雷。 <!-- note-01c -->",
  "- Mine, without a name.",
  "",
  "## 09:30 user <!-- msg-01 2026-01-28T01:30:00.123Z -->",
  "",
  "Hello.",
  "",
].join("\n");
const TYPED = bare(SOURCE);
const saved = (change) => marked(change(TYPED), SOURCE);

describe("names of entries", () => {
  test("are out of sight while one types", () => {
    assert.ok(!TYPED.includes("<!--"));
    assert.ok(TYPED.includes("- The server is called otter.\n"));
    const own = "<!-- TODO -->\n<!-- two words --> text\nsee <!-- a b --> there";
    assert.equal(bare(own), own);
  });

  test("stand where they stood when nothing was changed", () => {
    assert.equal(saved((text) => text), SOURCE);
    assert.equal(marked("", SOURCE), "");
    assert.equal(marked(TYPED, TYPED), TYPED);
  });

  test("stay with lines that others are put between, and go with those that are taken out", () => {
    const more = saved((text) => text.replace("- The server", "- A new one.\n- The server"));
    assert.equal(more, SOURCE.replace("- The server", "- A new one.\n- The server"));
    const less = saved((text) => text.replace("- The user prefers pnpm.\n", ""));
    assert.equal(less, SOURCE.replace("- The user prefers pnpm. <!-- note-01a -->\n", ""));
  });

  test("stay with a line that is reworded or moved", () => {
    const other = saved((text) => text.replace("called otter", "called heron"));
    assert.match(other, /- The server is called heron\. {2}<!-- note-01b -->/);
    const more = saved((text) =>
      text.replace("- The user prefers pnpm.", "- First.\n- The user prefers pnpm to npm."),
    );
    assert.match(more, /- First\.\n- The user prefers pnpm to npm\. <!-- note-01a -->/);
    const moved = saved((text) => {
      const week = "- 周报每周五发给李雷。";
      return text.replace(`${week}\n`, "").replace("Hello.", `Hello.\n${week}`);
    });
    assert.match(moved, /Hello\.\n- 周报每周五发给李雷。 <!-- note-01c -->/);
  });

  test("are not given to another line, nor twice", () => {
    const other = saved((text) =>
      text.replace("- The user prefers pnpm.", "- Quite another matter, 完全不同。"),
    );
    assert.ok(!other.includes("note-01a"));
    const twice = saved((text) => text.replace("- Mine", "- The user prefers pnpm.\n- Mine"));
    assert.equal(twice.split("note-01a").length, 2);
    assert.equal(marked(SOURCE, SOURCE), SOURCE);
    const own = saved((text) => text.replace("pnpm.", "pnpm. <!-- note-01x -->"));
    assert.ok(own.includes("pnpm. <!-- note-01x -->") && !own.includes("note-01a"));
  });

  test("tell messages of one minute apart by their order", () => {
    const head = (name) => `## 09:30 user <!-- msg-${name} 2026-01-28T01:30:00.123Z -->`;
    const source = [head("a"), "one", head("b"), "two", head("c"), "three"].join("\n");
    const made = marked(bare(source).replace("## 09:30 user\ntwo\n", ""), source);
    assert.equal(made, [head("a"), "one", head("c"), "three"].join("\n"));
  });

  test("cost little in a long file, whatever was done to it", () => {
    const lines = Array.from({ length: 20_000 }, (_, at) => `- Line ${at} <!-- note-${at} -->`);
    const source = lines.join("\n");
    const began = performance.now();
    const turned = marked(bare(source).split("\n").reverse().join("\n"), source);
    assert.equal(turned, lines.toReversed().join("\n"));
    assert.equal(marked("nothing\n".repeat(20_000), source).includes("<!--"), false);
    assert.ok(performance.now() - began < 5000);
  });
});
