// Files beside what is being written: added, on their way, refused, removed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { canSend, FileActions } from "../../webui/js/core/files.js";
import { Store } from "../../webui/js/core/store.js";
import { settled } from "./fakes.mjs";

const ref = (name) => ({ id: `${name}.txt`, name, kind: "text", bytes: 3 });
const file = (name, size = 3) => ({ name, size });

function made(upload) {
  const told = [];
  const store = new Store(() => {});
  return { store, told, files: new FileActions(store, { upload }, { notify: (text) => told.push(text) }) };
}

test("a file can be sent once the server has it", async () => {
  const { store, files } = made(async ({ name }) => ref(name));
  assert.equal(canSend(store.state), false);
  files.add([file("a"), file("b")]);
  assert.deepEqual(store.state.files.map(({ sent }) => sent), [null, null]);
  assert.equal(canSend(store.state), false);
  await settled();
  assert.deepEqual(store.state.files.map(({ sent }) => sent), [ref("a"), ref("b")]);
  assert.equal(canSend(store.state), true);
  store.remove("files", store.state.files[0].id);
  assert.deepEqual(store.state.files.map(({ name }) => name), ["b"]);
});

test("what is refused says why and holds the message until it is removed", async () => {
  const { store, told, files } = made(() => Promise.reject({ status: 422, message: "no room" }));
  store.set({ draft: "look" });
  files.add([file("large", 10 * 2 ** 20 + 1), file("empty", 0), file("c")]);
  await settled();
  assert.deepEqual(store.state.files.map(({ error }) => error), ["files.tooLarge", "files.empty", "no room"]);
  assert.equal(canSend(store.state), false);
  files.add(Array.from({ length: 12 }, (_, n) => file(`${n}`)));
  assert.deepEqual([store.state.files.length, told], [10, ["files.tooMany"]]);
  for (const { id } of store.state.files) store.remove("files", id);
  assert.equal(canSend(store.state), true);
});
