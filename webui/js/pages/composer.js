/** Where one types, and the line below it that says who answers. */

import { canSend } from "../core/files.js";
import { html, icon, live } from "../core/html.js";
import { t } from "../core/i18n.js";
import { sends } from "../core/typing.js";
import { onSubmit, typing } from "../ui/parts.js";
import { attachedView, clipButton } from "./files.js";

/** @param {State} state @param {Actions} act */
export function composerView(state, act) {
  return html`${attachedView(state, act)}
    <form class="composer" @submit=${onSubmit(() => act.send())}>
      ${clipButton(act)}
      <label class="sr-only" for="composer">${t("composer.label")}</label>
      <textarea
        id="composer"
        rows="1"
        dir="auto"
        enterkeyhint=${touch.matches ? "enter" : "send"}
        placeholder=${t("composer.placeholder")}
        aria-describedby="composer-hint"
        .value=${live(state.draft)}
        @input=${typing((draft) => act.store.set({ draft }))}
        @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, act)}
      ></textarea>
      <button
        type="submit"
        class="send"
        aria-label=${t("composer.send")}
        title=${t("composer.send")}
        ?disabled=${!canSend(state)}
      >
        ${icon("send")}
      </button>
    </form>
    <div class="foot">
      ${answererView(state)}
      <span class="keys" id="composer-hint">${t("composer.hint")}</span>
    </div>`;
}

/** Keys on a screen: a phone, a tablet. */
const touch = matchMedia("(hover: none) and (pointer: coarse)");

/** @param {KeyboardEvent} event @param {Actions} act */
function onKey(event, act) {
  if (!sends(event, touch.matches)) return;
  event.preventDefault();
  act.send();
}

/** @param {State} state  Who answers is said only where no large model does, or one is awaited. */
function answererView({ status }) {
  const teller = status?.engines.teller;
  const link = (/** @type {string} */ words) => html`<a href="#/engines">${words}</a>`;
  if (teller?.engine === "builtin") return html`<span>${t("engines.noModel")} · ${link(t("engines.connect"))}</span>`;
  if (teller?.engine === "local") return html`<span>${link(t("engines.basic"))}</span>`;
  if (teller?.state !== "waiting") return html`<span></span>`;
  return html`<span>${link([t("state.waiting"), teller.reason].filter(Boolean).join(": "))}</span>`;
}
