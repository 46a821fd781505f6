// The stream over fetch: what it sends, what it makes of the bytes, and how it ends.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { EventStream } from "../../webui/js/core/event-stream.js";
import { settled } from "./fakes.mjs";

let asked, heard, stream;

beforeEach(() => {
  heard = [];
});

/** A stream whose server answers its request by hand. */
function opened(headers = {}) {
  const listener = {
    onOpen: () => heard.push("open"),
    onEvent: ({ event, id, data }) => heard.push([event, id, data]),
    onEnd: () => heard.push("end"),
    onRefused: () => heard.push("refused"),
  };
  stream = new EventStream("/api/events", headers, listener, (address, options) => {
    return new Promise((resolve, reject) => {
      options.signal.addEventListener("abort", () => reject(options.signal.reason));
      asked = { address, ...options, resolve, reject };
    });
  });
}

/** Let the request be answered by a stream of text. */
async function answered(type = "text/event-stream; charset=utf-8", status = 200) {
  let bytes;
  const body = new ReadableStream({ start: (controller) => (bytes = controller) });
  asked.resolve(new Response(body, { status, headers: { "content-type": type } }));
  await heardOut();
  return {
    says: async (text) => {
      bytes.enqueue(typeof text === "string" ? new TextEncoder().encode(text) : text);
      await heardOut();
    },
    ends: async () => (bytes.close(), await heardOut()),
    breaks: async () => (bytes.error(new TypeError("network")), await heardOut()),
  };
}

async function heardOut() {
  for (let turn = 0; turn < 10; turn += 1) await settled();
}

test("it asks with our headers, and hands on whole events", async () => {
  opened({ "x-mimikit-session": "k1" });
  const { address, headers, credentials, cache } = asked;
  assert.deepEqual([address, credentials, cache], ["/api/events", "same-origin", "no-store"]);
  assert.deepEqual(headers, { "x-mimikit-session": "k1", accept: "text/event-stream" });
  const server = await answered();
  await server.says('retry: 500\n\nid: c1\nevent: change\ndata: {"a":\n\n: beat\n\nid: c2\neve');
  await server.says("nt: reset\ndata: {}\n\nevent: change\ndata: x\u2028id: y\n\n");
  const last = ["change", undefined, "x\u2028id: y"];
  assert.deepEqual(heard, ["open", ["change", "c1", '{"a":'], ["reset", "c2", "{}"], last]);
});

test("a letter that comes in two pieces is one letter", async () => {
  opened();
  const server = await answered();
  const bytes = new TextEncoder().encode("event: change\ndata: 茶\n\n");
  await server.says(bytes.slice(0, -4));
  await server.says(bytes.slice(-4));
  assert.deepEqual(heard, ["open", ["change", undefined, "茶"]]);
});

for (const how of ["ends", "breaks"]) {
  test(`a stream that ${how} says so, and nothing of half an event`, async () => {
    opened();
    const server = await answered();
    await server.says("id: c1\nevent: change\ndata: 1\n\nid: c2\nevent: change\ndata: hal");
    await server[how]();
    assert.deepEqual(heard, ["open", ["change", "c1", "1"], "end"]);
  });
}

test("a server that is gone is an end", async () => {
  opened();
  asked.reject(new TypeError("network"));
  await heardOut();
  assert.deepEqual(heard, ["end"]);
});

for (const [type, status] of [
  ["application/json", 401],
  ["text/event-stream", 503],
  ["text/html", 200],
]) {
  test(`an answer of ${status} and ${type} is a refusal`, async () => {
    opened();
    await answered(type, status);
    assert.deepEqual(heard, ["refused"]);
  });
}

test("what is closed is still: in the middle of a word, and before it was answered", async () => {
  opened();
  const server = await answered();
  stream.listener.onEvent = () => stream.close();
  await server.says("event: reset\ndata: {}\n\nevent: change\ndata: late\n\n");
  await server.breaks();
  assert.ok(asked.signal.aborted);

  opened();
  stream.close();
  await heardOut();
  assert.deepEqual(heard, ["open"]);
});
