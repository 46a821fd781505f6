/** The whole page. */

import { html } from "../core/html.js";
import { t } from "../core/i18n.js";
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
  const layout = state.wide ? (state.panel === "side" ? "is-split" : "is-wide") : "is-narrow";
  return html`<div class="app ${layout}">
    <button type="button" class="skip" @click=${() => act.focusComposer()}>
      ${t("nav.skip")}
    </button>
    ${headerView(state, act)} ${bannersView(state, act)}
    <main class="areas">${chatView(state, act)} ${panelView(state, act)}</main>
    ${noticesView(state, act)} ${dialogsView(state, act)}
  </div>`;
}
