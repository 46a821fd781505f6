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
  const path = "path" in route ? route.path : "";
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
  if (load === "failed") return parts.failedView(() => act.memory.note.load(path));
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
  if (file) return fileTitle(file, state);
  return path === LONG_TERM ? t("memory.longTerm") : path;
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
  const { kind, day, title } = file;
  if (!file.text.trim()) return html`<p class="muted">${t("note.empty")}</p>`;
  // The text of a day's or month's file names itself otherwise than the page does.
  const summary = kind === "month" || kind === "day" ? `Summary of ${title}` : null;
  const own = summary ?? (title === day ? day : fileTitle(file, state));
  const shown = withoutTitle(file.html, own);
  const told = withHeads(shown, (role) => word("memory.role", role));
  return html`<div class="prose note-text" id="note-body" ${serverHtml(told)}></div>`;
}

/** @param {Note} file  Why it cannot be edited here. */
function whyNot({ kind }) {
  return t(kind === "docs" ? "note.readOnly" : "note.tooLong");
}

// --- writing

/** @param {State} state @param {Actions} act */
export function noteFormView(state, act) {
  const { route, notes, note } = state;
  const path = "path" in route ? route.path : "";
  const form = notes[path || "new"];
  const title = path ? t("note.editTitle", { title: titleOf(path, state) }) : t("note.newTitle");
  const read = hashOf({ view: "note", path, line: null });
  const shut = note?.path === path && note.file?.editable === false ? note.file : null;
  const none = shut ? html`<p class="muted">${whyNot(shut)}</p>` : unreadView(path, state, act);
  return html`${path ? parts.backLink(read, t("note.backRead")) : backToMemory(state)}
  ${parts.pageView("form-page note-page", title, form ? formView(form, state, act) : none)}`;
}

/** @param {NoteForm} form @param {State} state @param {Actions} act */
function formView(form, state, act) {
  const { memory } = act;
  const { key, title, text, base, error, conflict, restored, unkept } = form;
  const isNew = key === "new";
  const ids = text.includes("<!--") ? `${t("note.idsHint")} ` : "";
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const saves = event.key === "Enter" || event.key.toLowerCase() === "s";
    if (!saves || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
    event.preventDefault();
    void memory.save(key);
  };
  const titleField = () =>
    inputField({
      name: "note-title",
      label: t("note.title"),
      hint: t("note.titleHint"),
      value: title,
      change: (value) => memory.edit(key, { title: value }),
    });
  const drop = () => memory.startFrom(key, base);
  const again = html`<p class="note-told">
    ${icon("info")}<span>${t("note.restored")}</span>
    ${button(t("note.restoredDrop"), drop, { look: "link" })}
  </p>`;
  const submit = parts.onSubmit(() => void memory.save(key));
  return html`<form class="note-form" id="note-form" novalidate @submit=${submit}>
    ${isNew ? titleField() : nothing} ${conflict ? conflictView(form, conflict, memory) : nothing}
    ${restored && !conflict ? again : nothing}
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
        @input=${parts.typing((typed) => memory.edit(key, { text: typed }))}
        @keydown=${onKey}
      ></textarea>
      <p class="hint" id="note-hint">${ids}${t(unkept ? "note.unkept" : "note.kept")}</p>
    </div>
    ${parts.failureView(error, "note-error")} ${buttonsView(form, state, act)}
  </form>`;
}

/** @param {NoteForm} form @param {NonNullable<NoteForm["conflict"]>} conflict @param {Actions["memory"]} memory */
function conflictView({ key, busy: off, text }, { current, shown }, memory) {
  const mine = t(current ? "note.overwrite" : "note.again");
  const look = () => memory.edit(key, { conflict: { current, shown: !shown } });
  const label = t(shown ? "note.lookAway" : "note.look");
  return html`<section class="conflict" id="note-conflict" tabindex="-1" aria-labelledby="conflict-title">
    <p class="conflict-title" id="conflict-title">
      ${icon("alert")}${t(current ? "note.conflict" : "note.gone")}
    </p>
    <p>${t(current ? "note.conflictText" : "note.goneText")}</p>
    ${current && shown ? otherView(current.text, text) : nothing}
    <div class="conflict-actions">
      ${current && button(label, look, { expanded: shown })}
      ${button(mine, () => memory.overwrite(key), { look: "small danger", off })}
      ${current && button(t("note.takeOther"), () => memory.startFrom(key, current))}
    </div>
  </section>`;
}

/** @param {string} other @param {string} mine */
function otherView(other, mine) {
  return html`<pre class="other" tabindex="0" role="region" aria-label=${t("note.other")}>
${otherLines(other, mine).map(
      ({ text, marked }) => html`${marked ? html`<mark>${text}</mark>` : text}${"\n"}`,
    )}</pre>`;
}

/** @param {NoteForm} form @param {State} state @param {Actions} act */
function buttonsView(form, { confirming }, act) {
  const { key, busy, conflict } = form;
  if (confirming === "note") {
    const more = { no: t("note.discardNo"), look: "form-actions", size: "" };
    return parts.confirmView(act, t("note.confirm"), t("note.discardYes"), () => act.memory.close(key), more);
  }
  const label = t(key === "new" ? "note.create" : "note.save");
  const leave = t(isDirty(form) ? "note.discard" : "note.leave");
  return html`<div class="form-actions">
    ${conflict ? nothing : parts.submitButton(label, busy)}
    ${button(leave, () => act.memory.cancel(key), { look: "" })}
  </div>`;
}
