/** What can be done with a message: a row of buttons beside it, or a sheet from below. */

import { html, icon, nothing, serverHtml } from "../html.js";
import { t } from "../i18n.js";
import { messageOf, workOf } from "../message-state.js";
import { hashOf } from "../route.js";
import { shown } from "../shown.js";
import { clock } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").Message} Message
 * @typedef {import("../actions.js").Actions} Actions
 *
 * @typedef {object} Tool
 * @property {string} name
 * @property {string} icon
 * @property {() => void} [run]
 * @property {string} [href]
 */

/** @param {Message} message @param {State} state @param {Actions} act @returns {Tool[]} */
export function toolsOf(message, state, act) {
  const { id, role, turnId, inReplyTo } = message;
  const copied = state.tools.copied === id;
  /** @type {Tool[]} */
  const tools = [
    { name: copied ? "copied" : "copy", icon: copied ? "check" : "copy", run: () => void act.messages.copy(id) },
    { name: "quote", icon: "quote", run: () => act.messages.quote(id, marked(id)) },
  ];
  if (role === "user") {
    tools.push({ name: "edit", icon: "edit", run: () => act.messages.edit(id) });
  }
  if (turnId && (role === "user" || (role === "agent" && inReplyTo?.length))) {
    tools.push({ name: "retry", icon: "retry", run: () => act.turns.again(id) });
  }
  const work = workOf(state, message);
  if (work) tools.push({ name: "work", icon: "tasks", href: hashOf(work) });
  if (role !== "user" && turnId) {
    tools.push({ name: "why", icon: "info", href: hashOf({ view: "reason", id: turnId }) });
  }
  return tools;
}

/** @param {string} id @returns {string} the words of this message that are marked */
function marked(id) {
  const selection = getSelection();
  const item = document.getElementById(`m-${id}`);
  const inside = selection?.rangeCount && item?.contains(selection.getRangeAt(0).commonAncestorContainer);
  return inside ? String(selection) : "";
}

/**
 * The first action of each message is always there, for the tab key; the others where one is.
 *
 * @param {Message} message
 * @param {State} state
 * @param {Actions} act
 */
export function toolbarView(message, state, act) {
  const { id } = message;
  const { hover, focus, copied } = state.tools;
  const open = hover === id || focus === id;
  if (state.touch) {
    return html`<span class="tools is-touch" role="toolbar" aria-label=${t("tools.label")} data-of=${id}>
      <button
        type="button"
        class="tool"
        tabindex="-1"
        aria-haspopup="dialog"
        aria-label=${t("tools.more")}
        @click=${() => act.messages.show({ sheet: id })}
      >
        ${icon("more")}
      </button>
    </span>`;
  }
  const [first, ...others] = toolsOf(message, state, act);
  return html`<span
    class="tools ${open ? "is-open" : ""}"
    role="toolbar"
    aria-label=${t("tools.label")}
    data-of=${id}
  >
    ${toolView(first)}${open ? others.map(toolView) : nothing}${
      copied === id ? html`<span class="sr-only" role="status">${t("tools.copied")}</span>` : nothing
    }
  </span>`;
}

/** @param {Tool} tool */
function toolView({ name, icon: sign, run, href }) {
  const label = t(`tools.${name}`);
  if (href) {
    return html`<a class="tool" tabindex="-1" href=${href} aria-label=${label} title=${label}
      >${icon(sign)}</a
    >`;
  }
  return html`<button type="button" class="tool" tabindex="-1" aria-label=${label} title=${label} @click=${run}>
    ${icon(sign)}
  </button>`;
}

/** @param {State} state @param {Actions} act  The same from below, for a thumb. */
export function sheetView(state, act) {
  const { sheet } = state.tools;
  const message = messageOf(state, sheet);
  // Closed at once: as long as it is open nothing beside it can be given the focus.
  const close = () => {
    /** @type {HTMLDialogElement | null} */ (document.querySelector("#message-sheet[open]"))?.close();
    act.messages.show({ sheet: "" });
  };
  return html`<dialog
    class="sheet"
    id="message-sheet"
    data-of=${message ? sheet : ""}
    aria-label=${t("tools.label")}
    @close=${() => act.messages.show({ sheet: "" })}
    @click=${(/** @type {MouseEvent} */ event) => event.target === event.currentTarget && close()}
  >
    ${message ? sheetBody(message, state, act, close) : nothing}
  </dialog>`;
}

/** @param {Message} message @param {State} state @param {Actions} act @param {() => void} close */
function sheetBody(message, state, act, close) {
  return html`<div class="sheet-head">
      ${
        message.html
          ? html`<div class="prose sheet-text" ${serverHtml(message.html)}></div>`
          : html`<p class="plain sheet-text">${shown(message.text)}</p>`
      }
      <span class="muted">${clock(message.createdAt)}</span>
    </div>
    <ul class="sheet-list">
      ${toolsOf(message, state, act).map(({ name, icon: sign, run, href }) => {
        const label = html`${icon(sign)}<span>${t(`tools.${name}`)}</span>`;
        return html`<li>
          ${
            href
              ? html`<a class="sheet-item" href=${href} @click=${close}>${label}</a>`
              : html`<button
                  type="button"
                  class="sheet-item"
                  @click=${() => {
                    if (name !== "copy" && name !== "copied") close();
                    run?.();
                  }}
                >
                  ${label}
                </button>`
          }
        </li>`;
      })}
      <li>
        <button type="button" class="sheet-item" @click=${close}>${icon("x")}<span>${t("tools.close")}</span></button>
      </li>
    </ul>`;
}
