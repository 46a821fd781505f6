// The lines of a diff, numbered on both sides.

import assert from "node:assert/strict";
import { test } from "node:test";

import { numbered } from "../../webui/js/core/select.js";

test("each line has its number before and after, where it is there", () => {
  const lines = [" a", "-b", "+c", "+d", "\\ No newline at end of file", " e"];
  const rows = numbered({ oldStart: 7, oldLines: 3, newStart: 9, newLines: 4, lines });
  assert.deepEqual(
    rows.map(({ mark, before, after }) => [mark, before, after]),
    [
      [" ", 7, 9],
      ["-", 8, null],
      ["+", null, 10],
      ["+", null, 11],
      ["\\", null, null],
      [" ", 9, 12],
    ],
  );
});
