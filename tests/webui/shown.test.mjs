// What is shown of a text.

import assert from "node:assert/strict";
import { test } from "node:test";

import { shown } from "../../webui/js/core/shown.js";

test("of very many marks on a letter some are shown", () => {
  const marks = (count) => "\u0301\u200d".repeat(count / 2);
  assert.equal(shown(`e${marks(32)}x`), `e${marks(32)}x`);
  assert.equal(shown(`e${marks(150_000)}x e${marks(40)}`), `e${marks(32)}…x e${marks(32)}…`);
});

test("texts of all scripts stay as they are", () => {
  for (const text of ["ñandú", "नमस्ते हिन्दी", "ก็ที่นี่ก็", "👩‍👩‍👧‍👦🏳️‍🌈", "ལྷ་ས་གྲོང་ཁྱེར", "𓀀".repeat(50)]) {
    assert.equal(shown(text), text);
  }
});
