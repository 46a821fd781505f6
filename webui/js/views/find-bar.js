/** Looking for words in the conversation. */

import { matches } from "../finding.js";
import { html, icon, live, nothing } from "../html.js";
import { t } from "../i18n.js";

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 * @param {import("../select.js").Entry[]} entries
 */
export function findBarView(state, act, entries) {
  const { finding } = state;
  if (!finding) return nothing;
  const found = matches(entries, state.jobs, finding.query);
  const at = finding.at === null ? 0 : found.indexOf(finding.at) + 1;
  const words = found.length
    ? t("history.place", { at, n: found.length })
    : t(finding.query.trim() ? "history.none" : "history.hint");
  return html`<div class="find-bar" role="search">
    ${icon("search")}
    <label class="sr-only" for="find-text">${t("history.label")}</label>
    <input
      id="find-text"
      type="text"
      autocomplete="off"
      placeholder=${t("history.label")}
      .value=${live(finding.query)}
      @input=${(/** @type {any} */ event) => act.cards.find(event.target.value)}
      @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, act)}
    />
    <span class="find-count muted" role="status">${words}</span>
    ${finding.busy ? html`<span class="spinner"></span>` : nothing}
    ${stepButton("up", -1, Boolean(found.length || state.before), act)}
    ${stepButton("down", 1, found.length > 0, act)}
    <button
      type="button"
      class="icon-button small"
      aria-label=${t("history.close")}
      title=${t("history.close")}
      @click=${() => act.cards.stopFinding()}
    >
      ${icon("x")}
    </button>
  </div>`;
}

/**
 * @param {"up" | "down"} name
 * @param {1 | -1} way
 * @param {boolean} may
 * @param {import("../actions.js").Actions} act
 */
function stepButton(name, way, may, act) {
  return html`<button
    type="button"
    class="icon-button small"
    ?disabled=${!may}
    aria-label=${t(`history.${name}`)}
    title=${t(`history.${name}`)}
    @click=${() => void act.cards.step(way)}
  >
    ${icon(name)}
  </button>`;
}

/** @param {KeyboardEvent} event @param {import("../actions.js").Actions} act */
function onKey(event, act) {
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key === "Enter") {
    event.preventDefault();
    void act.cards.step(event.shiftKey ? 1 : -1);
  } else if (event.key === "Escape") {
    event.preventDefault(); // it closes this, and nothing below
    act.cards.stopFinding();
  }
}
