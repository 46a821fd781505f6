// The page's keys do what the table says, and nothing while one types.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";

import { KEYS, KeyReader, TOGETHER_MS, capsOf } from "../../webui/js/keys.js";

const page = (more = {}) => ({ now: 0, single: true, covered: false, ...more });
const field = { closest: () => ({}) };
const press = (key, more = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });
const read = (...events) => {
  const reader = new KeyReader();
  return events.map((event) => reader.read(event, page())?.id ?? "").at(-1);
};

describe("each key of the table", () => {
  for (const { id, press: keys } of KEYS) {
    test(`${keys} is ${id}`, () => {
      const events = keys.startsWith("Mod+")
        ? [press(keys.slice(4), { ctrlKey: true })]
        : keys.split(" ").map((key) => press(key));
      assert.equal(read(...events), id);
    });
  }

  test("stands there once, and has words in both languages", () => {
    assert.equal(new Set(KEYS.map((key) => key.press)).size, KEYS.length);
    for (const language of ["en", "zh"]) {
      const words = JSON.parse(
        readFileSync(new URL(`../../webui/i18n/${language}.json`, import.meta.url), "utf8"),
      );
      for (const key of KEYS) {
        const name = key.to ? `palette.place.${key.to.view}` : `keys.${key.id}`;
        assert.ok(words[name], `${language}: ${name}`);
      }
    }
  });
});

describe("no key", () => {
  for (const [what, event] of [
    ["in a field", press("n", { target: field })],
    ["of an input method", press("n", { isComposing: true })],
    ["that an input method handles", press("Process", { keyCode: 229 })],
    ["that somebody has taken", press("n", { defaultPrevented: true })],
    ["of the browser's", press("n", { ctrlKey: true })],
    ["with Alt", press("n", { altKey: true })],
    ["with Shift", press("N", { shiftKey: true })],
    ["of both Ctrl and Meta", press("k", { ctrlKey: true, metaKey: true })],
    ["of Ctrl and Shift", press("K", { ctrlKey: true, shiftKey: true })],
    ["of Ctrl+K in the middle of a word", press("k", { ctrlKey: true, isComposing: true })],
  ]) {
    test(`is one ${what}`, () => assert.equal(read(event), ""));
  }

  test("of one letter is one where they are put off, or under a dialog", () => {
    const reader = new KeyReader();
    assert.equal(reader.read(press("n"), page({ single: false })), null);
    assert.equal(reader.read(press("n"), page({ covered: true })), null);
    const palette = press("k", { metaKey: true, target: field });
    assert.equal(reader.read(palette, page({ single: false, covered: true }))?.id, "palette");
  });
});

describe("two letters", () => {
  test("go together only at once, and only one after the other", () => {
    const reader = new KeyReader();
    assert.equal(reader.read(press("g"), page({ now: 0 })), null);
    assert.equal(reader.read(press("t"), page({ now: TOGETHER_MS + 1 })), null);
    assert.equal(read(press("g"), press("x"), press("t")), "");
    assert.equal(read(press("g"), press("g"), press("t")), "");
    assert.equal(read(press("g"), press("n")), "", "what follows is no key of its own");
  });
});

test("wide signs and locked capitals are the same keys", () => {
  assert.equal(read(press("？")), "help");
  assert.equal(read(press("／")), "search");
  assert.equal(read(press("N")), "compose");
});

test("the caps are those of the keyboard", () => {
  assert.deepEqual(capsOf("Mod+k", false), ["Ctrl", "K"]);
  assert.deepEqual(capsOf("Mod+k", true), ["⌘", "K"]);
  assert.deepEqual(capsOf("g t", false), ["G", "T"]);
  assert.deepEqual(capsOf("?", false), ["?"]);
});
