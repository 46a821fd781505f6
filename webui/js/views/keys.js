/** The page's keys, from the table that the handler follows. */

import { html, icon, nothing } from "../html.js";
import { t } from "../i18n.js";
import { KEYS, capsOf, isMac } from "../keys.js";

const GROUPS = /** @type {const} */ (["anywhere", "going", "reading"]);

/**
 * @param {boolean} single whether keys of one letter count
 * @param {{close: () => void, setSingle: (on: boolean) => void}} act
 */
export function keysView(single, act) {
  const mac = isMac();
  return html`<dialog
    class="dialog keys-dialog"
    aria-labelledby="keys-title"
    @click=${(/** @type {Event} */ event) => {
      if (event.target === event.currentTarget) act.close();
    }}
  >
    <div class="dialog-box">
      <header class="dialog-head">
        <h2 id="keys-title">${t("keys.title")}</h2>
        <button
          type="button"
          class="icon-button small"
          aria-label=${t("dialog.close")}
          title=${t("dialog.close")}
          @click=${act.close}
        >
          ${icon("x")}
        </button>
      </header>
      <div class="keys-groups">
        ${GROUPS.map(
          (group) =>
            html`<section>
              <h3>${t(`keys.group.${group}`)}</h3>
              <dl>
                ${KEYS.filter((key) => key.group === group).map(
                  (key) =>
                    html`<div class="keys-row ${single || key.press.startsWith("Mod") ? "" : "is-off"}">
                      <dt>${key.to ? t(`palette.place.${key.to.view}`) : t(`keys.${key.id}`)}</dt>
                      <dd>${capsView(key.press, mac)}</dd>
                    </div>`,
                )}
              </dl>
            </section>`,
        )}
      </div>
      <label class="keys-single">
        <input
          type="checkbox"
          .checked=${single}
          @change=${(/** @type {any} */ event) => act.setSingle(event.target.checked)}
        />
        <span>${t("keys.single")}</span>
      </label>
    </div>
  </dialog>`;
}

/** @param {string} press @param {boolean} mac */
function capsView(press, mac) {
  const caps = capsOf(press, mac);
  const then = press.includes(" ") ? html`<span class="keys-then">${t("keys.then")}</span>` : nothing;
  return caps.map((cap, number) => html`${number ? then : nothing}<kbd>${cap}</kbd>`);
}
