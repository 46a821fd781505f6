// Keys, and what is dropped or pasted.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { readDraft, writeDraft } from "../../webui/js/core/prefs.js";
import { insteadOfBrowser, sends } from "../../webui/js/core/typing.js";

const ENTER = { key: "Enter", shiftKey: false, isComposing: false, keyCode: 13 };

test("Enter sends on keys, and breaks the line on a screen", () => {
  assert.equal(sends(ENTER, false), true);
  assert.equal(sends(ENTER, true), false);
  for (const other of [{ shiftKey: true }, { isComposing: true }, { keyCode: 229 }, { key: "a" }]) {
    assert.equal(sends({ ...ENTER, ...other }, false), false);
  }
});

test("a file that is dropped or pasted is attached, and nothing leaves the page", () => {
  const cases = [
    ["drop", ["Files"], false, "take"],
    ["drop", ["text/uri-list", "text/html", "Files"], true, "take"],
    ["dragover", ["Files"], true, "hold"],
    ["paste", ["Files"], true, "take"],
    ["paste", ["text/plain", "text/html", "Files"], true, ""],
    ["drop", ["text/uri-list"], false, "hold"],
    ["drop", ["text/plain"], true, ""],
    ["paste", ["text/plain"], true, ""],
  ];
  for (const [kind, types, field, right] of cases) {
    assert.equal(insteadOfBrowser(kind, types, field), right, `${kind} ${types}`);
  }
});

describe("a draft", () => {
  const storage = () => {
    const kept = new Map();
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key),
    };
  };
  beforeEach(() => {
    Object.defineProperty(globalThis, "localStorage", { value: storage(), configurable: true });
    Object.defineProperty(globalThis, "sessionStorage", { value: storage(), configurable: true });
  });

  test("belongs to its tab", () => {
    const mine = globalThis.sessionStorage;
    writeDraft("half a sentence");
    Object.defineProperty(globalThis, "sessionStorage", { value: storage(), configurable: true });
    assert.equal(readDraft(), "");
    Object.defineProperty(globalThis, "sessionStorage", { value: mine, configurable: true });
    assert.equal(readDraft(), "half a sentence");
  });
});
