/** Under a reply: what memory its turn was given. */

import { html, icon, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { LONG_TERM, piecesOf, placeOfHit } from "./memory.js";
import { hashOf } from "../core/route.js";
import { dayWords } from "./memory-view.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/types.js").Message} Message
 * @typedef {import("../core/state-types.js").TurnHits} TurnHits
 * @typedef {import("../core/actions.js").Actions} Actions
 */

/** @param {Message} message @param {State} state @param {Actions} act */
export function hitsButton({ role, turnId, memory }, state, act) {
  if (role !== "agent" || !memory || !turnId) return nothing;
  const open = Boolean(state.hits[turnId]?.open);
  return html`<button
    type="button"
    class="quiet"
    aria-expanded=${open ? "true" : "false"}
    aria-controls="hits-${turnId}"
    @click=${() => act.memory.toggleHits(turnId)}
  >
    ${icon("memory")}${tn("hits.count", memory)}
  </button>`;
}

/** @param {Message} message @param {State} state @param {Actions} act */
export function hitsView({ role, turnId, memory }, state, act) {
  if (role !== "agent" || !memory || !turnId) return nothing;
  const known = state.hits[turnId];
  return html`<div id="hits-${turnId}" ?hidden=${!known?.open}>
    ${known?.open ? openView(turnId, known, state, act) : nothing}
  </div>`;
}

/** @param {string} turnId @param {TurnHits} known @param {State} state @param {Actions} act */
function openView(turnId, known, state, act) {
  if (known.load === "failed") {
    return html`<p class="hits-told">
      ${t("hits.failed")}
      <button type="button" class="link" @click=${() => act.memory.loadHits(turnId)}>
        ${icon("retry")}${t("load.again")}
      </button>
    </p>`;
  }
  if (known.load !== "ready") {
    return html`<p class="hits-told" role="status">
      <span class="spinner"></span>${t("hits.loading")}
    </p>`;
  }
  if (!known.hits.length) return html`<p class="hits-told">${t("hits.none")}</p>`;
  return html`<ul class="hits" aria-label=${t("hits.title")}>
    ${known.hits.map((hit) => hitView(hit, state))}
  </ul>`;
}

/** @param {TurnHits["hits"][number]} hit @param {State} state */
function hitView({ source, text, line, day, kind }, state) {
  const place = placeOfHit({ source, kind: kind ?? "memory", line: line ?? 0 });
  const name = source === LONG_TERM ? t("memory.longTerm") : source;
  const plain = piecesOf(text ?? "", [])
    .map((piece) => piece.text)
    .join("")
    .trim();
  return html`<li>
    <p class="hits-head">
      ${place && "view" in place ? html`<a href=${hashOf(place)}>${name}</a>` : name}
      ${day ? html`<span class="muted">${dayWords(day, state)}</span>` : nothing}
    </p>
    ${plain ? html`<p class="hits-text">${plain}</p>` : nothing}
  </li>`;
}
