/** The command palette (Ctrl+K) and the list of keys (?), each a dialog. */

import { html, icon, live } from "../core/html.js";
import { t } from "../core/i18n.js";
import { paletteItems } from "../core/palette.js";
import { typing } from "./parts.js";

const KEYS = [
  ["Enter", "keys.send"],
  ["Shift+Enter", "keys.line"],
  ["Ctrl+K", "keys.palette"],
  ["/", "keys.search"],
  ["Esc", "keys.back"],
  ["?", "keys.this"],
];

/** @param {State} state @param {Actions} act */
export function dialogsView(state, act) {
  return html`<dialog
      id="palette"
      class="dialog palette"
      aria-label=${t("palette.title")}
      @close=${() => act.store.set({ palette: null })}
      @click=${closeOutside}
    >
      ${paletteView(state, act)}
    </dialog>
    <dialog id="keys" class="dialog" aria-labelledby="keys-title" @click=${closeOutside}>
      <h2 id="keys-title">${t("keys.title")}</h2>
      <dl class="keys-list">
        ${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${t(what)}</dd>`)}
      </dl>
      <form method="dialog"><button class="small">${t("keys.close")}</button></form>
    </dialog>`;
}

/** @param {State} state @param {Actions} act  The field is there before it opens, to have the focus. */
function paletteView(state, act) {
  const { query, at } = state.palette ?? { query: "", at: 0 };
  const items = state.palette ? paletteItems(state, query) : [];
  const chosen = Math.min(at, items.length - 1);
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing || (!step && event.key !== "Enter")) return;
    event.preventDefault();
    if (step) act.store.set({ palette: { query, at: (chosen + step + items.length) % items.length } });
    else if (items[chosen]) act.choose(items[chosen]);
  };
  return html`<input
      id="palette-query"
      type="text"
      role="combobox"
      dir="auto"
      autocomplete="off"
      aria-expanded="true"
      aria-controls="palette-list"
      aria-activedescendant=${items.length ? `palette-${chosen}` : ""}
      aria-label=${t("palette.title")}
      placeholder=${t("palette.placeholder")}
      .value=${live(query)}
      @input=${typing((typed) => act.store.set({ palette: { query: typed, at: 0 } }))}
      @keydown=${onKey}
    />
    <ul id="palette-list" role="listbox" aria-label=${t("palette.title")}>
      ${items.map(
        (item, place) =>
          html`<li
            id="palette-${place}"
            role="option"
            aria-selected=${place === chosen ? "true" : "false"}
            @click=${() => act.choose(item)}
          >
            ${icon(item.icon)}<span dir="auto">${item.label}</span>
          </li>`,
      )}
    </ul>`;
}

/** @param {MouseEvent} event  A click beside the dialog closes it. */
function closeOutside(event) {
  if (event.target === event.currentTarget) {
    /** @type {HTMLDialogElement} */ (event.currentTarget).close();
  }
}
