// The command palette, and what asks for attention while the page is hidden.

import assert from "node:assert/strict";
import { test } from "node:test";

import { countUnread, markUnread } from "../../webui/js/core/attention.js";
import { paletteItems } from "../../webui/js/core/palette.js";
import { initialState } from "../../webui/js/core/state.js";

const at = "2026-11-21T12:00:00.000Z";
const message = (id, more = {}) => ({ id, role: "agent", text: id, createdAt: at, taskIds: [], ...more });
const loaded = (more) => ({ ...initialState(), load: "ready", ...more });

test("the palette finds places, triggers and tasks by their words, and ends in the search", () => {
  const state = loaded({
    triggers: { t1: { id: "t1", title: "Nightly backup", prompt: "tar" } },
    jobs: {
      a: { id: "t", kind: "request", taskId: "a", title: "backup now", askedAt: at },
      t1: { id: "t1", kind: "trigger", taskId: "b", title: "Nightly backup", askedAt: at },
    },
  });
  const found = paletteItems(state, "Backup ");
  assert.deepEqual(
    found.map((item) => item.go ?? item.act),
    [{ view: "trigger", id: "t1" }, { view: "task", id: "a" }, "search"],
  );
  assert.equal(paletteItems(state, "").some((item) => item.act === "search"), false);
});

test("a hidden page counts what comes and shows what is urgent", () => {
  const shown = [];
  globalThis.document = { hidden: true, title: "", querySelector: () => ({ href: "favicon.svg" }) };
  globalThis.Notification = function (_title, { body }) {
    shown.push(body);
  };
  const before = loaded({ messages: [message("m0")] });
  const after = loaded({
    notifying: true,
    messages: [
      message("m0"),
      message("m1"),
      message("m2", { role: "user" }),
      message("m3", { role: "system", reminder: "tea" }),
      message("m4", { role: "system", text: "broke", taskIds: ["a"] }),
      message("m5", { role: "system", text: "went well", taskIds: ["b"] }),
    ],
    tasks: { a: { state: "failed" }, b: { state: "done" } },
    question: { questionId: "q1", question: "Which one?" },
  });
  countUnread(after, before);
  assert.equal(document.title, "(5) mimikit");
  assert.deepEqual(shown, ["Which one?", "tea", "broke"]);
  markUnread(0);
  document.hidden = false;
  countUnread(loaded({ messages: [...after.messages, message("m6")] }), after);
  assert.equal(document.title, "mimikit");
});
