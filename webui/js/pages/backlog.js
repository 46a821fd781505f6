/** What is to be done some day: a list that the user and the agent keep together. */

import { html, icon, live, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { emptyState, loading } from "../ui/parts.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/actions.js").Actions} Actions
 * @typedef {{text: string, done: boolean}} Item
 */

/** @param {State} state @param {Actions} act */
export function backlogView(state, act) {
  return html`<a class="back" href="#/memory">${icon("back")}${t("note.back")}</a>
    <div class="backlog-page">
      <h2 tabindex="-1" data-focus>${t("backlog.title")}</h2>
      ${bodyView(state, act)}
    </div>`;
}

/** @param {State} state @param {Actions} act */
function bodyView(state, act) {
  const { load, items, error } = state.backlog;
  if (load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.reloadBacklog()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), t("load.unreachable"), again);
  }
  if (load !== "ready") return loading(t("backlog.loading"));
  const open = items.filter((item) => !item.done).length;
  return html`${addForm(state, act)}
    <div role="alert">${error ? html`<p class="error-text">${error}</p>` : nothing}</div>
    ${
      items.length
        ? html`<p class="found-count" role="status">${tn("backlog.open", open)}</p>
            <ul class="backlog">
              ${items.map((item, at) => itemView(item, at, state, act))}
            </ul>`
        : emptyState(t("backlog.empty"), t("backlog.emptyText"))
    }`;
}

/** @param {State} state @param {Actions} act */
function addForm({ backlog: { draft, busy } }, act) {
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    event.currentTarget.querySelector("input").focus(); // for the next one
    void act.memory.addItem();
  };
  const adding = busy.startsWith("add ");
  return html`<form class="backlog-add" @submit=${submit}>
    <label class="sr-only" for="backlog-item">${t("backlog.item")}</label>
    <input
      id="backlog-item"
      dir="auto"
      autocomplete="off"
      maxlength="2000"
      placeholder=${t("backlog.item")}
      .value=${live(draft)}
      @input=${(/** @type {any} */ event) => act.memory.typeItem(event.target.value)}
      @keydown=${holdBackCandidates}
    />
    <button type="submit" class="primary" ?disabled=${adding}>
      ${adding ? html`<span class="spinner"></span>` : icon("plus")}${t("backlog.add")}
    </button>
  </form>`;
}

/** @param {KeyboardEvent} event  Enter that picks an input method's candidate adds nothing. */
function holdBackCandidates(event) {
  if (event.key === "Enter" && (event.isComposing || event.keyCode === 229)) event.preventDefault();
}

/** @param {Item} item @param {number} at @param {State} state @param {Actions} act */
function itemView(item, at, state, act) {
  const { text } = item;
  const [what, busy] = [state.backlog.busy.split(" ", 1)[0], state.backlog.busy];
  const mine = busy === `${what} ${text}`;
  const done = mine && what === "done" ? true : mine && what === "undone" ? false : item.done;
  const asked = state.confirming === `backlog ${text}`;
  return html`<li class="backlog-item ${done ? "is-done" : ""}">
    <label class="check" for="item-${at}">
      <input
        type="checkbox"
        id="item-${at}"
        .checked=${live(done)}
        ?disabled=${asked}
        @change=${(/** @type {any} */ event) => act.memory.tick(text, event.target.checked)}
      /><span>${text}</span>
    </label>
    ${asked ? confirmView(text, act) : removeButton(text, mine, act)}
  </li>`;
}

/** @param {string} text @param {boolean} busy @param {Actions} act */
function removeButton(text, busy, act) {
  return html`<button
    type="button"
    class="icon-button small"
    ?disabled=${busy}
    aria-label=${t("backlog.removeNamed", { item: text })}
    title=${t("backlog.remove")}
    @click=${() => act.memory.askRemoval(text)}
  >
    ${icon("trash")}
  </button>`;
}

/** @param {string} text @param {Actions} act */
function confirmView(text, act) {
  return html`<span
    class="backlog-confirm"
    role="group"
    aria-label=${t("backlog.removeNamed", { item: text })}
  >
    <button type="button" class="small danger" @click=${() => act.memory.removeItem(text)}>
      ${t("backlog.remove")}
    </button>
    <button type="button" class="small" id="backlog-keep" @click=${() => act.memory.keepItem()}>
      ${t("backlog.keep")}
    </button>
  </span>`;
}
