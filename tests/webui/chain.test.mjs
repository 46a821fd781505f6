// The picture of a chain.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { NODE, asOfNow, cut, layoutChain, steps } from "../../webui/js/chain.js";

const node = (id, layer, more = {}) => ({
  id,
  kind: "task",
  title: id,
  state: "done",
  layer,
  ...more,
});
const edge = (from, to) => ({ from, to, words: { en: `when ${from} is done`, zh: "" } });
const line = (length) => ({
  nodes: Array.from({ length }, (_, at) => node(`n${at}`, at)),
  edges: Array.from({ length: length - 1 }, (_, at) => edge(`n${at}`, `n${at + 1}`)),
});
const placeOf = ({ nodes }, id) => nodes.find((one) => one.node.id === id);

function overlapping({ nodes }) {
  return nodes.flatMap((a, at) =>
    nodes
      .slice(at + 1)
      .filter((b) => Math.abs(a.x - b.x) < NODE.width && Math.abs(a.y - b.y) < NODE.height)
      .map((b) => `${a.node.id}/${b.node.id}`),
  );
}

/** Numbers of a path: every point it goes through or bends towards. */
const numbers = (path) => path.match(/-?\d+(\.\d+)?/g).map(Number);

describe("a chain's picture", () => {
  test("of nothing is empty, of one step is that step", () => {
    assert.deepEqual(layoutChain({ nodes: [], edges: [] }).nodes, []);
    const { nodes, edges, width, height } = layoutChain(line(1));
    assert.deepEqual([nodes.length, edges.length], [1, 0]);
    assert.ok(width >= NODE.width && height >= NODE.height);
  });

  test("goes from left to right in one line where nothing branches", () => {
    const picture = layoutChain(line(5));
    const xs = picture.nodes.map((one) => one.x);
    assert.deepEqual(
      xs,
      [...xs].sort((a, b) => a - b),
    );
    assert.equal(new Set(xs).size, 5);
    assert.equal(new Set(picture.nodes.map((one) => one.y)).size, 1);
  });

  test("puts what branches around what it comes from", () => {
    const picture = layoutChain({
      nodes: [node("a", 0), node("b", 1), node("c", 1), node("d", 2)],
      edges: [edge("a", "b"), edge("a", "c"), edge("b", "d"), edge("c", "d")],
    });
    const y = (id) => placeOf(picture, id).y;
    assert.equal(y("a"), (y("b") + y("c")) / 2);
    assert.equal(y("a"), y("d"));
  });

  test("crosses no lines that need not cross", () => {
    const picture = layoutChain({
      nodes: [node("a", 0), node("b", 0), node("x", 1), node("y", 1)],
      edges: [edge("a", "y"), edge("b", "x")],
    });
    const y = (id) => placeOf(picture, id).y;
    assert.equal(y("a") < y("b"), y("y") < y("x"));
  });

  test("leads a long line past the steps between, not through them", () => {
    const picture = layoutChain({
      nodes: [node("a", 0), node("b", 1), node("c", 2)],
      edges: [edge("a", "b"), edge("b", "c"), edge("a", "c")],
    });
    const long = picture.edges.find((one) => one.edge.to === "c" && one.edge.from === "a");
    const b = placeOf(picture, "b");
    const passing = /C[^h]* (\S+)h/.exec(long.line);
    const y = Number(passing[1]);
    assert.ok(y < b.y || y > b.y + NODE.height, `${y} is not inside ${b.y}`);
  });

  test("keeps fifty steps apart and inside, however they are joined", () => {
    for (const perLayer of [1, 3, 7, 50]) {
      const nodes = Array.from({ length: 50 }, (_, at) =>
        node(`n${at}`, Math.floor(at / perLayer)),
      );
      const edges = nodes.flatMap((one, at) => {
        const later = nodes.filter((other) => other.layer > one.layer);
        return later.length ? [edge(one.id, later[(at * 7) % later.length].id)] : [];
      });
      const picture = layoutChain({ nodes, edges });
      assert.deepEqual(overlapping(picture), []);
      assert.equal(picture.nodes.length, 50);
      assert.equal(picture.edges.length, edges.length);
      for (const { x, y } of picture.nodes) {
        assert.ok(x >= 0 && x + NODE.width <= picture.width);
        assert.ok(y >= 0 && y + NODE.height <= picture.height);
      }
      for (const { line: path, head } of picture.edges) {
        assert.ok(numbers(path + head).every(Number.isFinite));
      }
    }
  });

  test("begins each line at one step and ends it at the other", () => {
    const picture = layoutChain(line(2));
    const [a, b] = [placeOf(picture, "n0"), placeOf(picture, "n1")];
    const { line: path, head } = picture.edges[0];
    assert.deepEqual(numbers(path).slice(0, 2), [a.x + NODE.width, a.y + NODE.height / 2]);
    assert.deepEqual(numbers(head).slice(2, 4), [b.x - 1, b.y + NODE.height / 2]);
  });

  test("bears lines to nowhere, backwards and to itself, and gaps between layers", () => {
    const picture = layoutChain({
      nodes: [node("a", 3), node("b", 9)],
      edges: [edge("a", "b"), edge("b", "a"), edge("a", "a"), edge("a", "gone")],
    });
    assert.equal(picture.edges.length, 2);
    assert.deepEqual(overlapping(picture), []);
    assert.ok(picture.width < 3 * NODE.width);
  });
});

describe("a chain's list", () => {
  test("tells the same: each step, its state, and what it follows", () => {
    const graph = {
      nodes: [node("c", 2), node("a", 1), node("b", 1)],
      edges: [edge("a", "c"), edge("b", "c"), edge("gone", "c")],
    };
    assert.deepEqual(
      steps(graph).map((step) => [step.node.id, step.depth, step.after.map((one) => one.node.id)]),
      [
        ["a", 0, []],
        ["b", 0, []],
        ["c", 1, ["a", "b"]],
      ],
    );
  });

  test("has its tasks as they are now", () => {
    const graph = { nodes: [node("a", 0), node("b", 1, { kind: "trigger" })], edges: [] };
    const task = { state: "failed", seat: "planner" };
    const now = asOfNow(graph, () => task);
    assert.deepEqual(
      now.nodes.map((one) => [one.state, one.seat]),
      [
        ["failed", "planner"],
        ["done", undefined],
      ],
    );
    assert.deepEqual(
      asOfNow(graph, () => undefined),
      graph,
    );
  });
});

describe("a title", () => {
  test("that fits is left alone, one that does not is cut with dots", () => {
    assert.equal(cut("short", 10), "short");
    assert.equal(cut("two  words\nand lines", 30), "two words and lines");
    const long = cut("a rather long title that goes on", 10);
    assert.match(long, /^a rather.*…$/);
    assert.ok(long.length < 24);
    assert.equal(cut("任务".repeat(10), 10), "任务任务任务任务任…");
    assert.equal(cut("任务任务任务任务任务", 10), "任务任务任务任务任务");
  });

  test("never cuts a letter in two", () => {
    assert.equal(cut("🚀".repeat(20), 5).isWellFormed(), true);
  });
});
