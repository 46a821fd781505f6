/** Theme and language: before one has logged in, too. */

import { html, icon } from "../html.js";
import { t } from "../i18n.js";

const THEMES = /** @type {const} */ (["system", "light", "dark"]);
const LANGUAGES = /** @type {const} */ ([
  ["en", "English", "en"],
  ["zh", "中文", "zh-CN"],
]);

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
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
