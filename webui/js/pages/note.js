/** One file of memory: to be read; and to be written, also when it changed meanwhile. */

import { html, icon, live, nothing, serverHtml } from "../core/html.js";
import { t } from "../core/i18n.js";
import { addressOf, hashOf } from "../core/route.js";
import { inputField } from "../ui/fields.js";
import * as parts from "../ui/parts.js";
import { button, word } from "../ui/parts.js";
import { aboutFile, fileTitle } from "./memory-view.js";
import { isDirty, LONG_TERM, otherLines, withHeads, withoutTitle } from "./memory.js";

/** @param {State} state  Back to the list, or to what was found. */
function backToMemory(state) {
  const label = t(state.memory.query.trim() ? "note.backFound" : "note.back");
  return parts.backLink(addressOf({ view: "memory" }, state), label);
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
function unreadView(path, { note }, act) {
  const load = note?.path === path ? note.load : "loading";
  if (load === "failed") return parts.failedView(() => act.keepers.memory.note.load(path));
  if (load !== "missing") return parts.loading(t("note.loading"));
  if (path !== LONG_TERM) return parts.emptyState(t("note.missing"), path);
  const begin = editLink(path, "note.begin", "");
  return parts.emptyState(t("memory.longTerm"), t("note.missingLongTerm"), begin);
}

/** @param {string} path @param {string} label @param {string} look */
function editLink(path, label, look) {
  return html`<a class="button small ${look}" href=${hashOf({ view: "noteEdit", path })}
    >${icon("edit")}${t(label)}</a
  >`;
}

/** @param {string} path @param {State} state  As the list names it, once it is known. */
function titleOf(path, state) {
  const opened = state.note?.path === path ? state.note.file : null;
  const file = opened ?? state.memory.files.find((one) => one.path === path);
  if (!file) return path === LONG_TERM ? t("memory.longTerm") : path;
  return fileTitle(file, state);
}

/** @param {Note} file @param {State} state */
function headView(file, state) {
  const { path, modifiedAt: at, editable } = file;
  return html`<p class="row-meta">
      <span class="row-path">${path}</span>
      ${aboutFile(file, state)}
      ${at ? html`<span>${t("note.changed")} ${parts.since(at, state.now)}</span>` : nothing}
      ${editable ? nothing : html`<span>${whyNot(file)}</span>`}
    </p>
    ${editable ? editLink(path, "note.edit", "note-edit") : nothing}`;
}

/** @param {Note} file @param {State} state */
function textView(file, state) {
  if (!file.text.trim()) return html`<p class="muted">${t("note.empty")}</p>`;
  const shown = withoutTitle(file.html, dayOf(file) ?? fileTitle(file, state));
  const told = withHeads(shown, (role) => word("memory.role", role));
  return html`<div class="prose note-text" id="note-body" ${serverHtml(told)}></div>`;
}

/** @param {Note} file @returns {string | null} how the text of a day's or month's file names itself */
function dayOf({ kind, day, title }) {
  if (kind === "month" || kind === "day") return `Summary of ${title}`;
  return title === day ? day : null;
}

/** @param {Note} file  Why it cannot be edited here. */
function whyNot({ kind }) {
  return t(kind === "docs" ? "note.readOnly" : "note.tooLong");
}

// --- writing

/** @param {State} state @param {Actions} act */
export function noteFormView(state, act) {
  const { route, notes } = state;
  const key = route.view === "noteEdit" ? route.path : "new";
  const isNew = key === "new";
  const title = isNew ? t("note.newTitle") : t("note.editTitle", { title: titleOf(key, state) });
  const read = hashOf({ view: "note", path: key, line: null });
  return html`${isNew ? backToMemory(state) : parts.backLink(read, t("note.backRead"))}
    <div class="form-page note-page">
      <h2 tabindex="-1" data-focus>${title}</h2>
      ${notes[key] ? formView(notes[key], state, act) : waitingView(key, state, act)}
    </div>`;
}

/** @param {string} path @param {State} state @param {Actions} act  Nothing can be written yet, or at all. */
function waitingView(path, state, act) {
  const { note } = state;
  const shut = note?.path === path && note.load === "ready" && note.file?.editable === false;
  if (shut && note.file) return html`<p class="muted">${whyNot(note.file)}</p>`;
  return unreadView(path, state, act);
}

/** @param {NoteForm} form @param {State} state @param {Actions} act */
function formView(form, state, act) {
  const { key, text, error, conflict } = form;
  const isNew = key === "new";
  const submit = parts.onSubmit(() => void act.memory.save(key));
  return html`<form class="note-form" id="note-form" novalidate @submit=${submit}>
    ${isNew ? titleField(form, act) : nothing}
    ${conflict ? conflictView(form, conflict, act) : nothing}
    ${form.restored && !conflict ? restoredView(key, act) : nothing}
    <div class="field note-field">
      <label for="note-text" class=${isNew ? "" : "sr-only"}>${t("note.text")}</label>
      <textarea
        id="note-text"
        rows="8"
        dir="auto"
        spellcheck="false"
        placeholder=${t("note.placeholder")}
        aria-describedby="note-hint"
        aria-invalid=${error ? "true" : "false"}
        .value=${live(text)}
        @input=${(/** @type {any} */ event) => act.memory.edit(key, { text: event.target.value })}
        @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, key, act)}
      ></textarea>
      <p class="hint" id="note-hint">${hintOf(form)}</p>
    </div>
    ${parts.failureView(error, "note-error")} ${buttonsView(form, state, act)}
  </form>`;
}

/** @param {NoteForm} form @param {Actions} act */
function titleField({ key, title: value }, act) {
  const change = (/** @type {string} */ title) => act.memory.edit(key, { title });
  const [label, hint] = [t("note.title"), t("note.titleHint")];
  return inputField({ name: "note-title", label, hint, value, change });
}

/** @param {NoteForm} form */
function hintOf({ text, unkept }) {
  const ids = text.includes("<!--") ? `${t("note.idsHint")} ` : "";
  return ids + t(unkept ? "note.unkept" : "note.kept");
}

/** @param {KeyboardEvent} event @param {string} key @param {Actions} act */
function onKey(event, key, act) {
  const saves = event.key === "Enter" || event.key.toLowerCase() === "s";
  if (!saves || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
  event.preventDefault();
  void act.memory.save(key);
}

/** @param {string} key @param {Actions} act */
function restoredView(key, act) {
  return html`<p class="note-told">
    ${icon("info")}<span>${t("note.restored")}</span>
    ${button(t("note.restoredDrop"), () => act.memory.dropRestored(key), { look: "link" })}
  </p>`;
}

/** @param {NoteForm} form @param {NonNullable<NoteForm["conflict"]>} conflict @param {Actions} act */
function conflictView({ key, busy: off, text }, { current, shown }, act) {
  const { memory } = act;
  const mine = t(current ? "note.overwrite" : "note.again");
  return html`<section
    class="conflict"
    id="note-conflict"
    tabindex="-1"
    aria-labelledby="conflict-title"
  >
    <p class="conflict-title" id="conflict-title">
      ${icon("alert")}${t(current ? "note.conflict" : "note.gone")}
    </p>
    <p>${t(current ? "note.conflictText" : "note.goneText")}</p>
    ${current && shown ? otherView(current.text, text) : nothing}
    <div class="conflict-actions">
      ${
        current
          ? html`<button
              type="button"
              class="small"
              aria-expanded=${shown ? "true" : "false"}
              @click=${() => memory.toggleOther(key)}
            >
              ${t(shown ? "note.lookAway" : "note.look")}
            </button>`
          : nothing
      }
      ${button(mine, () => memory.overwrite(key), { look: "small danger", off })}
      ${current ? button(t("note.takeOther"), () => memory.takeOther(key)) : nothing}
    </div>
  </section>`;
}

/** @param {string} other @param {string} mine */
function otherView(other, mine) {
  const lines = otherLines(other, mine);
  return html`<pre class="other" tabindex="0" role="region" aria-label=${t("note.other")}>
${lines.map(
      ({ text, marked }) => html`${marked ? html`<mark>${text}</mark>` : text}${"\n"}`,
    )}</pre>`;
}

/** @param {NoteForm} form @param {State} state @param {Actions} act */
function buttonsView(form, { confirming }, { memory }) {
  const { key, busy, conflict } = form;
  if (confirming === "note") {
    return html`<div class="form-actions" role="group" aria-label=${t("note.confirm")}>
      <span>${t("note.confirm")}</span>
      ${button(t("note.discardYes"), () => memory.discard(key), { look: "danger" })}
      ${button(t("note.discardNo"), () => memory.keepTyping(), { look: "", id: "note-keep" })}
    </div>`;
  }
  const leave = t(isDirty(form) ? "note.discard" : "note.leave");
  return html`<div class="form-actions">
    ${
      conflict
        ? nothing
        : html`<button type="submit" class="primary" ?disabled=${busy}>
            ${busy ? html`<span class="spinner"></span>` : nothing}
            ${t(key === "new" ? "note.create" : "note.save")}
          </button>`
    }
    ${button(leave, () => memory.cancel(key), { look: "" })}
  </div>`;
}
