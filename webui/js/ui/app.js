/** The whole page. */

import { html } from "../core/html.js";
import { t } from "../core/i18n.js";
import { placeOf } from "../core/route.js";
import { bannersView, noticesView } from "./banners.js";
import { chatView } from "../pages/chat.js";
import { headerView } from "./header.js";
import { loginView } from "./login.js";
import { dialogsView } from "./palette.js";
import { panelView } from "./panel.js";
import { loading } from "./parts.js";

/** @param {State} state @param {Actions} act */
export function appView(state, act) {
  if (state.session === "checking" && state.load !== "ready") {
    return html`<main class="start">${loading(t("chat.loading"))}</main>`;
  }
  if (state.session === "out") return loginView(state, act);
  const layout = state.wide ? (state.panelOpen ? "is-split" : "is-wide") : "is-narrow";
  const reads = placeOf(state.route) === "memory"; // texts want a wider panel than lists
  return html`<div class="app ${layout} ${reads ? "is-reading" : ""}">
    <button type="button" class="skip" @click=${() => act.focusComposer()}>
      ${t("nav.skip")}
    </button>
    ${headerView(state, act)} ${bannersView(state, act)}
    <main class="areas">${chatView(state, act)} ${panelView(state, act)}</main>
    ${noticesView(state, act)} ${dialogsView(state, act)}
  </div>`;
}
