/** A file of memory, to be written: plain text, and what to do when it changed meanwhile. */

import { html, icon, live, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { isDirty, otherLines } from "./memory.js";
import { hashOf } from "../core/route.js";
import { inputField } from "../ui/fields.js";
import { backToMemory, titleOf, unreadView, whyNot } from "./note.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").NoteForm} NoteForm
 * @typedef {import("../core/actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function noteFormView(state, act) {
  const { route } = state;
  const key = route.view === "noteEdit" ? route.path : "new";
  const form = state.notes[key];
  const title =
    key === "new" ? t("note.newTitle") : t("note.editTitle", { title: titleOf(key, state) });
  return html`${key === "new" ? backToMemory(state) : backToNote(key)}
    <div class="form-page note-page">
      <h2 tabindex="-1" data-focus>${title}</h2>
      ${form ? formView(form, state, act) : waitingView(key, state, act)}
    </div>`;
}

/** @param {string} path */
function backToNote(path) {
  const href = hashOf({ view: "note", path, line: null });
  return html`<a class="back" href=${href}>${icon("back")}${t("note.backRead")}</a>`;
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
  const { key, text } = form;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void act.memory.save(key);
  };
  return html`<form class="note-form" id="note-form" novalidate @submit=${submit}>
    ${key === "new" ? titleField(form, act) : nothing} ${conflictView(form, act)}
    ${form.restored && !form.conflict ? restoredView(key, act) : nothing}
    <div class="field note-field">
      <label for="note-text" class=${key === "new" ? "" : "sr-only"}>${t("note.text")}</label>
      <textarea
        id="note-text"
        rows="8"
        dir="auto"
        spellcheck="false"
        placeholder=${t("note.placeholder")}
        aria-describedby="note-hint"
        aria-invalid=${form.error ? "true" : "false"}
        .value=${live(text)}
        @input=${(/** @type {any} */ event) => act.memory.edit(key, { text: event.target.value })}
        @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, key, act)}
      ></textarea>
      <p class="hint" id="note-hint">${hintOf(form)}</p>
    </div>
    <div role="alert">
      ${
        form.error
          ? html`<div class="failure" id="note-error" tabindex="-1">${form.error}</div>`
          : nothing
      }
    </div>
    ${buttonsView(form, state, act)}
  </form>`;
}

/** @param {NoteForm} form @param {Actions} act */
function titleField({ key, title }, act) {
  return inputField({
    name: "note-title",
    label: t("note.title"),
    hint: t("note.titleHint"),
    value: title,
    change: (typed) => act.memory.edit(key, { title: typed }),
  });
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
    <button type="button" class="link" @click=${() => act.memory.dropRestored(key)}>
      ${t("note.restoredDrop")}
    </button>
  </p>`;
}

/** @param {NoteForm} form @param {Actions} act */
function conflictView(form, act) {
  const { conflict, key, busy } = form;
  if (!conflict) return nothing;
  const { current, shown } = conflict;
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
    ${current && shown ? otherView(current.text, form.text) : nothing}
    <div class="conflict-actions">
      ${
        current
          ? html`<button
              type="button"
              class="small"
              aria-expanded=${shown ? "true" : "false"}
              @click=${() => act.memory.toggleOther(key)}
            >
              ${t(shown ? "note.lookAway" : "note.look")}
            </button>`
          : nothing
      }
      <button
        type="button"
        class="small danger"
        ?disabled=${busy}
        @click=${() => act.memory.overwrite(key)}
      >
        ${t(current ? "note.overwrite" : "note.again")}
      </button>
      ${
        current
          ? html`<button type="button" class="small" @click=${() => act.memory.takeOther(key)}>
              ${t("note.takeOther")}
            </button>`
          : nothing
      }
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
function buttonsView(form, state, act) {
  const { key, busy } = form;
  if (state.confirming === "note") return confirmView(key, act);
  return html`<div class="form-actions">
    ${
      form.conflict
        ? nothing
        : html`<button type="submit" class="primary" ?disabled=${busy}>
            ${busy ? html`<span class="spinner"></span>` : nothing}
            ${t(key === "new" ? "note.create" : "note.save")}
          </button>`
    }
    <button type="button" @click=${() => act.memory.cancel(key)}>
      ${t(isDirty(form) ? "note.discard" : "note.leave")}
    </button>
  </div>`;
}

/** @param {string} key @param {Actions} act */
function confirmView(key, act) {
  return html`<div class="form-actions" role="group" aria-label=${t("note.confirm")}>
    <span>${t("note.confirm")}</span>
    <button type="button" class="danger" @click=${() => act.memory.discard(key)}>
      ${t("note.discardYes")}
    </button>
    <button type="button" id="note-keep" @click=${() => act.memory.keepTyping()}>
      ${t("note.discardNo")}
    </button>
  </div>`;
}
