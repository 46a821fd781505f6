/** What this browser can do for its reader: tell while hidden, and be an app. */

import { html, icon, nothing } from "../html.js";
import { t } from "../i18n.js";

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
export function deviceRows({ notify, install }, act) {
  const closed = notify === "insecure" || notify === "denied";
  const installs = install !== "none";
  return html`<div class="device">
    <button
      type="button"
      class="menu-item device-switch"
      role="switch"
      aria-checked=${notify === "on" ? "true" : "false"}
      ?disabled=${closed}
      aria-describedby=${closed ? "notify-hint" : nothing}
      @click=${() => act.hands.toggleNotify()}
    >
      ${icon("bell")}<span class="device-name">${t("notify.row")}</span><span class="switch" aria-hidden="true"></span>
    </button>
    ${closed ? html`<p class="device-hint" id="notify-hint">${t(`notify.${notify}`)}</p>` : nothing}
    ${
      installs
        ? html`<button
            type="button"
            class="menu-item"
            ?disabled=${install === "insecure"}
            aria-describedby=${install === "insecure" ? "install-hint" : nothing}
            @click=${() => act.hands.install()}
          >
            ${icon("install")}${t("install.row")}
          </button>`
        : nothing
    }
    ${install === "insecure" ? html`<p class="device-hint" id="install-hint">${t("install.insecure")}</p>` : nothing}
  </div>`;
}
