/** What is to be done some day: a list that the user and the agent keep together. */

import { html, live, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import * as parts from "../ui/parts.js";
import { button, iconButton } from "../ui/parts.js";

/** @param {State} state @param {Actions} act */
export function backlogView(state, act) {
  return html`${parts.backLink("#/memory", t("note.back"))}
  ${parts.pageView("backlog-page", t("backlog.title"), bodyView(state, act))}`;
}

/** @param {State} state @param {Actions} act */
function bodyView(state, act) {
  const { memory } = act;
  const { load, items, error, draft, busy } = state.backlog;
  if (load === "failed") return parts.failedView(() => memory.backlog.load());
  if (load !== "ready") return parts.loading(t("backlog.loading"));
  const open = items.filter((item) => !item.done).length;
  const list = html`<p class="found-count" role="status">${tn("backlog.open", open)}</p>
    <ul class="backlog">${items.map((item, at) => itemView(item, at, state, act))}</ul>`;
  const add = parts.onSubmit((event) => {
    event.currentTarget.querySelector("input").focus(); // for the next one
    void memory.addItem();
  });
  return html`<form class="backlog-add" @submit=${add}>
      <label class="sr-only" for="backlog-item">${t("backlog.item")}</label>
      <input
        id="backlog-item"
        dir="auto"
        autocomplete="off"
        maxlength="2000"
        placeholder=${t("backlog.item")}
        .value=${live(draft)}
        @input=${parts.typing((text) => memory.typeItem(text))}
        @keydown=${parts.holdBackCandidates}
      />
      ${parts.submitButton(t("backlog.add"), busy.startsWith("add "), "plus")}
    </form>
    <div role="alert">${error ? html`<p class="error-text">${error}</p>` : nothing}</div>
    ${items.length ? list : parts.emptyState(t("backlog.empty"), t("backlog.emptyText"))}`;
}

/** @param {BacklogItem} item @param {number} at @param {State} state @param {Actions} act */
function itemView({ text, done }, at, { backlog: { busy }, confirming }, act) {
  const { memory } = act;
  const asked = confirming === `backlog ${text}`;
  const named = t("backlog.removeNamed", { item: text });
  const give = t("backlog.giveNamed", { item: text });
  const ticked = { [`done ${text}`]: true, [`undone ${text}`]: false }[busy] ?? done;
  const off = busy.slice(busy.indexOf(" ") + 1) === text;
  const tick = (/** @type {any} */ { target }) =>
    memory.changeItem(target.checked ? "done" : "undone", text);
  return html`<li class="backlog-item ${ticked ? "is-done" : ""}">
    <label class="check" for="item-${at}">
      <input
        type="checkbox"
        id="item-${at}"
        .checked=${live(ticked)}
        ?disabled=${asked}
        @change=${tick}
      /><span>${text}</span>
    </label>
    ${
      asked
        ? html`<span class="backlog-confirm" role="group" aria-label=${named}>
            ${button(t("backlog.remove"), () => memory.removeItem(text), { look: "small danger" })}
            ${button(t("backlog.keep"), () => act.keep(), { id: "keep" })}
          </span>`
        : html`${done ? nothing : iconButton("send", give, () => act.giveItem(text), { title: t("backlog.give") })}
            ${iconButton("trash", named, () => act.ask(`backlog ${text}`), { off, title: t("backlog.remove") })}`
    }
  </li>`;
}
