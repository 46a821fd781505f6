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
            aria-pressed=${state.theme === theme ? "true" : "false"}
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
            aria-pressed=${state.language === language ? "true" : "false"}
            @click=${() => act.setLanguage(language)}
          >
            <span>${name}</span>
          </button>`,
      )}
    </div>
  `;
}

/** A link inside of the menu leads elsewhere: the menu goes. */
function closeMenu() {
  document.getElementById("settings")?.hidePopover();
}

/** @param {State} state @param {Actions} act */
export function settingsMenu(state, act) {
  return html`<div id="settings" class="popover menu" popover aria-label=${t("settings.title")}>
    <p class="menu-title">${t("settings.theme")}</p>
    ${settingsRows(state, act)}
    ${
      "Notification" in globalThis
        ? html`<button
            type="button"
            class="menu-item"
            aria-pressed=${state.notifying ? "true" : "false"}
            @click=${() => act.toggleNotifying()}
          >
            ${icon(state.notifying ? "check" : "alert")}${t("attention.toggle")}
          </button>`
        : nothing
    }
    <a class="button menu-item" href="#/engines" @click=${closeMenu}>
      ${icon("settings")}${t("engines.open")}
    </a>
    <a class="button menu-item" href="#/usage" @click=${closeMenu}>
      ${icon("list")}${t("usage.open")}
    </a>
    ${button(t("settings.logout"), () => act.logout(), { sign: "leave", look: "menu-item" })}
    <p class="menu-foot">mimikit ${state.version}</p>
  </div>`;
}
