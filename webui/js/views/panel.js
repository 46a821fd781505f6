/** The side panel: home, tasks, triggers, memory and settings; on a narrow screen a page of its own. */

import { html, icon, nothing } from "../html.js";
import { t } from "../i18n.js";
import { placeShown } from "../places.js";
import { placesView } from "./header.js";
import { panelEdge } from "./panel-edge.js";
import { emptyState, loading } from "./parts.js";

/** Pages that are a form: their buttons stand at the bottom. */
const FORMS = new Set(["triggerNew", "triggerEdit", "noteNew", "noteEdit"]);

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
export function panelView(state, act) {
  const away = state.wide ? !state.panelOpen : state.route.view === "chat";
  return html`<div class="panel ${away ? "is-away" : ""}" id="panel" ?inert=${away}>
    ${state.wide && !state.panelFull ? panelEdge(state, act) : nothing}
    ${state.wide ? html`<div class="panel-head">${placesView(state)} ${fullButton(state, act)}</div>` : nothing}
    <div
      class="panel-body ${FORMS.has(state.route.view) ? "is-form" : ""}"
      id="panel-body"
      tabindex="0"
      role="region"
      aria-label=${t("panel.title")}
    >
      ${bodyView(state, act)}
    </div>
  </div>`;
}

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
function fullButton({ panelFull }, act) {
  const label = t(panelFull ? "panel.notFull" : "panel.full");
  return html`<button
    type="button"
    class="icon-button small"
    aria-pressed=${panelFull ? "true" : "false"}
    aria-label=${label}
    title=${label}
    @click=${() => act.setFull(!panelFull)}
  >
    ${icon(panelFull ? "not-full" : "full")}
  </button>`;
}

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
function bodyView(state, act) {
  const place = state.places[placeShown(state)];
  if (typeof place === "function") return place(state, act);
  if (place !== "failed") return loading(t("load.place"));
  const again = html`<button type="button" class="small" @click=${() => location.reload()}>
    ${icon("retry")}${t("load.page")}
  </button>`;
  return emptyState(t("load.placeFailed"), t("load.placeFailedText"), again);
}
