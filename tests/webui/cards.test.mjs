// Work in the conversation: cards, lines of triggers, what goes on, what is looked for.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { arranged, errorLine, happening, isLong, lastLine } from "../../webui/js/cards.js";
import { trimmed } from "../../webui/js/cards-state.js";
import { matches, next } from "../../webui/js/finding.js";
import { inLines, placeOf, timeline } from "../../webui/js/select.js";
import { initialState, reduce } from "../../webui/js/state.js";

const NOW = Date.parse("2026-11-21T12:00:00.000Z");
const at = (seconds = 0) => new Date(NOW + seconds * 1000).toISOString();
const said = (id, role = "user", more = {}) => ({
  id,
  role,
  text: id,
  html: null,
  taskIds: [],
  repeats: [],
  createdAt: at(),
  ...more,
});
const job = (id, more = {}) => ({
  id,
  kind: "request",
  title: id,
  state: "done",
  createdAt: at(),
  startedAt: at(),
  endedAt: at(),
  headline: "",
  lines: [],
  steps: [{ kind: "work", state: "done" }],
  taskId: `task-${id}`,
  failedTaskId: null,
  ...more,
});
const jobs = (...all) => Object.fromEntries(all.map((one) => [one.id, one]));
const state = (values) => ({ ...initialState(), now: NOW, ...values });

/** Each row in a word: `said`, `card: results`, `fold: of how many`, `news`. */
const rows = (messages, known) =>
  arranged(inLines(messages), known).map((row) => {
    if (row.type === "card") return `card ${row.jobId}: ${row.results.map((one) => one.id)}`;
    if (row.type === "fold") return `fold ${row.message.triggerId}: ${row.told}`;
    return `${row.type} ${row.message.id}`;
  });

describe("a job's card", () => {
  const asks = said("ask", "user", { jobId: "j" });
  const starts = said("start", "agent", { jobId: "j" });
  const output = said("out", "system", { jobId: "j" });

  test("stands below the words that began it, and takes in what code tells of it", () => {
    assert.deepEqual(rows([asks, starts, output], jobs(job("j"))), [
      "said ask",
      "said start",
      "card j: out",
    ]);
  });

  test("stands below the user's message where nobody said anything", () => {
    assert.deepEqual(rows([asks, output], jobs(job("j"))), ["said ask", "card j: out"]);
  });

  test("stays there when a mind tells the result long after, in words of its own", () => {
    const later = [asks, said("more"), said("result", "agent", { jobId: "j" })];
    assert.deepEqual(rows(later, jobs(job("j"))), ["said ask", "card j: ", "said more", "said result"]);
    const told = arranged(later, jobs(job("j"))).at(-1);
    assert.deepEqual([told.jobId, told.carries], ["j", false]);
  });

  test("is where its result is, when what began it is not loaded", () => {
    assert.deepEqual(rows([output], jobs(job("j"))), ["card j: out"]);
  });

  test("that is over when one has gone on talking says so where one is, without the output", () => {
    assert.deepEqual(rows([asks, starts, said("more"), output], jobs(job("j"))), [
      "said ask",
      "said start",
      "card j: out",
      "said more",
      "news out",
    ]);
  });

  test("is none for what is not known: what was said stays as it was", () => {
    assert.deepEqual(rows([asks, starts, output], {}), ["said ask", "said start", "said out"]);
  });

  test("has each result once, the newest shown", () => {
    const again = said("again", "system", { jobId: "j" });
    assert.deepEqual(rows([asks, starts, output, again], jobs(job("j"))).at(-1), "card j: out,again");
  });

  test("goes when all was a plan that began no work: its words tell what came of it", () => {
    const plan = { steps: [{ kind: "plan", state: "done" }] };
    assert.deepEqual(rows([asks, starts], jobs(job("j", plan))), ["said ask", "said start"]);
    const planning = jobs(job("j", { ...plan, state: "planning" }));
    assert.deepEqual(rows([asks, starts], planning).at(-1), "card j: ");
    assert.deepEqual(rows([asks, starts, output], jobs(job("j", plan))).at(-1), "card j: out");
  });

  test("takes no reminder in: that is told, and can be put off", () => {
    const reminder = said("r", "system", { jobId: "j", reminder: "call mum" });
    assert.deepEqual(rows([asks, starts, reminder], jobs(job("j"))).at(-1), "said r");
  });
});

describe("what the runs of a trigger told", () => {
  const told = (id, trigger, seconds, more = {}) =>
    said(id, "system", { triggerId: trigger, createdAt: at(seconds), ...more });

  test("is one line since the user spoke, and keeps its key as it grows", () => {
    const first = [said("m"), told("a", "g", 0)];
    const keys = (messages) => arranged(inLines(messages), {}).map((row) => row.key);
    assert.deepEqual(rows([...first, told("b", "g", 10)], {}), ["said m", "fold g: 2"]);
    assert.equal(keys(first)[1], keys([...first, told("b", "g", 10)])[1]);
  });

  test("does not change places with another's, however they take turns", () => {
    const given = [told("a", "g1", 0), told("b", "g2", 5), told("c", "g1", 10)];
    assert.deepEqual(rows(given, {}), ["fold g1: 2", "fold g2: 1"]);
  });

  test("knows which line of a trigger is its last", () => {
    const given = [told("a", "g", 0), said("m"), told("b", "g", 10)];
    const folds = arranged(inLines(given), {}).filter((row) => row.type === "fold");
    assert.deepEqual(
      folds.map((fold) => fold.isLast),
      [false, true],
    );
  });

  test("is found by any message it stands for", () => {
    const entries = timeline(state({ messages: [told("a", "g", 0), told("b", "g", 10)] }));
    assert.equal(placeOf(entries, "a"), `fold-g-${at(0)}`);
    assert.equal(placeOf(entries, "none"), null);
  });

  test("takes no more room however long it goes on", () => {
    let given = state({ messages: [said("m")] });
    for (let run = 0; run < 2000; run += 1) {
      const message = told(`run-${run}`, "g", run * 10);
      given = reduce(given, { type: "change", change: { kind: "message", message } });
    }
    assert.ok(given.messages.length < 20, `${given.messages.length}`);
    const [, fold] = arranged(inLines(given.messages), {});
    assert.equal(fold.since, at(0));
    assert.equal(fold.message.id, "run-1999");
    assert.ok(fold.told > 400, "what is shown of it is the job's own count; this is what is kept");
  });

  test("is left alone while it is short, and where others spoke", () => {
    const messages = [told("a", "g", 0), said("m"), told("b", "g", 1)];
    assert.equal(trimmed(messages), messages);
  });
});

test("a line for a result: the last of its output, or its first words", () => {
  assert.equal(lastLine("`date` is done.\n\n```text\none\ntwo\n\n```"), "two");
  assert.equal(lastLine("`x` is done. It printed nothing."), "x is done. It printed nothing.");
  assert.equal(lastLine("`x` is done.\n\n````text\na\n```\nb\n````\n\nafter"), "b");
  assert.equal(lastLine(""), "");
});

test("why a run failed: what is shown of the error first", () => {
  assert.equal(errorLine("`x` failed.\n\n```text\nexit code 3\n```\n\n```text\nout\n```"), "exit code 3");
  assert.equal(errorLine("`x` failed."), "");
});

test("a text is long by its letters or its lines, and output sooner", () => {
  assert.equal(isLong("a".repeat(3000)), false);
  assert.equal(isLong("a".repeat(3000), true), true);
  assert.equal(isLong("a\n".repeat(30)), false);
  assert.equal(isLong("a\n".repeat(30), true), true);
  assert.equal(isLong("a\n".repeat(61)), true);
});

describe("what goes on", () => {
  const idle = { state: "idle", since: null };
  const status = /** @type {any} */ ({ consumer: "ok", teller: idle });
  const running = job("r", { state: "running" });

  test("is nothing when all is done, or nobody is there to do it", () => {
    assert.equal(happening(state({ status, jobs: jobs(job("d")) })), null);
    const down = { ...status, consumer: "down" };
    assert.equal(happening(state({ status: down, jobs: jobs(running) })), null);
  });

  test("names what runs, the newest first, and what is planned", () => {
    const known = jobs(
      job("p", { state: "planning", startedAt: null }),
      job("old", { state: "running", startedAt: at(-60) }),
      job("new", { state: "running", startedAt: at(-5) }),
      job("w", { state: "waiting" }),
    );
    const found = happening(state({ status, jobs: known }));
    assert.equal(found.reply, null);
    assert.deepEqual(
      [found.running, found.planning].map((all) => all.map((one) => one.id)),
      [["new", "old"], ["p"]],
    );
  });

  test("speaks of the reply first, and believes no status of one that is known to be over", () => {
    const turn = { turnId: "t", since: NOW - 3000, headline: "Reading", endedAt: null };
    assert.equal(happening(state({ status, turn, jobs: {} })).reply.since, NOW - 3000);
    const teller = { state: "replying", since: at(-2), turnId: "t", headline: "" };
    const over = { ...turn, endedAt: NOW };
    assert.equal(happening(state({ status: { ...status, teller }, turn: over })), null);
    assert.equal(happening(state({ status: { ...status, teller } })).reply.since, NOW - 2000);
  });
});

describe("finding", () => {
  const messages = [
    said("one", "user", { text: "The otter swims" }),
    said("start", "agent", { jobId: "j" }),
    said("out", "system", { jobId: "j", text: "an OTTER in the output" }),
    said("last", "user", { text: "no such animal" }),
  ];
  const known = jobs(job("j", { title: "Count otters" }));
  const entries = timeline(state({ messages, jobs: known }));

  test("looks at what was said, at titles and results, whatever the case", () => {
    assert.deepEqual(matches(entries, known, "otter "), ["one", "job-j"]);
    assert.deepEqual(matches(entries, known, "  "), []);
  });

  test("goes from the end back, and stops at either end", () => {
    assert.equal(next(["a", "b"], null, -1), "b");
    assert.equal(next(["a", "b"], "b", -1), "a");
    assert.equal(next(["a", "b"], "a", -1), null);
    assert.equal(next(["a", "b"], "b", 1), null);
    assert.equal(next(["a", "b"], "gone", 1), "a");
    assert.equal(next([], null, -1), null);
  });
});
