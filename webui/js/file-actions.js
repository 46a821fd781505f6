/** Files that are to go with a message: added, sent to the server one after the other, taken away. */

import { attached, isPicture, MOST_FILES, MOST_MB } from "./file-state.js";

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./state-types.js").Attachment} Attachment
 * @typedef {import("./types.js").SentFile} SentFile
 *
 * @typedef {object} Help what the page does for these
 * @property {(file: File, told: (part: number) => void, signal: AbortSignal) => Promise<SentFile>} upload
 * @property {(id: string) => Promise<Blob>} fetch
 * @property {(text: string, tone?: "info" | "error") => void} notify
 * @property {(error: unknown) => string} words
 * @property {(key: string, values?: object) => string} say
 * @property {() => void} signOut
 * @property {() => void} focus
 * @property {(file: File) => string} preview
 * @property {(preview: string) => void} forget
 * @property {(blob: Blob, name: string) => void} save
 * @property {(file: SentFile, url: string) => void} view
 */

export class FileActions {
  /** @param {Store} store @param {Help} help */
  constructor(store, help) {
    this.store = store;
    this.help = help;
    /** @type {Map<string, File>} what is to be sent, as long as it may be sent again */
    this.held = new Map();
    /** @type {Map<string, AbortController>} */
    this.sending = new Map();
    this.count = 0;
    /** @type {Promise<void>} one at a time: large ones together would starve each other */
    this.last = Promise.resolve();
  }

  /** @param {Iterable<File>} given */
  add(given) {
    const all = [...given];
    const room = MOST_FILES - this.store.state.files.length;
    if (all.length > room) this.help.notify(this.help.say("files.tooMany", { n: MOST_FILES }), "error");
    const added = all.slice(0, Math.max(0, room)).map((file) => this.held_(file));
    if (!added.length) return;
    const { question, composing } = this.store.state;
    if (question && composing.answers) {
      this.store.dispatch({ type: "composing", values: { answers: "" } }); // an answer takes no files
    }
    this.store.dispatch({ type: "filesAdded", files: added });
    for (const { key } of added) this.enqueue(key);
    this.help.focus();
  }

  /** @private @param {File} file @returns {Attachment} */
  held_(file) {
    const key = `file-${++this.count}`;
    this.held.set(key, file);
    const { name, size, type: mediaType } = file;
    const preview = isPicture({ mediaType }) ? this.help.preview(file) : "";
    return { key, name, size, mediaType, state: "waiting", part: 0, sent: null, error: "", preview };
  }

  /** @private @param {string} key */
  enqueue(key) {
    this.last = this.last.then(() => this.send(key));
  }

  /** @private @param {string} key */
  async send(key) {
    const file = this.held.get(key);
    if (!file) return; // taken away meanwhile
    if (file.size > MOST_MB * 2 ** 20) {
      // It would be refused in the midst of it, and no answer be heard.
      const error = this.help.say("error.file_too_large", { limit: MOST_MB });
      return this.tell(key, { state: "failed", error });
    }
    const stop = new AbortController();
    this.sending.set(key, stop);
    this.tell(key, { state: "sending", part: 0, error: "" });
    try {
      const sent = await this.help.upload(file, (part) => this.tell(key, { part }), stop.signal);
      this.tell(key, { state: "ready", part: 1, sent, name: sent.name, mediaType: sent.mediaType });
      this.held.delete(key);
    } catch (error) {
      if (stop.signal.aborted) return;
      this.tell(key, { state: "failed", error: this.help.words(error) });
      if (/** @type {any} */ (error)?.status === 401) this.help.signOut();
    } finally {
      this.sending.delete(key);
    }
  }

  /** @private @param {string} key @param {Partial<Attachment>} values */
  tell(key, values) {
    this.store.dispatch({ type: "fileTold", key, values });
  }

  /** @param {string} key */
  retry(key) {
    this.tell(key, { state: "waiting", error: "" });
    this.enqueue(key);
  }

  /** @param {string} key */
  remove(key) {
    this.letGo(this.store.state.files.filter((one) => one.key === key));
    this.store.dispatch({ type: "fileGone", key });
    this.help.focus();
  }

  /** @param {Attachment[]} files  They are to go with nothing any more. */
  letGo(files) {
    for (const { key, preview } of files) {
      this.sending.get(key)?.abort();
      this.held.delete(key);
      if (preview) this.help.forget(preview);
    }
  }

  /** @param {SentFile[] | undefined} files  Those of a message that is taken back, beside what is there. */
  takeBack(files) {
    const back = (files ?? []).map(attached);
    const isBack = (/** @type {Attachment} */ { sent }) => back.some((one) => one.key === sent?.id);
    const { files: here } = this.store.state;
    const all = [...back, ...here.filter((one) => !isBack(one))];
    if (all.length > MOST_FILES) this.help.notify(this.help.say("files.tooMany", { n: MOST_FILES }), "error");
    this.letGo([...here.filter(isBack), ...all.slice(MOST_FILES)]);
    this.store.set({ files: all.slice(0, MOST_FILES) });
  }

  /** What goes out with the message, once. @returns {{files?: SentFile[]}} */
  taken() {
    const { files } = this.store.state;
    if (!files.length) return {};
    this.letGo(files);
    this.store.set({ files: [] });
    return { files: files.flatMap(({ sent }) => sent ?? []) };
  }

  /** @param {boolean} dropping whether something is held over the page */
  drop(dropping) {
    if (this.store.state.dropping !== dropping) this.store.set({ dropping });
  }

  /** @param {SentFile} file  Give it back as it was sent. */
  async save(file) {
    try {
      this.help.save(await this.help.fetch(file.id), file.name);
    } catch (error) {
      this.help.notify(this.help.words(error), "error");
    }
  }

  /** @param {SentFile} file @param {string} url where the page has it already */
  view(file, url) {
    this.help.view(file, url);
  }
}
