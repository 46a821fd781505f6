/** The top line: where we are, whether we are connected, settings. */

import { html, icon, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { placeOf, PLACES } from "../core/route.js";
import { totalOf } from "../core/jobs.js";
import { settingsMenu } from "../pages/settings.js";
import { iconButton } from "./parts.js";

/** @param {State} state @param {Actions} act */
export function headerView(state, act) {
  return html`<header class="bar">
    <h1 class="brand">
      <a href="#/" aria-label="mimikit">${icon("mark")}<span>mimikit</span></a>
    </h1>
    ${state.wide ? nothing : places(state)}
    <span class="bar-space"></span>
    ${connectionView(state)} ${state.roomy ? panelToggle(state, act) : nothing}
    <button
      type="button"
      class="icon-button"
      popovertarget="settings"
      aria-label=${t("settings.title")}
      title=${t("settings.title")}
    >
      ${icon("settings")}
    </button>
    ${settingsMenu(state, act)}
  </header>`;
}

/** @param {State} state @param {Actions} act */
function panelToggle(state, act) {
  const expanded = state.panel === "side";
  const toggle = () => act.layPanel(expanded ? "closed" : "side");
  const look = { look: "icon-button", expanded, controls: "panel" };
  return iconButton("panel", t(expanded ? "panel.hide" : "panel.show"), toggle, look);
}

/** @param {State} state  The places of the page, for the header and for the side panel. */
export function places(state) {
  const view = placeOf(state.route);
  const current = state.wide && view === "chat" ? "home" : view;
  const busy = totalOf(state.totals, "live");
  const own = PLACES.filter((one) => one.view === one.place && !(state.wide && one.view === "chat"));
  return html`<nav class="places" aria-label=${t("nav.label")}>
    ${own.map(
      ({ place, hash, icon: sign }) =>
        html`<a href=${hash} aria-current=${current === place ? "page" : "false"}
          >${icon(sign)}<span class="place-name">${t(`nav.${place}`)}</span>${
            place === "tasks" && busy
              ? html`<span class="count" aria-label=${tn("nav.busy", busy)}
                  >${busy > 99 ? "99+" : busy}</span
                >`
              : nothing
          }</a
        >`,
    )}
  </nav>`;
}

/** @param {State} state */
function connectionView(state) {
  const { connection } = state;
  const quiet = connection === "online";
  return html`<span
    class="connection is-${connection}"
    role="status"
    title=${t(`connection.${connection}.title`)}
    ><span class="dot"></span
    ><span class=${quiet ? "sr-only" : "connection-word"}
      >${t(`connection.${connection}`)}</span
    ></span
  >`;
}
