/** The edge of the side panel: dragged, moved by the arrow keys, put back by a double click. */

import { html } from "../core/html.js";
import { t } from "../core/i18n.js";
import { readPref, writePref } from "../core/prefs.js";

/** The narrowest panel, and what the conversation keeps. Units: px. */
const LEAST = 320;
const CHAT = 440;
const STEP = 24;

/** The width of the panel as it is chosen; 0: the default of the style sheet. */
let width = Number(readPref("panelWidth"));

export function applyPanelWidth() {
  const { style } = document.documentElement;
  if (width) style.setProperty("--panel", `${width}px`);
  else style.removeProperty("--panel");
}

/** @param {number} wanted px from the right edge of the window; 0: the default again */
function resize(wanted) {
  width = wanted && Math.round(Math.max(LEAST, Math.min(wanted, innerWidth - CHAT)));
  writePref("panelWidth", width ? String(width) : "");
  applyPanelWidth();
}

const panelWidth = () => document.getElementById("panel")?.offsetWidth ?? LEAST;

/** @param {PointerEvent & {currentTarget: HTMLElement}} event */
function drag({ currentTarget, pointerId, clientX }) {
  if (currentTarget.hasPointerCapture(pointerId)) resize(innerWidth - clientX);
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const by = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  resize(panelWidth() + by);
}

export function panelEdge() {
  const share = Math.round(((width || panelWidth()) / innerWidth) * 100);
  return html`<div
    class="panel-edge"
    role="separator"
    tabindex="0"
    aria-orientation="vertical"
    aria-controls="panel"
    aria-valuenow=${share}
    aria-label=${t("panel.edge")}
    title=${t("panel.edge")}
    @pointerdown=${(/** @type {any} */ event) => event.currentTarget.setPointerCapture(event.pointerId)}
    @pointermove=${drag}
    @keydown=${onKey}
    @dblclick=${() => resize(0)}
  ></div>`;
}
