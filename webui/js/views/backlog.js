/** What is to be done some day: a list that the user and the agent keep together. */

import { html, icon, live, nothing } from "../html.js";
import { t, tn } from "../i18n.js";
import { clockTime, dayKey, isElsewhere } from "../time.js";
import { emptyState, loading } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../types.js").BacklogItem} Item
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

/**
 * When it is due, and whether that has passed: in the workspace's time, named where the reader's is another.
 *
 * @param {Item} item @param {State} state
 */
function dueView({ due, done }, { now, zone }) {
  if (!due) return nothing;
  const here = `${dayKey(now, zone || undefined)} ${clockTime(now, "en", zone || undefined)}`;
  const late = due < here.slice(0, due.length); // a day may stand alone
  const words = isElsewhere(due.replace(" ", "T"), zone) ? `${due} ${zone}` : due;
  return html` <time class="backlog-due">${words}</time>${
    late && !done ? html` <span class="backlog-due error-text">${t("backlog.late")}</span>` : nothing
  }`;
}

/** @param {State} state @param {Actions} act */
function addForm(state, act) {
  const { draft, due, busy } = state.backlog;
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
      autocomplete="off"
      maxlength="2000"
      placeholder=${t("backlog.item")}
      .value=${live(draft)}
      @input=${(/** @type {any} */ event) => act.memory.typeItem(event.target.value)}
      @keydown=${holdBackCandidates}
    />
    <label class="sr-only" for="backlog-due">${t("backlog.due")}</label>
    <input
      id="backlog-due"
      class="backlog-when"
      autocomplete="off"
      maxlength="100"
      placeholder=${t("backlog.due")}
      .value=${live(due)}
      @input=${(/** @type {any} */ event) => act.memory.typeDue(event.target.value)}
      @keydown=${holdBackCandidates}
    />
    <button type="submit" class="primary" ?disabled=${adding}>
      ${adding ? html`<span class="spinner"></span>` : icon("plus")}${t("backlog.add")}
    </button>
  </form>
  ${zoneHint(state)}`;
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
      /><span
        >${text}${dueView(item, state)}</span
      >
    </label>
    ${asked ? confirmView(text, act) : html`${dateButton(item, mine, state, act)}${removeButton(text, mine, act)}`}
    ${state.backlog.dating === text ? dateForm(item, state, act) : nothing}
  </li>`;
}

/** @param {State} state  In which zone times are read, where that is not the reader's. */
function zoneHint({ now, zone }) {
  return isElsewhere(now, zone) ? html`<p class="hint">${t("backlog.dueIn", { zone })}</p>` : nothing;
}

/** @param {Item} item @param {boolean} busy @param {State} state @param {Actions} act */
function dateButton({ text }, busy, state, act) {
  return html`<button
    type="button"
    class="icon-button small"
    ?disabled=${busy}
    aria-expanded=${state.backlog.dating === text ? "true" : "false"}
    aria-label=${t("backlog.dueNamed", { item: text })}
    title=${t("backlog.due")}
    @click=${() => act.memory.askDate(text)}
  >
    ${icon("clock")}
  </button>`;
}

/** @param {Item} item @param {State} state @param {Actions} act */
function dateForm({ text, due }, state, act) {
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    void act.memory.setDate(text, state.backlog.date);
  };
  return html`<form class="backlog-date" @submit=${submit}>
    <label class="sr-only" for="backlog-date">${t("backlog.dueNamed", { item: text })}</label>
    <input
      id="backlog-date"
      autocomplete="off"
      maxlength="100"
      placeholder=${t("backlog.due")}
      .value=${live(state.backlog.date)}
      @input=${(/** @type {any} */ event) => act.memory.typeDate(event.target.value)}
      @keydown=${holdBackCandidates}
    />
    <button type="submit" class="small">${t("backlog.dueSet")}</button>
    ${
      due
        ? html`<button type="button" class="small" @click=${() => act.memory.setDate(text, "")}>
          ${t("backlog.dueNone")}
        </button>`
        : nothing
    }
  </form>`;
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
