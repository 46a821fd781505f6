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
  return html`<button
      type="button"
      class="icon-button clip"
      aria-label=${t("files.attach")}
      title=${t("files.attach")}
      @click=${(/** @type {any} */ event) => event.currentTarget.nextElementSibling.click()}
    >
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
      (file) => file.key,
      (file) => html`<li class="file chip" role=${file.error ? "alert" : nothing}>
        ${iconOf(file.sent)} <span class="file-name" title=${file.name}>${file.name}</span>
        ${file.error ? html`<span class="error-text">${file.error}</span>` : html`<span class="muted">${fileSize(file.bytes, language())}</span>`}
        ${file.sent || file.error ? nothing : html`<progress .value=${file.part} aria-label=${file.name}></progress>`}
        <button type="button" class="icon-button small" aria-label=${t("files.remove", { name: file.name })} @click=${() => act.files.remove(file.key)}>
          ${icon("x")}
        </button>
      </li>`,
    )}
  </ul>`;
}

/** @param {FileRef | null} file  A small picture of it; what it shows is filled in once it is drawn. */
function iconOf(file) {
  return file?.kind === "image" ? html`<img alt="" data-file=${file.id} />` : icon("note");
}

/** @param {FileRef[] | undefined} files @param {Actions} act  What a message was sent with. */
export function sentFilesView(files, act) {
  if (!files?.length) return nothing;
  return html`<ul class="files" aria-label=${t("files.title")}>
    ${files.map((file) => {
      const picture = file.kind === "image";
      return html`<li>
        <button type="button" class="file ${picture ? "is-picture" : "chip"}" title=${t("files.save", { name: file.name })} aria-label=${t("files.save", { name: file.name })} @click=${() => act.files.save(file)}>
          ${
            picture
              ? html`<img alt=${file.name} data-file=${file.id} />`
              : html`${icon("note")}<span class="file-name">${file.name}</span> <span class="muted">${fileSize(file.bytes, language())}</span>`
          }
        </button>
      </li>`;
    })}
  </ul>`;
}
