// The reply as it grows: put together from a beginning and pieces, wherever those are cut.

import assert from "node:assert/strict";
import { test } from "node:test";

import { initialState, reduce } from "../../webui/js/state.js";

/** Random numbers that are the same each time. */
function dice(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

const teller = { state: "replying", since: "2026-11-21T12:00:00.000Z", turnId: "t1" };
const status = { consumer: "ok", teller, version: "1" };

function snapshot(draft) {
  const nothing = { messages: [], before: null, inbox: [], question: null, tasks: [], triggers: [] };
  const given = { cursor: "c", version: "1", now: "2026-11-21T12:00:00.000Z", ...nothing };
  return { type: "snapshot", snapshot: { ...given, draft, status }, now: 0 };
}

/** A server with a reply of some parts, each with its blocks and where those are known. */
function server(roll) {
  const parts = Array.from({ length: 1 + roll(2) }, (_, number) => {
    const words = Array.from({ length: 1 + roll(40) }, () => ["ab ", "漢字", "😀 ", "\n\n"][roll(4)]);
    const text = `${number}${words.join("")}`;
    const blocks = [];
    for (let start = 0; start < text.length;) {
      const end = start + 1 + roll(12);
      const known = Math.max(end + roll(3), blocks.at(-1)?.known ?? 0);
      if (known > text.length) break;
      blocks.push({ start, end, known, html: text.slice(start, end) });
      start = end;
    }
    return { part: number + 1, text, blocks };
  });
  const pieces = parts.flatMap(({ part, text }) => {
    const found = [];
    for (let at = 0; at < text.length;) {
      const size = 1 + roll(6);
      found.push({ part, at, text: text.slice(at, at + size) });
      at += size;
    }
    return found;
  });
  const wire = ({ known: _, ...block }) => block;
  const whole = (part, after, upto) =>
    parts[part - 1].blocks.filter(({ known }) => after < known && known <= upto).map(wire);
  return {
    parts,
    pieces,
    /** What the feed tells of pieces, those that follow one another perhaps as one. */
    told: (from, upto, merges) => {
      const found = [];
      for (const piece of pieces.slice(from, upto)) {
        const before = found.at(-1);
        if (merges && before?.part === piece.part) before.text += piece.text;
        else found.push({ ...piece });
      }
      return found.map((piece) => {
        const blocks = whole(piece.part, piece.at, piece.at + piece.text.length);
        return { kind: "delta", turnId: "t1", ...piece, blocks };
      });
    },
    /** The draft after so many pieces. */
    draft: (count) => {
      if (!count) return { turnId: "t1", since: teller.since, inputs: [], part: 0, at: 0, text: "", blocks: [] };
      const { part, at, text } = pieces[count - 1];
      const end = at + text.length;
      const blocks = whole(part, -1, end);
      const begin = blocks.at(-1)?.end ?? 0;
      const rest = parts[part - 1].text.slice(begin, end);
      return { turnId: "t1", since: teller.since, inputs: [], part, at: begin, text: rest, blocks };
    },
  };
}

const shown = ({ turn }) => turn.blocks.map((block) => block.html).join("") + turn.text;
const hear = (state, changes) =>
  changes.reduce((before, change) => reduce(before, { type: "change", change }), state);

test("a page that comes in the middle shows each piece once, wherever it comes in", () => {
  for (let seed = 1; seed <= 4000; seed += 1) {
    const roll = dice(seed);
    const { parts, pieces, told, draft } = server(roll);
    let state = initialState();
    let heard = 0;
    for (let loads = 1 + roll(4); loads > 0; loads -= 1) {
      const cursor = heard + roll(pieces.length - heard + 1);
      const read = cursor + roll(pieces.length - cursor + 1); // the draft is read after the cursor
      state = reduce(state, snapshot(draft(read)));
      heard = cursor;
      const upto = heard + roll(pieces.length - heard + 1);
      state = hear(state, told(heard, upto, roll(2) === 1));
      state = hear(state, told(heard, upto, roll(2) === 1)); // another tab's line told it as well
      heard = upto;
      assert.equal(state.turn.gap, false, `seed ${seed}`);
    }
    state = hear(state, told(heard, pieces.length, roll(2) === 1));
    const last = parts.at(-1);
    assert.equal(shown(state), last.text, `seed ${seed}`);
    assert.equal(state.turn.gap, false, `seed ${seed}`);
    const ends = state.turn.blocks.map((block) => block.end);
    assert.deepEqual(ends, last.blocks.map((block) => block.end), `seed ${seed}`);
  }
});

test("a piece that was missed is missed", () => {
  const delta = (at, text, part = 1) => ({ kind: "delta", turnId: "t1", part, at, text, blocks: [] });
  const state = reduce(initialState(), snapshot(null));
  assert.equal(hear(state, [delta(0, "He"), delta(4, "o")]).turn.gap, true);
  assert.equal(hear(state, [delta(3, "lo")]).turn.gap, true);
  assert.equal(hear(state, [delta(0, "He"), delta(2, "llo")]).turn.gap, false);
});

test("a later text takes the place of those before, and none of an earlier one comes after it", () => {
  const delta = (part, at, text) => ({ kind: "delta", turnId: "t1", part, at, text, blocks: [] });
  let state = reduce(initialState(), snapshot(null));
  state = hear(state, [delta(1, 0, "let me look"), delta(2, 0, "Here"), delta(1, 11, "!")]);
  assert.equal(state.turn.text, "Here");
});

test("a block that does not follow what is known is left plain", () => {
  const block = { start: 5, end: 9, html: "x" };
  const delta = { kind: "delta", turnId: "t1", part: 1, at: 0, text: "0123456789", blocks: [block] };
  const state = hear(reduce(initialState(), snapshot(null)), [delta]);
  assert.equal(shown(state), "0123456789");
});
