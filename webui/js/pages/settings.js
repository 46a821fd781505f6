/** Theme, language, leaving. */

import { html, icon, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { button } from "../ui/parts.js";

const THEMES = /** @type {const} */ (["system", "light", "dark"]);
const LANGUAGES = /** @type {const} */ ([
  ["en", "English", "en"],
  ["zh", "中文", "zh-CN"],
]);

/** @param {State} state @param {Actions} act */
export function settingsRows(state, act) {
  return html`
    <div class="choice" role="group" aria-label=${t("settings.theme")}>
      ${THEMES.map(
        (theme) =>
          html`<button
            type="button"
            aria-pressed=${state.theme === theme}
            aria-label=${t(`theme.${theme}`)}
            title=${t(`theme.${theme}`)}
            @click=${() => act.setTheme(theme)}
          >
            ${icon(theme)}<span>${t(`theme.${theme}`)}</span>
          </button>`,
      )}
    </div>
    <div class="choice" role="group" aria-label=${t("settings.language")}>
      ${LANGUAGES.map(
        ([language, name, tag]) =>
          html`<button
            type="button"
            lang=${tag}
            aria-pressed=${state.language === language}
            @click=${() => act.setLanguage(language)}
          >
            <span>${name}</span>
          </button>`,
      )}
    </div>
  `;
}

/** @param {string} href @param {string} sign @param {string} label  It leads elsewhere: the menu goes. */
function menuLink(href, sign, label) {
  const leave = () => document.getElementById("settings")?.hidePopover();
  return html`<a class="button menu-item" href=${href} @click=${leave}>${icon(sign)}${label}</a>`;
}

/** @param {State} state @param {Actions} act */
export function settingsMenu(state, act) {
  const sign = state.notifying ? "check" : "alert";
  return html`<div id="settings" class="popover menu" popover aria-label=${t("settings.title")}>
    <p class="menu-title">${t("settings.theme")}</p>
    ${settingsRows(state, act)}
    ${
      "Notification" in globalThis
        ? html`<button
            type="button"
            class="menu-item"
            aria-pressed=${state.notifying}
            @click=${() => act.toggleNotifying()}
          >
            ${icon(sign)}${t("attention.toggle")}
          </button>`
        : nothing
    }
    ${menuLink("#/engines", "settings", t("engines.open"))}
    ${menuLink("#/usage", "list", t("usage.open"))}
    ${button(t("settings.logout"), () => act.logout(), { sign: "leave", look: "menu-item" })}
    <p class="menu-foot">mimikit ${state.version}</p>
  </div>`;
}
