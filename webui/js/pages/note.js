/** One file of memory, to be read. */

import { html, icon, nothing, serverHtml } from "../core/html.js";
import { t } from "../core/i18n.js";
import { LONG_TERM, withHeads, withoutTitle } from "./memory.js";
import { hashOf } from "../core/route.js";
import { aboutFile, fileTitle } from "./memory-view.js";
import { emptyState, loading, since, word } from "../ui/parts.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/types.js").Note} NoteFile
 * @typedef {import("../core/actions.js").Actions} Actions
 */

/** @param {State} state  Back to the list, or to what was found. */
export function backToMemory(state) {
  const label = t(state.memory.query.trim() ? "note.backFound" : "note.back");
  return html`<a class="back" href="#/memory">${icon("back")}${label}</a>`;
}

/** @param {State} state @param {Actions} act */
export function noteView(state, act) {
  const { note, route } = state;
  const path = route.view === "note" ? route.path : "";
  const file = note?.path === path && note.load !== "missing" ? note.file : null;
  return html`${backToMemory(state)}
    <article class="note" data-path=${path}>
      <header class="note-head">
        <h2 tabindex="-1" data-focus>${titleOf(path, state)}</h2>
        ${file ? headView(file, state) : nothing}
      </header>
      ${file ? textView(file, state) : unreadView(path, state, act)}
    </article>`;
}

/** @param {string} path @param {State} state @param {Actions} act  It is on its way, or did not come. */
export function unreadView(path, { note }, act) {
  const load = note?.path === path ? note.load : "loading";
  if (load === "missing") return missingView(path);
  if (load !== "failed") return loading(t("note.loading"));
  const again = html`<button type="button" class="small" @click=${() => act.reloadNote(path)}>
    ${icon("retry")}${t("load.again")}
  </button>`;
  return emptyState(t("load.failed"), t("load.unreachable"), again);
}

/** @param {string} path */
function missingView(path) {
  if (path !== LONG_TERM) return emptyState(t("note.missing"), path);
  const begin = html`<a class="button small" href=${hashOf({ view: "noteEdit", path })}
    >${icon("edit")}${t("note.begin")}</a
  >`;
  return emptyState(t("memory.longTerm"), t("note.missingLongTerm"), begin);
}

/** @param {string} path @param {State} state  As the list names it, once it is known. */
export function titleOf(path, state) {
  const opened = state.note?.path === path ? state.note.file : null;
  const file = opened ?? state.memory.files.find((one) => one.path === path);
  if (!file) return path === LONG_TERM ? t("memory.longTerm") : path;
  return fileTitle(file, state);
}

/** @param {NoteFile} file @param {State} state */
function headView(file, state) {
  const { path, modifiedAt, editable } = file;
  return html`<p class="row-meta">
      <span class="row-path">${path}</span>
      ${aboutFile(file, state)}
      ${modifiedAt ? html`<span>${t("note.changed")} ${since(modifiedAt, state.now)}</span>` : nothing}
      ${editable ? nothing : html`<span>${whyNot(file)}</span>`}
    </p>
    ${
      editable
        ? html`<a class="button small note-edit" href=${hashOf({ view: "noteEdit", path })}
            >${icon("edit")}${t("note.edit")}</a
          >`
        : nothing
    }`;
}

/** @param {NoteFile} file @param {State} state */
function textView(file, state) {
  if (!file.text.trim()) return html`<p class="muted">${t("note.empty")}</p>`;
  const shown = withoutTitle(file.html, dayOf(file) ?? fileTitle(file, state));
  const told = withHeads(shown, (role) => word("memory.role", role));
  return html`<div class="prose note-text" id="note-body" ${serverHtml(told)}></div>`;
}

/** @param {NoteFile} file @returns {string | null} how the text of a day's or month's file names itself */
function dayOf({ kind, day, title }) {
  if (kind === "month" || kind === "day") return `Summary of ${title}`;
  return title === day ? day : null;
}

/** @param {NoteFile} file  Why it cannot be edited here. */
export function whyNot({ kind }) {
  return t(kind === "docs" ? "note.readOnly" : "note.tooLong");
}
