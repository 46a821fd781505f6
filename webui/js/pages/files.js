/** Files beside what is being written, and on what was sent. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { fileSize } from "../core/time.js";
import { button, iconButton } from "../ui/parts.js";

/** @param {Actions} act  The button, and the field behind it that opens the system's window. */
export function clipButton(act) {
  const choose = (/** @type {any} */ { target }) => {
    act.files.add(target.files);
    target.value = ""; // the same one may be chosen again
  };
  const open = (/** @type {any} */ { currentTarget }) => currentTarget.nextElementSibling.click();
  return html`${iconButton("clip", t("files.attach"), open, { look: "icon-button clip" })}
    <input type="file" multiple hidden @change=${choose} />`;
}

/** @param {State} state @param {Actions} act  What is to go with the message. */
export function attachedView({ files }, act) {
  if (!files.length) return nothing;
  return html`<ul class="files" aria-label=${t("files.title")}>
    ${repeat(files, ({ id }) => id, (file) => chip(file, act))}
  </ul>`;
}

/** @param {AttachedFile} file @param {Actions} act */
function chip({ id, name, bytes, sent, error }, act) {
  const remove = () => act.store.remove("files", id);
  return html`<li class="file chip" role=${error ? "alert" : nothing}>
    ${sent?.kind === "image" ? html`<img alt="" data-file=${sent.id} />` : icon("note")} ${facts(name, bytes)}
    ${error ? html`<span class="error-text">${error}</span>` : sent ? nothing : html`<progress aria-label=${name}></progress>`}
    ${iconButton("x", t("files.remove", { name }), remove)}
  </li>`;
}

/** @param {string} name @param {number} bytes */
function facts(name, bytes) {
  return html`<span class="file-name" title=${name}>${name}</span><span class="muted">${fileSize(bytes, language())}</span>`;
}

/** @param {FileRef[] | undefined} files @param {Actions} act  What a message was sent with. */
export function sentFilesView(files, act) {
  if (!files?.length) return nothing;
  return html`<ul class="files" aria-label=${t("files.title")}>${files.map((file) => html`<li>${sentFile(file, act)}</li>`)}</ul>`;
}

/** @param {FileRef} file @param {Actions} act */
function sentFile(file, act) {
  const { id, name, bytes } = file;
  const picture = file.kind === "image";
  const title = t("files.save", { name });
  const look = `file ${picture ? "is-picture" : "chip"}`;
  const inside = picture ? html`<img alt=${name} data-file=${id} />` : html`${icon("note")}${facts(name, bytes)}`;
  return button(inside, () => act.files.save(file), { look, title, named: title });
}
