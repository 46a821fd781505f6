/** Theme, language, leaving. */

import { html, icon } from "../core/html.js";
import { t } from "../core/i18n.js";

const THEMES = /** @type {const} */ (["system", "light", "dark"]);
const LANGUAGES = /** @type {const} */ ([
  ["en", "English", "en"],
  ["zh", "中文", "zh-CN"],
]);

/**
 * @param {import("../core/state-types.js").State} state
 * @param {import("../core/actions.js").Actions} act
 */
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

/**
 * @param {import("../core/state-types.js").State} state
 * @param {import("../core/actions.js").Actions} act
 */
export function settingsMenu(state, act) {
  return html`<div id="settings" class="popover menu" popover aria-label=${t("settings.title")}>
    <p class="menu-title">${t("settings.theme")}</p>
    ${settingsRows(state, act)}
    <a class="button menu-item" href="#/engines" @click=${closeMenu}>
      ${icon("settings")}${t("engines.open")}
    </a>
    <a class="button menu-item" href="#/usage" @click=${closeMenu}>
      ${icon("list")}${t("usage.open")}
    </a>
    <button type="button" class="menu-item" @click=${() => act.logout()}>
      ${icon("leave")}${t("settings.logout")}
    </button>
    <p class="menu-foot">mimikit ${state.version}</p>
  </div>`;
}
