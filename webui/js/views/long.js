/** A text that is long: its beginning, and all of it when one asks. */

import { html, icon, nothing } from "../html.js";
import { isLong, sizeOf } from "../cards.js";
import { language, t } from "../i18n.js";
import { fileSize } from "../time.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 */

/**
 * @param {unknown} body the text as it is shown
 * @param {import("../types.js").Message} message
 * @param {State} state
 * @param {Actions} act
 * @param {boolean} [isOutput]
 */
export function longView(body, message, state, act, isOutput = false) {
  if (!isLong(message.text, isOutput)) return body;
  const key = `whole-${message.id}`;
  const open = Boolean(state.opened[key]);
  return html`<div class="long ${open ? "is-open" : ""} ${isOutput ? "is-output" : ""}">
    <div class="long-text" id="long-${message.id}">${body}</div>
    <button
      type="button"
      class="link long-button"
      aria-expanded=${open ? "true" : "false"}
      aria-controls="long-${message.id}"
      @click=${(/** @type {Event} */ event) => act.cards.openLong(key, !open, event)}
    >
      ${icon("chevron-down")}${open ? t("long.less") : allOf(message.text)}
    </button>
  </div>`;
}

/** @param {string} text */
function allOf(text) {
  return html`${t("long.all")} <span class="muted">· ${fileSize(sizeOf(text), language())}</span>`;
}

/** @param {import("../types.js").Message} message @param {State} state  What of it a drawing depends on. */
export const isWhole = (message, state) => state.opened[`whole-${message.id}`] ?? nothing;
