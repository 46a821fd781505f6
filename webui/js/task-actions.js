/** What the user can do with the list of work, and with a task's output. */

import { copyText } from "./copy.js";
import { saveFile } from "./save.js";
import { t } from "./i18n.js";
import { readPref, writePref } from "./prefs.js";

/**
 * @typedef {object} TaskHands
 * @property {(text: string, tone?: "info" | "error") => void} notify
 * @property {(error: any) => string} words
 * @property {(jobId: string) => void} loadJob
 */

export class TaskActions {
  /**
   * @param {import("./store.js").Store} store
   * @param {import("./api.js").Api} api
   * @param {TaskHands} hands
   */
  constructor(store, api, hands) {
    this.store = store;
    this.api = api;
    this.hands = hands;
    store.set({ wraps: readPref("wrap") !== "no" });
  }

  /** @param {import("./types.js").Job} job @param {boolean} open */
  openSteps(job, open) {
    this.store.dispatch({ type: "workOpened", id: job.id, open });
    if (open && job.total > job.steps.length) this.hands.loadJob(job.id);
  }

  /** @param {boolean} wraps long lines go on in the next */
  wrapOutput(wraps) {
    this.store.set({ wraps });
    writePref("wrap", wraps ? "" : "no");
  }

  /** @param {string} id */
  async copyOutput(id) {
    await this.withFile(id, async (file) => {
      const done = await copyText(await file.text());
      this.hands.notify(t(done ? "output.copied" : "output.notCopied"), done ? "info" : "error");
    });
  }

  /** @param {string} id */
  async saveOutput(id) {
    await this.withFile(id, async (file) => saveFile(file, `${id}.txt`));
  }

  /** @private @param {string} id @param {(file: Blob) => Promise<void>} act */
  async withFile(id, act) {
    const key = `output ${id}`;
    this.store.dispatch({ type: "pending", id: key, what: "output" });
    try {
      await act(await this.api.outputFile(id));
    } catch (error) {
      this.hands.notify(this.hands.words(error), "error");
    } finally {
      this.store.dispatch({ type: "pending", id: key, what: "" });
    }
  }
}
