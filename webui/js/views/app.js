/** The whole page. */

import { html, nothing } from "../html.js";
import { t } from "../i18n.js";
import { placeOf } from "../route.js";
import { dropView } from "./attachments.js";
import { bannersView, noticesView } from "./banners.js";
import { chatView } from "./chat.js";
import { headerView, placesView } from "./header.js";
import { loginView } from "./login.js";
import { sheetView } from "./message-tools.js";
import { panelView } from "./panel.js";
import { loading } from "./parts.js";

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
export function appView(state, act) {
  if (state.session === "checking" && state.load !== "ready") {
    return html`<main class="start">${loading(t("chat.loading"))}</main>`;
  }
  if (state.session === "out") return loginView(state, act);
  const layout = state.wide ? (state.panelOpen ? (state.panelFull ? "is-full" : "is-split") : "is-wide") : "is-narrow";
  const reads = placeOf(state.route) === "memory"; // texts want a wider panel than lists
  return html`<div class="app ${layout} ${reads ? "is-reading" : ""}">
    <button type="button" class="skip" @click=${() => act.hands.focusComposer()}>
      ${t("nav.skip")}
    </button>
    ${headerView(state, act)} 
    <div class="news">${bannersView(state, act)} ${noticesView(state, act)}</div>
    <main class="areas">${chatView(state, act)} ${panelView(state, act)}</main>
    ${state.wide ? nothing : placesView(state)}
    ${sheetView(state, act)} ${dropView(state)}
  </div>`;
}
