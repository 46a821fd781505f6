/**
 * Where the steps of a chain and the lines between them stand in its picture. Pure.
 *
 * Layers go from left to right. A line that passes a layer gets a place in it, like a step, so that
 * it runs between steps and not through them. Sweeps over the layers put each near what it is joined
 * to; then all are spread out.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./types.js").GraphEdge} GraphEdge
 *
 * @typedef {{node: GraphNode, x: number, y: number}} PlacedNode
 * @typedef {{edge: GraphEdge, line: string, head: string}} PlacedEdge paths of SVG
 * @typedef {{width: number, height: number, nodes: PlacedNode[], edges: PlacedEdge[]}} Picture
 *
 * @typedef {object} Place a step, or the point at which a line passes a layer
 * @property {GraphNode | null} node
 * @property {number} layer
 * @property {number} size its height
 * @property {number} y its middle
 * @property {Place[]} before what it is joined to on the left
 * @property {Place[]} after and on the right
 */

export const NODE = { width: 164, height: 50 };
const GAP = { x: 44, y: 16 };
const EDGE = 6;
const PASSING = 8;
const SWEEPS = 4;
const HEAD = 7;

/** @param {Graph} graph @returns {Picture} */
export function layoutChain(graph) {
  const layers = layersOf(graph);
  const places = new Map(layers.flat().map((place) => [place.node?.id ?? "", place]));
  const ways = graph.edges.flatMap((edge) => {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    return from && to && from !== to ? [{ edge, way: joined(from, to, layers) }] : [];
  });
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    order(layers, sweep % 2 === 0 ? "before" : "after");
  }
  spread(layers);
  const height = raise(layers);
  const nodes = layers.flat().flatMap((place) => (place.node ? [placed(place.node, place)] : []));
  const width = layers.length * (NODE.width + GAP.x) - GAP.x + 2 * EDGE;
  const edges = ways.map(({ edge, way }) => ({ edge, ...drawn(way) }));
  return { width: Math.max(0, width), height, nodes, edges };
}

/** @param {Graph} graph @returns {Place[][]} */
function layersOf({ nodes }) {
  const numbers = [...new Set(nodes.map((node) => node.layer))].sort((a, b) => a - b);
  return numbers.map((number, layer) =>
    nodes
      .filter((node) => node.layer === number)
      .map((node) => ({ node, layer, size: NODE.height, y: 0, before: [], after: [] })),
  );
}

/** @param {Place} from @param {Place} to @param {Place[][]} layers @returns {Place[]} the way it takes */
function joined(from, to, layers) {
  const way = [from];
  for (let layer = from.layer + 1; layer < to.layer; layer += 1) {
    /** @type {Place} */
    const point = { node: null, layer, size: PASSING, y: 0, before: [], after: [] };
    layers[layer].push(point);
    way.push(point);
  }
  way.push(to);
  if (to.layer <= from.layer) return way; // backwards: it is drawn, but moves nobody
  for (const [at, place] of way.entries()) {
    if (at === 0) continue;
    place.before.push(way[at - 1]);
    way[at - 1].after.push(place);
  }
  return way;
}

/** @param {Place[][]} layers @param {"before" | "after"} side  Each near the middle of its neighbours. */
function order(layers, side) {
  const ordered = side === "before" ? layers : layers.toReversed();
  for (const layer of ordered) {
    const ranks = new Map(
      layer.map((place, at) => {
        const near = place[side];
        const sum = near.reduce((all, one) => all + layers[one.layer].indexOf(one), 0);
        return [place, near.length ? sum / near.length : at];
      }),
    );
    layer.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
  }
}

/** @param {Place[][]} layers  Heights: first side by side, then drawn towards their neighbours. */
function spread(layers) {
  for (const layer of layers)
    settle(
      layer,
      layer.map(() => 0),
    );
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 === 0 ? "before" : "after";
    for (const layer of side === "before" ? layers : layers.toReversed()) {
      const wanted = layer.map((place) => {
        const near = place[side];
        return near.length ? near.reduce((sum, one) => sum + one.y, 0) / near.length : place.y;
      });
      settle(layer, wanted);
    }
  }
}

/**
 * As near as may be to where they want to be, without touching: the mean of pushing them down from
 * the top and pushing them up from the bottom keeps every distance.
 *
 * @param {Place[]} layer
 * @param {number[]} wanted
 */
function settle(layer, wanted) {
  const apart = (/** @type {number} */ at) => (layer[at - 1].size + layer[at].size) / 2 + GAP.y;
  const down = [...wanted];
  const up = [...wanted];
  for (let at = 1; at < layer.length; at += 1)
    down[at] = Math.max(down[at], down[at - 1] + apart(at));
  for (let at = layer.length - 1; at > 0; at -= 1)
    up[at - 1] = Math.min(up[at - 1], up[at] - apart(at));
  for (const [at, place] of layer.entries()) place.y = (down[at] + up[at]) / 2;
}

/** @param {Place[][]} layers @returns {number} the height of all, which now begins at the top */
function raise(layers) {
  const all = layers.flat();
  if (!all.length) return 0;
  const top = Math.min(...all.map((place) => place.y - place.size / 2)) - EDGE;
  for (const place of all) place.y = Math.round(place.y - top);
  return Math.ceil(Math.max(...all.map((place) => place.y + place.size / 2))) + EDGE;
}

/** @param {number} layer */
const left = (layer) => EDGE + layer * (NODE.width + GAP.x);

/** @param {GraphNode} node @param {Place} place @returns {PlacedNode} */
function placed(node, place) {
  return { node, x: left(place.layer), y: place.y - NODE.height / 2 };
}

/** @param {Place[]} way @returns {{line: string, head: string}} */
function drawn(way) {
  const begin = way[0];
  const end = way[way.length - 1];
  let x = left(begin.layer) + NODE.width;
  let line = `M${x} ${begin.y}`;
  for (const place of way.slice(1)) {
    const to = left(place.layer) - (place === end ? HEAD - 1 : 0);
    const bend = Math.max(GAP.x / 2, Math.abs(to - x) / 2);
    const from = way[way.indexOf(place) - 1];
    line += `C${x + bend} ${from.y} ${to - bend} ${place.y} ${to} ${place.y}`;
    if (place !== end) line += `h${NODE.width}`;
    x = left(place.layer) + NODE.width;
  }
  const tip = left(end.layer) - 1;
  return { line, head: `M${tip - HEAD} ${end.y - 4}L${tip} ${end.y}L${tip - HEAD} ${end.y + 4}Z` };
}

/**
 * A graph with its tasks as they are now: how they stand, and who does them.
 *
 * @param {Graph} graph
 * @param {(id: string) => import("./types.js").Task | undefined} taskOf
 * @returns {Graph}
 */
export function asOfNow(graph, taskOf) {
  const nodes = graph.nodes.map((node) => {
    const task = node.kind === "task" ? taskOf(node.id) : undefined;
    return task ? { ...node, state: task.state, seat: task.seat } : node;
  });
  return { ...graph, nodes };
}

/**
 * The steps in the order in which a list tells them, each with what it follows.
 *
 * @param {Graph} graph
 * @returns {{node: GraphNode, depth: number, after: {node: GraphNode, edge: GraphEdge}[]}[]}
 */
export function steps(graph) {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const first = Math.min(...graph.nodes.map((node) => node.layer));
  return graph.nodes
    .toSorted((a, b) => a.layer - b.layer)
    .map((node) => ({
      node,
      depth: node.layer - first,
      after: graph.edges.flatMap((edge) => {
        const before = edge.to === node.id ? nodes.get(edge.from) : undefined;
        return before ? [{ node: before, edge }] : [];
      }),
    }));
}

/** Of the width of a full square letter (one of Chinese), by kind of letter. */
const WIDTHS = /** @type {[RegExp, number][]} */ ([
  [
    /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/,
    1,
  ],
  [/\p{Extended_Pictographic}/u, 1.2],
  [/[mwMW@%&]/, 0.86],
  [/[A-Z0-9_=+<>~$#]/, 0.62],
  [/[iljtfrI.,:;'|!()[\] ]/, 0.32],
]);

/** @param {string} letter */
const widthOf = (letter) => WIDTHS.find(([kind]) => kind.test(letter))?.[1] ?? 0.54;

/**
 * As much of a text as fits: SVG neither breaks nor cuts a line.
 *
 * @param {string} text
 * @param {number} room in square letters
 */
export function cut(text, room) {
  const letters = [...text.replace(/\s+/g, " ").trim()];
  let width = 0;
  let fits = 0; // letters that leave room for the dots
  for (const [at, letter] of letters.entries()) {
    width += widthOf(letter);
    if (width <= room - 0.9) fits = at + 1;
    if (width > room) return `${letters.slice(0, fits).join("").trimEnd()}…`;
  }
  return letters.join("");
}
