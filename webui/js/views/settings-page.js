/** Everything that is set or looked up now and then. */

import { html, icon } from "../html.js";
import { t } from "../i18n.js";
import { deviceRows } from "./device.js";
import { settingsRows } from "./settings.js";

/** What there is besides, with its sign. */
const ELSEWHERE = /** @type {const} */ ([
  ["engines", "engine"],
  ["channels", "bell"],
  ["usage", "chart"],
  ["logs", "logs"],
  ["backlog", "check"],
]);

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
export function settingsPageView(state, act) {
  return html`<div class="settings-page">
    <h2 tabindex="-1" data-focus>${t("settings.title")}</h2>
    <section>
      <h3>${t("settings.look")}</h3>
      ${settingsRows(state, act)}
    </section>
    <section>
      <ul class="more-list">
        ${ELSEWHERE.map(
          ([name, sign]) =>
            html`<li>
              <a class="more-link" href="#/${name}"
                >${icon(sign)}<span
                  ><span class="more-name">${t(`more.${name}`)}</span
                  ><span class="row-meta">${t(`more.${name}Hint`)}</span></span
                >${icon("chevron-right")}</a
              >
            </li>`,
        )}
      </ul>
    </section>
    <section>
      <h3>${t("settings.device")}</h3>
      ${deviceRows(state, act)}
    </section>
    <section>
      <h3>${t("settings.export")}</h3>
      <p class="hint">${t("settings.exportHint")}</p>
      <div class="task-actions">
        <button type="button" class="small" @click=${() => act.home.saveChat("md")}>
          ${icon("download")}Markdown
        </button>
        <button type="button" class="small" @click=${() => act.home.saveChat("json")}>
          ${icon("download")}JSON
        </button>
      </div>
    </section>
    <section class="settings-end">
      <button type="button" class="small" @click=${() => act.logout()}>
        ${icon("leave")}${t("settings.logout")}
      </button>
      <span class="row-meta">mimikit ${state.version}</span>
    </section>
  </div>`;
}
