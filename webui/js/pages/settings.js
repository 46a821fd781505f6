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
  const theme = (/** @type {State["theme"]} */ name) => {
    const words = t(`theme.${name}`);
    const more = { look: "", named: words, title: words, pressed: state.theme === name };
    return button(html`${icon(name)}<span>${words}</span>`, () => act.setTheme(name), more);
  };
  return html`
    <div class="choice" role="group" aria-label=${t("settings.theme")}>${THEMES.map(theme)}</div>
    <div class="choice" role="group" aria-label=${t("settings.language")}>
      ${LANGUAGES.map(([language, name, tag]) =>
        button(html`<span lang=${tag}>${name}</span>`, () => act.setLanguage(language), {
          look: "",
          pressed: state.language === language,
        }),
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
  const { notifying: pressed, version } = state;
  const notify = { sign: pressed ? "check" : "bell", look: "menu-item", pressed };
  return html`<div id="settings" class="popover menu" popover aria-label=${t("settings.title")}>
    <p class="menu-title">${t("settings.theme")}</p>
    ${settingsRows(state, act)}
    ${"Notification" in globalThis ? button(t("attention.toggle"), () => act.toggleNotifying(), notify) : nothing}
    ${menuLink("#/engines", "settings", t("engines.open"))}
    ${menuLink("#/settings", "bell", t("life.open"))}
    ${menuLink("#/usage", "list", t("usage.open"))}
    ${button(t("settings.logout"), () => act.logout(), { sign: "leave", look: "menu-item" })}
    <p class="menu-foot">mimikit ${version}</p>
  </div>`;
}
