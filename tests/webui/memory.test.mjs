// Memory: what files and hits look like, where a line is shown, what is sent.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  isDirty,
  isNotePath,
  lettersOf,
  lineMark,
  noteStem,
  noteText,
  otherLines,
  piecesOf,
  placeOfHit,
  typed,
  withHeads,
  withoutTitle,
  written,
} from "../../webui/js/pages/memory.js";
import { dateName, fileSize, monthName } from "../../webui/js/core/time.js";

const hit = (more) => ({ source: "memory.md", kind: "memory", line: 3, ...more });

describe("files", () => {
  test("are named by a path that stays inside", () => {
    for (const path of ["memory.md", "memory/2026-01-28-a.md", "docs/a b/中文.MD"]) {
      assert.ok(isNotePath(path), path);
    }
    for (const path of ["", "a.json", "../a.md", "docs/../a.md", "docs//a.md", "/a.md", "./a.md"]) {
      assert.ok(!isNotePath(path), path);
    }
  });

  test("have days, months and sizes a reader knows", () => {
    assert.equal(dateName("2026-11-21", "2026-11-21", "en"), "Today");
    assert.equal(dateName("2026-11-20", "2026-11-21", "zh"), "昨天");
    assert.match(dateName("2026-01-28", "2026-11-21", "en"), /^Wednesday,? 28 January$/);
    assert.match(dateName("2025-01-28", "2026-11-21", "zh"), /2025年1月28日/);
    assert.equal(monthName("2026-01-01", "en"), "January 2026");
    assert.equal(monthName("2026-01", "zh"), "2026年1月");
    const sizes = [12, 1234, 45_678, 3_000_000].map((bytes) => fileSize(bytes, "en"));
    assert.deepEqual(sizes, ["12B", "1.2kB", "46kB", "3MB"]);
  });
});

describe("what is found", () => {
  test("is marked by characters, also beyond the first plane", () => {
    assert.deepEqual(piecesOf("👍 the otter", [[6, 11]]), [
      { text: "👍 the ", marked: false },
      { text: "otter", marked: true },
    ]);
    assert.deepEqual(piecesOf("测试服务器", [[0, 2]]), [
      { text: "测试", marked: true },
      { text: "服务器", marked: false },
    ]);
    assert.deepEqual(piecesOf("", []), []);
  });

  test("never shows the names of entries, whole or cut", () => {
    const text = (snippet, marks = []) =>
      piecesOf(snippet, marks)
        .map((one) => one.text)
        .join("");
    assert.equal(text("- otter <!-- note-01 --> and <!-- note-0"), "- otter  and ");
    assert.deepEqual(piecesOf("a<!-- x -->b", [[0, 12]]), [{ text: "ab", marked: true }]);
    assert.equal(
      text("is **otter** at `10.0.0.7`, 2 ** 3 ** 4, `open"),
      "is otter at 10.0.0.7, 2 ** 3 ** 4, `open",
    );
  });

  test("opens where it stands", () => {
    assert.deepEqual(placeOfHit(hit()), { view: "note", path: "memory.md", line: 3 });
    assert.deepEqual(placeOfHit(hit({ line: 0 })), { view: "note", path: "memory.md", line: null });
    const said = { source: "history/2026-01-28.jsonl", kind: "transcript", messageId: "msg-1" };
    assert.deepEqual(placeOfHit(hit(said)), { message: "msg-1" });
    assert.equal(placeOfHit(hit({ ...said, messageId: null })), null);
    const result = { source: "worker/results/task-1.json", kind: "result", taskId: "task-1" };
    assert.deepEqual(placeOfHit(hit(result)), { view: "task", id: "task-1" });
    assert.equal(placeOfHit(hit({ source: "../x" })), null);
  });
});

describe("a line", () => {
  const text = [
    "# Notes", // 1
    "", // 2
    "- The **otter** is here. <!-- note-1 -->", // 3
    "- [ ] See [the list](https://example.org/a) today", // 4
    "- The otter is here.", // 5
    "<!-- part p: from a -->", // 6
    "",
    "最后一行",
  ].join("\n");

  test("is found again by how it begins, and by how often it began so before", () => {
    assert.deepEqual(lineMark(text, 3), { needle: "theotterishere", before: 0 });
    assert.deepEqual(lineMark(text, 5), { needle: "theotterishere", before: 1 });
    assert.deepEqual(lineMark(text, 4), { needle: "seethelist", before: 0 });
  });

  test("that shows nothing leads to the next that does", () => {
    assert.deepEqual(lineMark(text, 6), { needle: "最后一行", before: 0 });
    assert.equal(lineMark(text, 9), null);
    const raw = "## 09:30 user <!-- msg-1 2026-01-28T01:30:00.123Z -->\n\na\n\n## 09:30 agent\n";
    assert.deepEqual(lineMark(raw, 5), { needle: "0930", before: 1 });
    assert.equal(lineMark("", 1), null);
  });

  test("is compared by letters and digits", () => {
    assert.equal(lettersOf("`A-b` 第 3 条！"), "ab第3条");
  });
});

describe("what is written", () => {
  const form = (more) => ({ key: "memory.md", title: "", text: "a\n", base: null, ...more });

  test("is dirty when it differs from what it is made from", () => {
    assert.ok(isDirty(form()));
    assert.ok(!isDirty(form({ text: " " })));
    assert.ok(!isDirty(form({ base: { hash: "h", text: "a\r\n" } })));
    assert.ok(isDirty(form({ base: { hash: "h", text: "b" } })));
    assert.ok(isDirty(form({ base: { hash: "h", text: null } })));
    assert.ok(isDirty(form({ key: "new", text: "", title: "T" })));
    assert.ok(!isDirty(form({ key: "new", text: "" })));
  });

  test("keeps the line ends its file had", () => {
    assert.equal(written("a\nb\n", ["x\r\ny"]), "a\r\nb\r\n");
    assert.equal(written("a\nb\n", ["x\ny", "x\r\ny"]), "a\nb\n");
    assert.equal(written("a\n", [null, undefined]), "a\n");
  });

  test("gets a name from its day and title, and a number when that is taken", () => {
    const named = (title) => noteStem("2026-01-28", title, "mem-0123456789abcdefghjkmnpqrs");
    assert.equal(named("Déploy: the 2nd try!"), "memory/2026-01-28-deploy-the-2nd-try");
    assert.equal(named("部署"), "memory/2026-01-28-mem-jkmnpqrs");
    assert.match(named(`${"long words ".repeat(9)}`), /^memory\/2026-01-28-[a-z-]{1,32}$/);
    assert.doesNotMatch(named(`${"a".repeat(31)} b`), /-$/);
    assert.equal(noteText(" T ", " a\n\n"), "# T\n\na\n");
    assert.equal(noteText("", "a"), "a\n");
  });

  test("is laid beside another version, whose own lines are marked", () => {
    const marked = otherLines("a <!-- n-1 -->\nb\r\nb\nc\n", "a\nb\nx").map((line) => [
      line.text,
      line.marked,
    ]);
    assert.deepEqual(marked, [["a", false], ["b", false], ["b", true], ["c", true]]);
  });

  test("is not read under its title twice", () => {
    assert.equal(withoutTitle('<h1 dir="auto">Deploy &amp; run</h1>\n<p>a</p>', "Deploy & run"), "<p>a</p>");
    const other = "<h1>Other</h1><p>a</p>";
    assert.equal(withoutTitle(other, "Deploy"), other);
    assert.equal(withoutTitle("<p>a</p>", ""), "<p>a</p>");
    const heads = '<h2 dir="auto">09:30 user</h2><p>x</p><h2>09:30 users</h2>';
    const told = '<h2 class="said">09:30 你</h2><p>x</p><h2>09:30 users</h2>';
    assert.equal(withHeads(heads, () => "你"), told);
  });
});
