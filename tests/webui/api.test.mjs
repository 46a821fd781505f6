// Requests as they go out, and what their answers are taken for.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiError, connect, words } from "../../webui/js/core/api.js";
import { useDictionary } from "../../webui/js/core/i18n.js";
import { ownZone } from "../../webui/js/core/time.js";

function server(answer) {
  const asked = [];
  const keys = { held: "", read: () => keys.held, keep: (key) => (keys.held = key) };
  const send = async (path, options) => {
    asked.push({ path, ...options });
    return answer();
  };
  return { asked, keys, api: connect("tab-1", keys, send) };
}

const json = (data, status = 200) =>
  new Response(JSON.stringify(data), { status, headers: { "content-type": "application/json" } });

test("a message goes out as JSON, with the tab's name", async () => {
  const { asked, api } = server(() => json({ id: "msg-1", state: "queued" }, 202));
  assert.deepEqual(await api.input({ id: "msg-1", text: "hi" }), { id: "msg-1", state: "queued" });
  const [{ path, method, headers, body, credentials }] = asked;
  assert.deepEqual([path, method, credentials], ["api/input", "POST", "same-origin"]);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["x-mimikit-tab"], "tab-1");
  assert.equal(headers["x-mimikit-zone"], ownZone());
  assert.deepEqual(JSON.parse(body), { id: "msg-1", text: "hi" });
});

test("whatever stands in an id or a cursor stays in its place", async () => {
  const { asked, api } = server(() => json({}));
  await api.task("../login?x");
  await api.output("t", "a&b=c");
  await api.output("t", null);
  assert.deepEqual(
    asked.map((one) => one.path),
    ["api/tasks/..%2Flogin%3Fx", "api/tasks/t/output?offset=a%26b%3Dc", "api/tasks/t/output"],
  );
  assert.equal(api.stream("seg:12"), "api/events?since=seg%3A12&tab=tab-1");
});

test("an error says what the server says", async () => {
  const error = { error: { message: "expected text, got nothing", field: "text" } };
  const { api } = server(() => json(error, 422));
  await assert.rejects(api.input({ id: "m", text: "" }), (caught) => {
    assert.ok(caught instanceof ApiError);
    assert.deepEqual(
      [caught.status, caught.field, caught.message],
      [422, "text", error.error.message],
    );
    assert.equal(caught.passing, false);
    return true;
  });
});

test("an error is told by its code, in words that name the field", () => {
  useDictionary("en", { "error.too_long": "{field}: {max} at most", "field.this": "This", "field.text": "The text" });
  const told = (field, code) => words({ field, code, params: { max: 5 }, message: "`x`: too long" });
  assert.equal(told("schedule.text", "too_long"), "The text: 5 at most");
  assert.equal(told(null, "too_long"), "This: 5 at most");
  assert.equal(told("text", "unheard_of"), "x: too long");
});

test("no answer, half an answer and a busy server may pass", async () => {
  const gone = () => Promise.reject(new TypeError("network"));
  const half = () => new Response('{"id":', { status: 200 });
  const busy = () => new Response("<html>", { status: 503 });
  for (const [answer, status] of [[gone, 0], [half, 0], [busy, 503]]) {
    await assert.rejects(server(answer).api.snapshot(), (caught) => {
      assert.equal(caught.status, status);
      assert.equal(caught.passing, true);
      return true;
    });
  }
});

test("a file of memory is addressed folder by folder, and a conflict shows the other version", async () => {
  const error = { message: "changed meanwhile", field: "hash" };
  const { asked, api } = server(() => json({ error, current: { text: "theirs" } }, 409));
  const note = { text: "mine", hash: "abc" };
  await assert.rejects(api.saveNote("docs/a b/中?.md", note), (caught) => {
    assert.deepEqual([caught.status, caught.data.current.text], [409, "theirs"]);
    return true;
  });
  const [{ path, method, body }] = asked;
  assert.deepEqual([path, method], ["api/memory/docs/a%20b/%E4%B8%AD%3F.md", "PUT"]);
  assert.deepEqual(JSON.parse(body), note);
});

test("the key of a login goes with every request until one logs out", async () => {
  const { asked, keys, api } = server(() => json({ ok: true, key: "k1" }));
  await api.login({ token: "t" });
  assert.equal(keys.held, "k1");
  assert.equal(asked[0].headers["x-mimikit-session"], undefined);
  await api.snapshot();
  await api.input({ id: "m", text: "hi" });
  assert.deepEqual(asked.slice(1).map((one) => one.headers["x-mimikit-session"]), ["k1", "k1"]);
  assert.equal(api.headers()["x-mimikit-session"], "k1");
  keys.held = "of another tab";
  await api.logout();
  assert.equal(asked.at(-1).headers["x-mimikit-session"], "of another tab");
  assert.equal(keys.held, "");
  assert.equal(api.headers()["x-mimikit-session"], undefined);
});

test("a login that is refused changes no key", async () => {
  const { keys, api } = server(() => json({ error: { message: "no", field: "token" } }, 401));
  keys.held = "k1";
  await assert.rejects(api.login({ token: "x" }));
  await assert.rejects(api.logout());
  assert.equal(keys.held, "k1");
});
