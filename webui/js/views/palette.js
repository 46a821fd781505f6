/** The palette, drawn: a field and the list that it commands. */

import { html, icon, live, nothing, repeat } from "../html.js";
import { has, t } from "../i18n.js";
import { piecesOf } from "../memory.js";

/**
 * @typedef {import("../palette-items.js").Item} Item
 * @typedef {import("../palette.js").Palette} Palette
 */

/** @param {Palette} palette @param {Item[]} items */
export function paletteView(palette, items) {
  const groups = [...new Set(items.map((item) => item.group))];
  return html`<dialog
    class="dialog palette"
    aria-label=${t("palette.title")}
    @click=${(/** @type {Event} */ event) => closeBeside(event, palette)}
  >
    <div class="palette-box">
      <div class="palette-field">
        ${icon("search")}
        <input
          type="text"
          role="combobox"
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
          maxlength="1000"
          enterkeyhint="go"
          aria-label=${t("palette.title")}
          aria-expanded="true"
          aria-controls="palette-list"
          aria-autocomplete="list"
          aria-activedescendant=${palette.chosen ? `palette-${palette.chosen}` : nothing}
          placeholder=${t("palette.hint")}
          .value=${live(palette.query)}
          @input=${(/** @type {any} */ event) => palette.type(event.target.value)}
          @keydown=${(/** @type {KeyboardEvent} */ event) => palette.key(event)}
        />
        <button
          type="button"
          class="icon-button small"
          aria-label=${t("dialog.close")}
          title=${t("dialog.close")}
          @click=${() => palette.close()}
        >
          ${icon("x")}
        </button>
      </div>
      <div class="palette-list" id="palette-list" role="listbox" aria-label=${t("palette.list")}>
        ${groups.map(
          (group) =>
            html`<div role="group" aria-labelledby="palette-of-${group}">
              <p class="palette-group" id="palette-of-${group}" role="presentation">
                ${t(`palette.group.${group}`)}
              </p>
              ${repeat(
                items.filter((item) => item.group === group),
                (item) => item.id,
                (item) => optionView(item, palette),
              )}
            </div>`,
        )}
      </div>
      <p class="sr-only" role="status">${t(palette.stage === "asking" ? "search.searching" : "palette.ready", { n: items.length })}</p>
    </div>
  </dialog>`;
}

/** @param {Event} event @param {Palette} palette  A click on what lies behind puts it away. */
function closeBeside(event, palette) {
  if (event.target === event.currentTarget) palette.close();
}

/** @param {Item} item @param {Palette} palette */
function optionView(item, palette) {
  const chosen = item.id === palette.chosen;
  return html`<div
    class="palette-item"
    role="option"
    id="palette-${item.id}"
    aria-selected=${chosen ? "true" : "false"}
    @pointermove=${() => palette.choose(item.id)}
    @click=${() => palette.run(item)}
  >
    ${icon(item.sign)}<span class="palette-text">${textOf(item, palette)}</span>
    ${chosen ? html`<kbd aria-hidden="true">↵</kbd>` : nothing}
  </div>`;
}

/** @param {Item} item @param {Palette} palette */
function textOf(item, palette) {
  if (item.id === "everywhere") return t("palette.everywhere", { q: palette.query.trim() });
  const { hit } = item;
  if (hit) {
    const head = hit.title || (has(`memory.kind.${hit.kind}`) ? t(`memory.kind.${hit.kind}`) : hit.source);
    return html`${piecesOf(hit.snippet.replace(/\s+/g, " "), hit.marks).map(piece)}
      <span class="palette-about">${head}</span>`;
  }
  return html`${marked(item.title, item.marks ?? []).map(piece)}
  ${item.about ? html`<span class="palette-about">${item.about}</span>` : nothing}`;
}

/** @param {{text: string, marked: boolean}} part */
function piece(part) {
  return part.marked ? html`<mark>${part.text}</mark>` : part.text;
}

/** @param {string} text @param {[number, number][]} marks in UTF-16 units */
function marked(text, marks) {
  const parts = [];
  let place = 0;
  for (const [from, to] of marks) {
    if (from > place) parts.push({ text: text.slice(place, from), marked: false });
    parts.push({ text: text.slice(from, to), marked: true });
    place = to;
  }
  return [...parts, { text: text.slice(place), marked: false }];
}
