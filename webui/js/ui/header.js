/** The top line: where we are, whether we are connected, settings. */

import { html, icon, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { placeOf } from "../core/route.js";
import { totalOf } from "../core/jobs.js";
import { settingsMenu } from "../pages/settings.js";

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
  const isOpen = state.panel === "side";
  const label = t(isOpen ? "panel.hide" : "panel.show");
  return html`<button
    type="button"
    class="icon-button"
    aria-expanded=${isOpen ? "true" : "false"}
    aria-controls="panel"
    aria-label=${label}
    title=${label}
    @click=${() => act.layPanel(isOpen ? "closed" : "side")}
  >
    ${icon("panel")}
  </button>`;
}

/** @param {State} state  The places of the page, for the header and for the side panel. */
export function places(state) {
  const view = placeOf(state.route);
  const current = state.wide && view === "chat" ? "home" : view;
  const busy = totalOf(state.totals, "live");
  /** @type {[string, string, string][]} */
  const all = [
    ["chat", "#/", "chat"],
    ["home", "#/home", "mark"],
    ["tasks", "#/tasks", "tasks"],
    ["triggers", "#/triggers", "trigger"],
    ["memory", "#/memory", "memory"],
  ];
  return html`<nav class="places" aria-label=${t("nav.label")}>
    ${all
      .filter(([name]) => !(state.wide && name === "chat"))
      .map(
        ([name, href, sign]) =>
          html`<a href=${href} aria-current=${current === name ? "page" : "false"}
            >${icon(sign)}<span class="place-name">${t(`nav.${name}`)}</span>${
              name === "tasks" && busy
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
