/** The top line: whether we are connected, settings; and the places of the page. */

import { html, icon, nothing } from "../html.js";
import { t, tn } from "../i18n.js";
import { jobOver } from "../job-state.js";
import { capsOf, isMac } from "../keys.js";
import { placeOf } from "../route.js";
import { queueLength } from "../select.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function headerView(state, act) {
  return html`<header class="bar">
    <h1 class="brand">
      <a href="#/" aria-label="mimikit">${icon("mark")}<span>mimikit</span></a>
    </h1>
    <span class="bar-space"></span>
    ${searchButton(act)} ${connectionView(state)} ${state.wide ? wideButtons(state, act) : nothing}
  </header>`;
}

/** @param {State} state @param {Actions} act  What stands at the bottom of a narrow screen. */
function wideButtons(state, act) {
  const title = t("settings.title");
  const current = state.panelOpen && placeOf(state.route) === "settings";
  return html`${panelToggle(state, act)}
    <a
      class="button icon-button"
      href="#/settings"
      aria-current=${current ? "page" : "false"}
      aria-label=${title}
      title=${title}
      >${icon("settings")}</a
    >`;
}

/** @param {Actions} act  The palette: by this button what Ctrl+K does. */
function searchButton(act) {
  return html`<button
    type="button"
    class="finder"
    aria-haspopup="dialog"
    aria-keyshortcuts="Control+K Meta+K"
    aria-label=${t("palette.title")}
    title=${t("palette.title")}
    @click=${() => act.hands.openPalette()}
  >
    ${icon("search")}<span>${t("palette.open")}</span><kbd>${capsOf("Mod+k", isMac()).join(" ")}</kbd>
  </button>`;
}

/** @param {State} state @param {Actions} act */
function panelToggle(state, act) {
  const label = t(state.panelOpen ? "panel.hide" : "panel.show");
  return html`<button
    type="button"
    class="icon-button"
    aria-expanded=${state.panelOpen ? "true" : "false"}
    aria-controls="panel"
    aria-label=${label}
    title=${label}
    @click=${() => act.togglePanel()}
  >
    ${icon("panel")}
  </button>`;
}

/** Each with its address and its sign. */
const PLACES = /** @type {const} */ ([
  ["chat", "#/", "chat"],
  ["home", "#/home", "home"],
  ["tasks", "#/tasks", "tasks"],
  ["triggers", "#/triggers", "trigger"],
  ["memory", "#/memory", "memory"],
  ["more", "#/settings", "more"],
]);

/**
 * The places of the page: on top of the side panel, where the chat is always there and the settings
 * have their sign above; on a narrow screen all of them, at the bottom.
 *
 * @param {State} state
 */
export function placesView(state) {
  const place = placeOf(state.route);
  const shown = place === "settings" ? "more" : place;
  const current = state.wide && state.route.view === "chat" ? "home" : shown;
  const here = PLACES.filter(([name]) => !state.wide || !["chat", "more"].includes(name));
  return html`<nav class="places" aria-label=${t("nav.label")}>
    ${here.map(
      ([name, href, sign]) =>
        html`<a href=${href} aria-current=${current === name ? "page" : "false"}
          ><span class="place-sign">${icon(sign)}${badge(name, state)}</span
          ><span class="place-name">${t(`nav.${name}`)}</span></a
        >`,
    )}
  </nav>`;
}

/** @param {string} name @param {State} state  How much waits there for its user, or goes on. */
function badge(name, state) {
  if (name === "home") {
    const needs = state.home.view?.needs.length ?? 0;
    return needs ? countView(needs, tn("nav.needs", needs), "is-urgent") : nothing;
  }
  if (name !== "tasks") return nothing;
  const busy = queueLength(state, Object.values(state.jobs).filter((job) => !jobOver(job)).length);
  return busy ? countView(busy, tn("nav.busy", busy), "") : nothing;
}

/** @param {number} many @param {string} label @param {string} tone */
function countView(many, label, tone) {
  return html`<span class="count ${tone}" role="img" aria-label=${label}
    >${many > 99 ? "99+" : many}</span
  >`;
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
