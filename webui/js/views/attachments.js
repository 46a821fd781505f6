/** Files beside what is written, and on what was sent. */

import { isPicture, MOST_MB } from "../file-state.js";
import { html, icon, nothing, repeat } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { fileSize } from "../time.js";
import { pictureOf } from "../transfer.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../state-types.js").Attachment} Attachment
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../types.js").SentFile} SentFile
 */

/** A picture on a message is no wider and no higher, in pixels. */
const MOST_WIDE = 320;
const MOST_HIGH = 240;

/** @param {Actions} act  The button, and the field behind it that opens the system's own window. */
export function attachButton(act) {
  const choose = (/** @type {any} */ event) => {
    const { files } = event.target;
    if (files?.length) act.files.add(files);
    event.target.value = ""; // the same one may be chosen again
  };
  return html`<button
      type="button"
      class="attach"
      aria-label=${t("files.attach")}
      title=${t("files.attach")}
      @click=${(/** @type {any} */ event) => event.currentTarget.nextElementSibling.click()}
    >
      ${icon("clip")}
    </button>
    <input type="file" id="attach" multiple hidden tabindex="-1" @change=${choose} />`;
}

/** @param {State} state @param {Actions} act  What is to go with the message. */
export function attachmentsView({ files }, act) {
  const told = html`<p class="sr-only" role="status">${toldOf(files)}</p>`;
  if (!files.length) return told;
  return html`${told}
    <ul class="attachments" aria-label=${t("files.title")}>
      ${repeat(
        files,
        (file) => file.key,
        (file) => chip(file, act),
      )}
    </ul>`;
}

/** @param {Attachment[]} files  For those who listen: what has become of them. */
function toldOf(files) {
  if (!files.length) return "";
  const bad = files.find((file) => file.state === "failed" || file.state === "lost");
  if (bad) return `${bad.name}: ${problem(bad)}`;
  const there = files.filter((file) => file.state === "ready").length;
  return there === files.length ? tn("files.ready", there) : t("files.sending");
}

/** @param {Attachment} file */
function problem(file) {
  return file.state === "lost" ? t("files.lost") : file.error;
}

/** @param {Attachment} file @param {Actions} act */
function chip(file, act) {
  const bad = file.state === "failed" || file.state === "lost";
  const busy = file.state === "waiting" || file.state === "sending";
  return html`<li class="attachment ${bad ? "is-bad" : ""}" data-state=${file.state}>
    ${thumbnail(file)}
    <span class="attachment-text">
      <span class="attachment-name" title=${file.name}>${file.name}</span>
      <span class="attachment-note">${bad ? problem(file) : fileSize(file.size, language())}</span>
      ${busy
        ? html`<progress max="1" .value=${file.part} aria-label=${t("files.progress", { name: file.name })}></progress>`
        : nothing}
    </span>
    ${file.state === "failed" && file.size <= MOST_MB * 2 ** 20
      ? html`<button
          type="button"
          class="icon-button small"
          aria-label=${t("files.retry", { name: file.name })}
          title=${t("files.retry", { name: file.name })}
          @click=${() => act.files.retry(file.key)}
        >
          ${icon("retry")}
        </button>`
      : nothing}
    <button
      type="button"
      class="icon-button small"
      aria-label=${t("files.remove", { name: file.name })}
      title=${t("files.remove", { name: file.name })}
      @click=${() => act.files.remove(file.key)}
    >
      ${icon("x")}
    </button>
  </li>`;
}

/** @param {Attachment} file */
function thumbnail(file) {
  if (file.preview) return html`<img class="attachment-picture" src=${file.preview} alt="" />`;
  if (file.sent && isPicture(file.sent)) {
    return html`<span class="file-picture attachment-picture"
      ><img alt="" ${pictureOf(file.sent)}
    /></span>`;
  }
  return html`<span class="attachment-picture">${icon("file")}</span>`;
}

/** @param {SentFile[] | undefined} files @param {Actions} act  What a message was sent with. */
export function sentFilesView(files, act) {
  if (!files?.length) return nothing;
  return html`<ul class="sent-files" aria-label=${t("files.title")}>
    ${files.map((file) => html`<li>${sentView(file, act)}</li>`)}
  </ul>`;
}

/** @param {SentFile} file @param {Actions} act */
function sentView(file, act) {
  if (file.kept === false) return html`<span class="file-card is-gone">${goneView(file)}</span>`;
  return isPicture(file) ? picture(file, act) : document_(file, act);
}

/** @param {SentFile} file */
function goneView(file) {
  return html`<span class="file-gone">${icon("file")}<span>${file.name} · ${t("files.gone")}</span></span>`;
}

/** @param {SentFile} file @param {Actions} act */
function picture(file, act) {
  const [wide, high] = [file.width ?? 1, file.height ?? 1];
  const scale = Math.min(1, MOST_WIDE / wide, MOST_HIGH / high);
  const open = (/** @type {any} */ event) => {
    const place = event.currentTarget.querySelector("img");
    if (place.src) act.files.view(file, place.src);
    else void act.files.save(file);
  };
  return html`<button
    type="button"
    class="file-picture"
    aria-label=${t("files.open", { name: file.name })}
    title=${file.name}
    @click=${open}
  >
    <img
      alt=${file.name}
      width=${Math.max(1, Math.round(wide * scale))}
      height=${Math.max(1, Math.round(high * scale))}
      ${pictureOf(file)}
    />
    ${goneView(file)}
  </button>`;
}

/** @param {SentFile} file @param {Actions} act */
function document_(file, act) {
  return html`<button
    type="button"
    class="file-card"
    aria-label=${t("files.save", { name: file.name })}
    title=${t("files.save", { name: file.name })}
    @click=${() => act.files.save(file)}
  >
    ${icon("file")}
    <span class="attachment-text">
      <span class="attachment-name">${file.name}</span>
      <span class="attachment-note">${fileSize(file.size, language())}</span>
    </span>
  </button>`;
}

/** @param {State} state  What one sees while files are held over the page. */
export function dropView({ dropping }) {
  if (!dropping) return nothing;
  return html`<div class="drop-here" aria-hidden="true">
    <p>${icon("clip")} ${t("files.drop")}</p>
  </div>`;
}
