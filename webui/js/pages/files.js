/** Files beside what is being written, and on what was sent. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { fileSize } from "../core/time.js";

/** @param {Actions} act  The button, and the field behind it that opens the system's window. */
export function clipButton(act) {
  const choose = (/** @type {any} */ { target }) => {
    act.files.add(target.files);
    target.value = ""; // the same one may be chosen again
  };
  const open = (/** @type {any} */ { currentTarget }) => currentTarget.nextElementSibling.click();
  const label = t("files.attach");
  return html`<button type="button" class="icon-button clip" aria-label=${label} title=${label} @click=${open}>
      ${icon("clip")}
    </button>
    <input type="file" multiple hidden @change=${choose} />`;
}

/** @param {State} state @param {Actions} act  What is to go with the message. */
export function attachedView({ files }, act) {
  if (!files.length) return nothing;
  return html`<ul class="files" aria-label=${t("files.title")}>
    ${repeat(
      files,
      (/** @type {AttachedFile} */ file) => file.id,
      (/** @type {AttachedFile} */ file) => chip(file, () => act.store.remove("files", file.id)),
    )}
  </ul>`;
}

/** @param {AttachedFile} file @param {() => void} remove */
function chip({ name, bytes, sent, error }, remove) {
  return html`<li class="file chip" role=${error ? "alert" : nothing}>
    ${sent?.kind === "image" ? html`<img alt="" data-file=${sent.id} />` : icon("note")} ${facts(name, bytes)}
    ${error ? html`<span class="error-text">${error}</span>` : sent ? nothing : html`<progress aria-label=${name}></progress>`}
    <button type="button" class="icon-button small" aria-label=${t("files.remove", { name })} @click=${remove}>
      ${icon("x")}
    </button>
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
  const label = t("files.save", { name });
  return html`<button type="button" class="file ${picture ? "is-picture" : "chip"}" title=${label} aria-label=${label} @click=${() => act.files.save(file)}>
    ${picture ? html`<img alt=${name} data-file=${id} />` : html`${icon("note")}${facts(name, bytes)}`}
  </button>`;
}
