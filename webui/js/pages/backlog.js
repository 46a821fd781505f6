/** What is to be done some day: a list that the user and the agent keep together. */

import { html, icon, live, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import * as parts from "../ui/parts.js";
import { button } from "../ui/parts.js";

/** @param {State} state @param {Actions} act */
export function backlogView(state, act) {
  return html`${parts.backLink("#/memory", t("note.back"))}
    <div class="backlog-page">
      <h2 tabindex="-1" data-focus>${t("backlog.title")}</h2>
      ${bodyView(state, act)}
    </div>`;
}

/** @param {State} state @param {Actions} act */
function bodyView(state, act) {
  const { load, items, error } = state.backlog;
  if (load === "failed") return parts.failedView(() => act.keepers.memory.backlog.load());
  if (load !== "ready") return parts.loading(t("backlog.loading"));
  const open = items.filter((item) => !item.done).length;
  return html`${addForm(state, act)}
    <div role="alert">${error ? html`<p class="error-text">${error}</p>` : nothing}</div>
    ${
      items.length
        ? html`<p class="found-count" role="status">${tn("backlog.open", open)}</p>
            <ul class="backlog">
              ${items.map((item, at) => itemView(item, at, state, act))}
            </ul>`
        : parts.emptyState(t("backlog.empty"), t("backlog.emptyText"))
    }`;
}

/** @param {State} state @param {Actions} act */
function addForm({ backlog: { draft, busy } }, act) {
  const submit = parts.onSubmit((event) => {
    event.currentTarget.querySelector("input").focus(); // for the next one
    void act.memory.addItem();
  });
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
      @keydown=${parts.holdBackCandidates}
    />
    <button type="submit" class="primary" ?disabled=${adding}>
      ${adding ? html`<span class="spinner"></span>` : icon("plus")}${t("backlog.add")}
    </button>
  </form>`;
}

/** @param {BacklogItem} item @param {number} at @param {State} state @param {Actions} act */
function itemView(item, at, { backlog: { busy }, confirming }, act) {
  const { text } = item;
  const { memory } = act;
  const give = t("backlog.giveNamed", { item: text });
  const [what] = busy.split(" ", 1);
  const mine = busy === `${what} ${text}`;
  const done = mine && what === "done" ? true : mine && what === "undone" ? false : item.done;
  const asked = confirming === `backlog ${text}`;
  const named = t("backlog.removeNamed", { item: text });
  return html`<li class="backlog-item ${done ? "is-done" : ""}">
    <label class="check" for="item-${at}">
      <input
        type="checkbox"
        id="item-${at}"
        .checked=${live(done)}
        ?disabled=${asked}
        @change=${(/** @type {any} */ event) => memory.tick(text, event.target.checked)}
      /><span>${text}</span>
    </label>
    ${
      asked
        ? html`<span class="backlog-confirm" role="group" aria-label=${named}>
            ${button(t("backlog.remove"), () => memory.removeItem(text), { look: "small danger" })}
            ${button(t("backlog.keep"), () => memory.keepItem(), { id: "backlog-keep" })}
          </span>`
        : html`${
              done
                ? nothing
                : parts.iconButton("send", give, () => act.giveItem(text), { title: t("backlog.give") })
            }
            ${parts.iconButton("trash", named, () => memory.askRemoval(text), {
              off: mine,
              title: t("backlog.remove"),
            })}`
    }
  </li>`;
}
