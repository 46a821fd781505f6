/** Files that are to go with what is being written. */

import { words } from "./api.js";
import { t } from "./i18n.js";
import { newId } from "./ids.js";

/** So many go with one message, each of so many bytes; the server says so, too. */
const MOST_FILES = 10;
const MOST_BYTES = 10 * 2 ** 20;

/** @type {Record<string, (state: State, action: any) => State>} */
export const FILE_ACTIONS = {
  filesAdded: (state, { files }) => ({ ...state, files: [...state.files, ...files] }),
  fileChanged: (state, { key, values }) => ({
    ...state,
    files: state.files.map((file) => (file.key === key ? { ...file, ...values } : file)),
  }),
  fileGone: (state, { key }) => ({ ...state, files: state.files.filter((file) => file.key !== key) }),
};

/** @param {FileRef} sent @returns {AttachedFile} one that the server has */
export function attached(sent) {
  return { key: newId("file"), name: sent.name, bytes: sent.bytes, sent, error: "" };
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
    const key = newId("file");
    const wrong = bytes > MOST_BYTES ? t("files.tooLarge") : bytes ? "" : t("files.empty");
    const added = { key, name, bytes, sent: null, error: wrong };
    this.store.dispatch({ type: "filesAdded", files: [added] });
    if (wrong) return;
    const values = await this.api.upload(file).then(
      (sent) => ({ sent }),
      (error) => ({ error: error.status === 413 ? t("files.tooLarge") : words(error) }),
    );
    this.store.dispatch({ type: "fileChanged", key, values });
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
