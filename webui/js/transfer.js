/** Files on their way: to the server with their progress, back as what they are, and into the page. */

import { ApiError } from "./api.js";
import { Directive, directive } from "../vendor/lit-html/directive.js";
import { nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("./types.js").SentFile} SentFile */

const PATIENCE_MS = 150_000;
const MOST_HELD = 60;

/** @type {import("./api.js").Api | null} */
let api = null;

/** @param {import("./api.js").Api} ours  By which the page speaks with its server. */
export function transferBy(ours) {
  api = ours;
}

/**
 * @param {File} file
 * @param {(part: number) => void} told how much of it is there, up to 1
 * @param {AbortSignal} signal
 * @returns {Promise<SentFile>}
 */
export function upload(file, told, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch tells no progress
    request.open("POST", `/api/files?${new URLSearchParams({ name: file.name.slice(0, 1000) })}`);
    const headers = { ...api?.headers(), "content-type": "application/octet-stream" };
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.timeout = PATIENCE_MS;
    request.responseType = "json";
    request.upload.onprogress = (event) => told(event.total ? event.loaded / event.total : 0);
    request.onload = () => {
      const { status, response } = request;
      if (status === 200 && response) resolve(response);
      else reject(new ApiError(status, response?.error ?? {}, response));
    };
    request.onerror = request.ontimeout = () => reject(new ApiError(0));
    request.onabort = () => reject(new ApiError(0));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** @type {Map<string, Promise<string>>} addresses of pictures that were fetched, the last used last */
const held = new Map();

/** @param {string} id @returns {Promise<Blob>} */
const fetched = async (id) => (api ? api.file(id) : new Blob());

/** @param {SentFile} file @returns {Promise<string>} where the page has the picture */
export function pictureUrl(file) {
  const known = held.get(file.id);
  const url = known ?? fetched(file.id).then((blob) => URL.createObjectURL(blob));
  held.delete(file.id);
  held.set(file.id, url);
  url.catch(() => held.delete(file.id));
  for (const id of held.keys()) {
    if (held.size <= MOST_HELD) break;
    void held.get(id)?.then((old) => URL.revokeObjectURL(old), () => {});
    held.delete(id);
  }
  return url;
}

class PictureOf extends Directive {
  /** @param {any} part */
  constructor(part) {
    super(part);
    this.id = "";
  }

  /** @param {SentFile} file */
  render(file) {
    return file;
  }

  /** @param {any} part @param {[SentFile]} values */
  update(part, [file]) {
    if (this.id === file.id) return nothing;
    this.id = file.id;
    const place = /** @type {HTMLImageElement} */ (part.element);
    const box = () => place.closest(".file-picture");
    pictureUrl(file).then(
      (url) => void (place.src = url),
      () => box()?.classList.add("is-gone"),
    );
    return nothing;
  }
}

/** On an `img`: it shows this picture of the user's. A session's key can not go with an address. */
export const pictureOf = directive(PictureOf);
