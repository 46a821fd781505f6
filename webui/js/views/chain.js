/** A chain as a picture, and the same as a list: who reads either misses nothing. */

import { SPRITE, html, icon, nothing, svg } from "../html.js";
import { NODE, asOfNow, cut, layoutChain, steps } from "../chain.js";
import { language, t } from "../i18n.js";
import { said, stateIcon, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").Graph} Graph
 * @typedef {import("../types.js").GraphNode} GraphNode
 * @typedef {import("../chain.js").PlacedNode} PlacedNode
 * @typedef {import("../chain.js").PlacedEdge} PlacedEdge
 * @typedef {import("../actions.js").Actions} Actions
 */

/** Room for words in a step, in letters as wide as high. */
const TITLE_ROOM = 9;
const STATE_ROOM = 10.2;

/**
 * @param {Graph} graph
 * @param {string} own the step one looks at
 * @param {State} state
 * @param {Actions} act
 */
export function chainView(graph, own, state, act) {
  if (graph.nodes.length < 2) return nothing;
  const shown = asOfNow(graph, (id) => taskOf(id, state));
  const listed = state.chainListed;
  return html`<section class="chain">
    <div class="chain-head">
      <h3>${t("chain.title")}</h3>
      <button
        type="button"
        class="link"
        aria-pressed=${listed ? "true" : "false"}
        @click=${() => act.listChain(!listed)}
      >
        ${icon("list")}${t("chain.list")}
      </button>
    </div>
    ${listed ? nothing : pictureView(shown, own)} ${listView(shown, own, listed)}
  </section>`;
}

/** @param {string} id @param {State} state */
function taskOf(id, state) {
  return state.tasks[id] ?? state.detail?.trace.find((task) => task.id === id);
}

// --- the picture

/** @type {{graph: Graph | null, picture: import("../chain.js").Picture | null}} */
let last = { graph: null, picture: null };

/** @param {Graph} graph  The page is drawn each second; a picture is laid out when it changes. */
function pictureOf(graph) {
  const same = JSON.stringify(graph) === JSON.stringify(last.graph);
  if (!same || !last.picture) last = { graph, picture: layoutChain(graph) };
  return /** @type {import("../chain.js").Picture} */ (last.picture);
}

/** @param {Graph} graph @param {string} own */
function pictureView(graph, own) {
  const { width, height, nodes, edges } = pictureOf(graph);
  return html`<div class="chain-box table-box" id="chain" data-own=${own}>
    <svg
      class="chain-picture"
      role="group"
      aria-label=${t("chain.picture", { n: nodes.length })}
      width=${width}
      height=${height}
      viewBox="0 0 ${width} ${height}"
    >
      <g aria-hidden="true">${edges.map((edge) => edgeView(edge))}</g>
      ${nodes.map((node) => nodeView(node, own))}
    </svg>
  </div>`;
}

/** @param {PlacedEdge} placed */
function edgeView({ edge, line, head }) {
  const words = said(edge.words);
  return svg`<g class="chain-edge">
    ${words ? svg`<title>${words}</title>` : nothing}
    <path class="chain-reach" d=${line}></path>
    <path class="chain-line" d=${line}></path>
    <path class="chain-tip" d=${head}></path>
  </g>`;
}

/** @param {GraphNode} node */
const address = (node) => (node.kind === "trigger" ? `#/trigger/${node.id}` : `#/task/${node.id}`);

/** @param {GraphNode} node  What it is and how it is with it: `trigger · waiting`. */
function standing(node) {
  const kind = node.seat === "planner" ? t("seat.planner") : t(`chain.${node.kind}`);
  return `${kind} · ${word("state", node.state)}`;
}

/** @param {PlacedNode} placed @param {string} own */
function nodeView({ node, x, y }, own) {
  const title = node.title || node.id;
  const isOwn = node.id === own;
  return svg`<a
    class="chain-node is-${node.kind} state-${node.state} ${isOwn ? "is-own" : ""}"
    id="step-${node.id}"
    href=${address(node)}
    aria-label="${title} — ${standing(node)}"
    aria-current=${isOwn ? "true" : "false"}
    transform="translate(${x} ${y})"
  >
    <title>${title}</title>
    <rect width=${NODE.width} height=${NODE.height} rx=${node.kind === "trigger" ? 25 : 9}></rect>
    <g class="icon state-mark" transform="translate(21 25)">
      <use href="${SPRITE}#s-${node.state}" x="-10" y="-10" width="20" height="20"></use>
    </g>
    <text class="chain-name" x="39" y="22">${cut(title, TITLE_ROOM)}</text>
    <text class="chain-state" x="39" y="38">${cut(standing(node), STATE_ROOM)}</text>
  </a>`;
}

// --- the list

/** @param {Graph} graph @param {string} own @param {boolean} listed */
function listView(graph, own, listed) {
  return html`<ol class="trace" aria-label=${t("chain.title")} ?hidden=${!listed}>
    ${steps(graph).map(({ node, depth, after }) => {
      const isOwn = node.id === own;
      return html`<li class="depth-${Math.min(depth, 4)}">
        <a href=${address(node)} aria-current=${isOwn ? "true" : "false"}
          >${stateIcon(node.state)}<span class="row-title" title=${node.title || node.id}
            >${node.title || node.id}</span
          ><span class="trace-seat">${standing(node)}</span></a
        >
        ${after.length ? html`<p class="trace-after">${after.map(afterView).join(joint())}</p>` : nothing}
      </li>`;
    })}
  </ol>`;
}

const joint = () => (language() === "zh" ? "；" : "; ");

/** @param {{node: GraphNode, edge: import("../types.js").GraphEdge}} after */
function afterView({ node, edge }) {
  const title = node.title || node.id;
  const words = said(edge.words);
  return words ? t("chain.afterWhy", { title, words }) : t("chain.after", { title });
}
