// Times, ids, routes and dictionaries.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { has, pickLanguage, t, tn, useDictionary } from "../../webui/js/core/i18n.js";
import { bytesOf, newId } from "../../webui/js/core/ids.js";
import { above, addressOf, askedIn, hashOf, loginCode, placeOf, routeOf } from "../../webui/js/core/route.js";
import {
  clockTime,
  dayKey,
  dayName,
  dayTime,
  duration,
  elapsed,
  fullTime,
  relativeTime,
  stamp,
} from "../../webui/js/core/time.js";

const WEBUI = new URL("../../webui/", import.meta.url).pathname;
const dictionary = (language) =>
  JSON.parse(readFileSync(join(WEBUI, "i18n", `${language}.json`), "utf8"));
const sources = () =>
  readdirSync(join(WEBUI, "js"), { recursive: true })
    .filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(join(WEBUI, "js", name), "utf8"))
    .join("\n");

describe("times", () => {
  const noon = Date.parse("2026-11-21T04:00:00.000Z"); // 12:00 in Shanghai

  test("are the reader's own", () => {
    assert.equal(clockTime(noon, "en", "Asia/Shanghai"), "12:00");
    assert.equal(clockTime(noon, "zh", "Europe/Berlin"), "05:00");
    assert.equal(dayKey("2026-11-20T23:30:00.000Z", "Asia/Shanghai"), "2026-11-21");
    assert.match(dayTime(noon, "en", "Asia/Shanghai"), /^Sat.* 21 Nov.* 12:00$/);
    assert.match(stamp(noon, "en", "Asia/Shanghai"), /^21 Nov.* 12:00:00$/);
    assert.match(fullTime(noon, "en", "Asia/Shanghai"), /Sat.* 21 Nov 2026.* 12:00:00 GMT\+8/);
  });

  test("name near days by their nearness, also across a change of the clocks", () => {
    const day = (at, language) => dayName(at, noon, language, "Asia/Shanghai");
    assert.equal(day("2026-11-20T16:00:00.000Z", "en"), "Today");
    assert.equal(day("2026-11-20T15:59:59.000Z", "en"), "Yesterday");
    assert.equal(day("2026-11-20T15:59:59.000Z", "zh"), "昨天");
    assert.match(day("2026-11-01T04:00:00.000Z", "en"), /^Sunday,? 1 November$/);
    assert.match(day("2025-11-01T04:00:00.000Z", "en"), /^Saturday,? 1 November 2025$/);
    const afterChange = Date.parse("2026-10-25T12:00:00.000Z");
    assert.equal(
      dayName("2026-10-24T12:00:00.000Z", afterChange, "en", "Europe/Berlin"),
      "Yesterday",
    );
  });

  test("tell how far away something is", () => {
    assert.equal(relativeTime(noon - 30_000, noon, "en"), "30 seconds ago");
    assert.equal(relativeTime(noon + 7_200_000, noon, "en"), "in 2 hours");
    assert.equal(relativeTime(noon - 180_000, noon, "zh"), "3分钟前");
    assert.equal(relativeTime(noon + 3 * 86_400_000, noon, "en"), "in 3 days");
  });

  test("run like a clock", () => {
    const shown = [0, 4_999, 727_000, 3_723_000, -5].map(elapsed);
    assert.deepEqual(shown, ["0:00", "0:04", "12:07", "1:02:03", "0:00"]);
  });

  test("are told in two units at most", () => {
    const shown = (ms) => duration(ms, "en");
    assert.equal(shown(350), "350ms");
    assert.equal(shown(4_240), "4.2s");
    assert.equal(shown(59_400), "59s");
    assert.equal(shown(123_000), "2m 3s");
    assert.equal(shown(3_840_000), "1h 4m");
    assert.equal(shown(2 * 86_400_000), "2d");
    assert.equal(duration(123_000, "zh"), "2分钟 3秒");
  });
});

describe("ids", () => {
  test("have the server's shape: a prefix and 26 letters that sort by time", () => {
    const now = Date.parse("2026-11-21T12:00:00.000Z");
    const zeros = new Uint8Array(10);
    assert.match(newId("msg"), /^msg-[0-9abcdefghjkmnpqrstvwxyz]{26}$/);
    assert.equal(newId("msg", 0, zeros), `msg-${"0".repeat(26)}`);
    assert.equal(
      newId("msg", 0, new Uint8Array(10).fill(255)),
      `msg-${"0".repeat(10)}${"z".repeat(16)}`,
    );
    assert.ok(newId("msg", now, zeros) < newId("msg", now + 1, zeros));
  });

  test("are not made twice", () => {
    const made = new Set(Array.from({ length: 1000 }, () => newId("msg", 1)));
    assert.equal(made.size, 1000);
  });

  test("of what is handed over are the same for the same text alone", () => {
    const texts = ["", "a", "b", "ab", "ba", "买牛奶", "买牛奶 ", ..."0123456789"];
    const made = new Set([...texts, ...texts].map((text) => newId("msg", 1, bytesOf(text))));
    assert.equal(made.size, texts.length);
  });
});

describe("routes", () => {
  test("go from address to place and back", () => {
    const places = [
      { view: "chat" },
      { view: "tasks" },
      { view: "triggers" },
      { view: "task", id: "task-01m8.x_y-z" },
      { view: "trigger", id: "new" },
      { view: "triggerEdit", id: "trig-01m8" },
      { view: "triggerNew" },
      { view: "memory" },
      { view: "backlog" },
      { view: "noteNew" },
      { view: "note", path: "memory.md", line: null },
      { view: "note", path: "docs/what? a%/中文 #1.md", line: 12 },
      { view: "noteEdit", path: "memory/new.md" },
    ];
    for (const place of places) assert.deepEqual(routeOf(hashOf(place)), place);
  });

  test("keep what is looked for at their place, as it was typed", () => {
    const state = { list: { q: "a & b", chip: "failed" }, memory: { query: " 中文?" } };
    const tasks = addressOf({ view: "tasks" }, state);
    assert.deepEqual([routeOf(tasks), askedIn(tasks)], [{ view: "tasks" }, { q: "a & b", chip: "failed" }]);
    const memory = addressOf({ view: "memory" }, state);
    assert.deepEqual([routeOf(memory), askedIn(memory).q], [{ view: "memory" }, " 中文?"]);
    assert.equal(addressOf({ view: "home" }, state), "#/home");
    const nothing = { list: { q: "", chip: "all" }, memory: { query: "" } };
    assert.equal(addressOf({ view: "tasks" }, nothing), "#/tasks");
    assert.deepEqual(askedIn("#/tasks?chip=constructor&q"), { q: "", chip: "all" });
  });

  test("that are none lead to the chat", () => {
    for (const hash of [
      "",
      "#",
      "#/nonsense",
      "#/task",
      "#/task/../x",
      "#/trigger/<b>/edit",
      "#/tasks/x",
      "#/memory/x",
      "#/memory/../x.md",
      "#/memory/%ff.md",
      "#/memory/a.md?line=x",
    ]) {
      assert.deepEqual(routeOf(hash), { view: "chat" });
    }
  });

  test("lead up to the list they belong to", () => {
    const edit = { view: "triggerEdit", id: "trig-1" };
    assert.deepEqual(above(edit), { view: "trigger", id: "trig-1" });
    assert.deepEqual(above(above(edit)), { view: "triggers" });
    assert.equal(above({ view: "triggers" }), null);
    assert.deepEqual(above({ view: "task", id: "task-1" }), { view: "tasks" });
    assert.equal(placeOf(edit), "triggers");
    const writing = { view: "noteEdit", path: "memory.md" };
    assert.deepEqual(above(writing), { view: "note", path: "memory.md", line: null });
    assert.deepEqual(above(above(writing)), { view: "memory" });
    assert.equal(placeOf(writing), "memory");
    assert.equal(placeOf({ view: "task", id: "task-1" }), "tasks");
  });

  test("know a one-time login", () => {
    assert.equal(loginCode("#login=pIZR-st_uX"), "pIZR-st_uX");
    assert.equal(loginCode("#/tasks"), null);
    assert.equal(loginCode("#login="), null);
  });
});

describe("words", () => {
  test("fill in what they are given and no more", () => {
    useDictionary("en", {
      a: "Hello {name}, {other}",
      "n.one": "{n} thing",
      "n.other": "{n} things",
    });
    assert.equal(t("a", { name: "<b>{other}" }), "Hello <b>{other}, {other}");
    assert.equal(tn("n", 1), "1 thing");
    assert.equal(tn("n", 0), "0 things");
    assert.equal(t("missing"), "missing");
    assert.equal(has("a"), true);
  });

  test("are spoken in the first language the reader wants and we have", () => {
    assert.equal(pickLanguage(["fr-FR", "zh-TW", "en"]), "zh");
    assert.equal(pickLanguage(["fr-FR", "en-GB", "zh"]), "en");
    assert.equal(pickLanguage([]), "en");
  });

  test("have the same keys in both languages, none of them empty", () => {
    const [english, chinese] = [dictionary("en"), dictionary("zh")];
    assert.deepEqual(Object.keys(chinese), Object.keys(english));
    for (const [key, text] of Object.entries({ ...english, ...chinese })) {
      assert.ok(text.trim(), key);
    }
  });

  test("have the same places to fill in both languages", () => {
    const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
    const chinese = dictionary("zh");
    for (const [key, text] of Object.entries(dictionary("en"))) {
      if (!key.endsWith(".one")) assert.deepEqual(places(chinese[key]), places(text), key);
    }
  });

  test("are all there, and all used", () => {
    const code = sources();
    const keys = Object.keys(dictionary("en"));
    const called = [...code.matchAll(/\bt\(\s*"([^"]+)"/g)].map((match) => match[1]);
    const counted = [...code.matchAll(/\btn\("([^"]+)"/g)].map((match) => match[1]);
    const grouped = [...code.matchAll(/\bword\("([^"]+)"/g)].map((match) => `${match[1]}.`);
    const made = [...code.matchAll(/`([a-zA-Z.]+\.)\$\{[^}]*\}([^`]*)`/g)].map(
      (match) => new RegExp(`^${match[1].replaceAll(".", "\\.")}[^]+${match[2]}$`),
    );
    for (const key of called) assert.ok(keys.includes(key), `t("${key}") has no words`);
    for (const key of counted) assert.ok(keys.includes(`${key}.other`), `tn("${key}")`);
    const quoted = new Set([...code.matchAll(/"([a-z]\w*(?:\.\w+)+)"/gi)].map((match) => match[1]));
    const unused = keys.filter(
      (key) =>
        !quoted.has(key) &&
        !quoted.has(key.replace(/\.(one|other)$/, "")) &&
        !grouped.some((group) => key.startsWith(group)) &&
        !made.some((pattern) => pattern.test(key)),
    );
    assert.deepEqual(unused, []);
  });
});
