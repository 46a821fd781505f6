/** Files that are to go with what is being written. */

import { words } from "./api.js";
import { t } from "./i18n.js";
import { newId } from "./ids.js";

/** So many go with one message, each of so many bytes; the server says so, too. */
const MOST_FILES = 10;
const MOST_BYTES = 10 * 2 ** 20;

/** @param {FileRef} sent @returns {AttachedFile} one that the server has */
export function attached(sent) {
  return { id: newId("file"), name: sent.name, bytes: sent.bytes, sent, error: "" };
}

/** @param {State} state  Whether there is something to send, and all of it is there. */
export function canSend({ draft, files }) {
  return Boolean(draft.trim() || files.length) && files.every((file) => file.sent);
}

export class FileActions {
  /** @param {Store} store @param {Api} api @param {Pick<Actions, "notify">} page */
  constructor(store, api, page) {
    this.store = store;
    this.api = api;
    this.page = page;
  }

  /** @param {ArrayLike<File>} chosen */
  add(chosen) {
    const room = MOST_FILES - this.store.state.files.length;
    if (chosen.length > room) this.page.notify(t("files.tooMany", { n: MOST_FILES }), "error");
    for (const file of Array.from(chosen).slice(0, room)) void this.send(file);
  }

  /** @private @param {File} file */
  async send(file) {
    const { name, size: bytes } = file;
    const id = newId("file");
    const wrong = bytes > MOST_BYTES ? t("files.tooLarge") : bytes ? "" : t("files.empty");
    this.store.add("files", { id, name, bytes, sent: null, error: wrong });
    if (wrong) return;
    const values = await this.api.upload(file).then(
      (sent) => ({ sent }),
      (error) => ({ error: error.status === 413 ? t("files.tooLarge") : words(error) }),
    );
    this.store.change("files", id, values);
  }

  /** @param {FileRef} file  Have the browser save it. */
  async save({ id, name }) {
    try {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await this.api.file(id));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (error) {
      this.page.notify(words(error), "error");
    }
  }
}
