// The stream over fetch: what it sends, what it makes of the bytes, and when it tries again.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { CLOSED, CONNECTING, EventStream, OPEN } from "../../webui/js/core/event-stream.js";
import { settled } from "./fakes.mjs";

let asked, heard, stream;

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  asked = [];
  heard = [];
});

afterEach(() => {
  stream.close();
  mock.timers.reset();
});

/** A stream whose server answers each request by hand. */
function opened(headers = () => ({})) {
  stream = new EventStream("/api/events", headers, (address, options) => {
    return new Promise((resolve, reject) => {
      options.signal.addEventListener("abort", () => reject(options.signal.reason));
      asked.push({ address, ...options, resolve, reject });
    });
  });
  stream.onopen = () => heard.push("open");
  stream.onerror = () => heard.push(`error ${stream.readyState}`);
  for (const name of ["change", "reset"]) {
    stream.addEventListener(name, (event) => heard.push([name, event.lastEventId, event.data]));
  }
}

/** Let the last request be answered by a stream of text. */
async function answered(type = "text/event-stream; charset=utf-8", status = 200) {
  let bytes;
  const body = new ReadableStream({ start: (controller) => (bytes = controller) });
  asked.at(-1).resolve(new Response(body, { status, headers: { "content-type": type } }));
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

async function pass(ms) {
  mock.timers.tick(ms);
  await heardOut();
}

test("it asks with our headers, and hands on whole events", async () => {
  opened(() => ({ "x-mimikit-session": "k1" }));
  const [{ address, headers, credentials, cache }] = asked;
  assert.deepEqual([address, credentials, cache], ["/api/events", "same-origin", "no-store"]);
  assert.deepEqual(headers, { "x-mimikit-session": "k1", accept: "text/event-stream" });
  const server = await answered();
  assert.equal(stream.readyState, OPEN);
  await server.says('retry: 500\n\nid: c1\nevent: change\ndata: {"a":\n: beat\n\nid: c2\neve');
  await server.says("nt: reset\ndata: {}\n\nevent: other\ndata: x\n\n");
  assert.deepEqual(heard, ["open", ["change", "c1", '{"a":'], ["reset", "c2", "{}"]]);
});

test("a letter that comes in two pieces is one letter", async () => {
  opened();
  const server = await answered();
  const bytes = new TextEncoder().encode("event: change\ndata: 茶\n\n");
  await server.says(bytes.slice(0, -4));
  await server.says(bytes.slice(-4));
  assert.deepEqual(heard, ["open", ["change", "", "茶"]]);
});

for (const how of ["ends", "breaks"]) {
  test(`a stream that ${how} is asked for again, from where it stopped`, async () => {
    let key = "k1";
    opened(() => ({ "x-mimikit-session": key }));
    const server = await answered();
    await server.says("retry: 500\n\nid: c1\nevent: change\ndata: 1\n\n");
    await server.says("id: c2\nevent: change\ndata: hal");
    key = "k2";
    await server[how]();
    assert.deepEqual(heard, ["open", ["change", "c1", "1"], `error ${CONNECTING}`]);
    await pass(499);
    assert.equal(asked.length, 1);
    await pass(1);
    assert.equal(asked[1].headers["last-event-id"], "c1");
    assert.equal(asked[1].headers["x-mimikit-session"], "k2");
    await (await answered()).says("id: c2\nevent: change\ndata: whole\n\n");
    assert.deepEqual(heard.slice(3), ["open", ["change", "c2", "whole"]]);
  });
}

test("a server that is gone is tried again and again", async () => {
  opened();
  for (let times = 1; times <= 3; times += 1) {
    asked.at(-1).reject(new TypeError("network"));
    await heardOut();
    assert.equal(heard.length, times);
    await pass(2000);
  }
  assert.equal(asked.length, 4);
  assert.equal(stream.readyState, CONNECTING);
});

for (const [type, status] of [
  ["application/json", 401],
  ["text/event-stream", 503],
  ["text/html", 200],
]) {
  test(`an answer of ${status} and ${type} is a refusal, and the end`, async () => {
    opened();
    await answered(type, status);
    assert.deepEqual(heard, [`error ${CLOSED}`]);
    await pass(60_000);
    assert.equal(asked.length, 1);
  });
}

test("what is closed is still: in the middle of a word, while it waits, before it was answered", async () => {
  opened();
  const server = await answered();
  stream.addEventListener("reset", () => stream.close());
  await server.says("event: reset\ndata: {}\n\nevent: change\ndata: late\n\n");
  assert.deepEqual(heard, ["open"]);
  assert.ok(asked[0].signal.aborted);

  opened();
  asked.at(-1).reject(new TypeError("network"));
  await heardOut();
  stream.close();
  await pass(60_000);
  assert.equal(asked.length, 2);

  opened();
  stream.close();
  await heardOut();
  await pass(60_000);
  assert.equal(asked.length, 3);
  assert.deepEqual(heard, ["open", `error ${CONNECTING}`]);
});
