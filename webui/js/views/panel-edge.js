/** The edge between chat and side panel: it is drawn, or moved by keys. */

import { html } from "../html.js";
import { t } from "../i18n.js";
import { LEAST, applyWidth, fitting, mostOf, widthBy } from "../panel-size.js";

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
export function panelEdge({ panelWidth }, act) {
  const room = document.documentElement.clientWidth;
  const now = panelWidth === null ? ownWidth() : fitting(panelWidth, room);
  return html`<div
    class="panel-edge"
    role="separator"
    tabindex="0"
    aria-orientation="vertical"
    aria-controls="panel"
    aria-label=${t("panel.edge")}
    aria-valuenow=${now}
    aria-valuemin=${LEAST}
    aria-valuemax=${mostOf(room)}
    title=${t("panel.edgeHint")}
    @pointerdown=${(/** @type {PointerEvent} */ event) => drag(event, act)}
    @dblclick=${() => act.setPanelWidth(null)}
    @keydown=${(/** @type {KeyboardEvent} */ event) => {
      const width = widthBy(event.key, ownWidth(), room);
      if (width === undefined) return;
      event.preventDefault();
      act.setPanelWidth(width);
    }}
  ></div>`;
}

function ownWidth() {
  return Math.round(document.getElementById("panel")?.offsetWidth ?? LEAST);
}

/** @param {PointerEvent} event @param {import("../actions.js").Actions} act */
function drag(event, act) {
  const edge = event.currentTarget;
  if (!(edge instanceof HTMLElement) || event.button) return;
  edge.setPointerCapture(event.pointerId);
  const { right, width: room } = document.documentElement.getBoundingClientRect();
  const grip = event.clientX - (right - ownWidth());
  /** @type {number | null} */
  let width = null;
  const move = (/** @type {PointerEvent} */ moved) => {
    width = fitting(right - moved.clientX + grip, room);
    applyWidth(width);
  };
  const end = () => {
    edge.removeEventListener("pointermove", move);
    if (width !== null) act.setPanelWidth(width);
  };
  edge.addEventListener("pointermove", move);
  edge.addEventListener("lostpointercapture", end, { once: true });
}
