/** What one does at home and with the log, and what one takes away. */

import { newId } from "./ids.js";
import { wanted } from "./home-keeper.js";
import { writePref } from "./prefs.js";
import { saveFile } from "./save.js";

/**
 * @typedef {import("./state-types.js").State} State
 *
 * @typedef {object} HomePorts
 * @property {(id: string, what: string, tell: boolean, act: () => Promise<any>) => Promise<boolean>} ordered
 * @property {(error: any) => void} onError
 * @property {() => void} goAnswer where the question is answered
 */

export class HomeActions {
  /** @param {import("./store.js").Store} store @param {import("./api.js").Api} api @param {HomePorts} ports */
  constructor(store, api, ports) {
    this.store = store;
    this.api = api;
    this.ports = ports;
  }

  /** @param {string} id of a task that failed  Do it again, and stay here. */
  retry(id) {
    return this.ports.ordered(id, "retry", true, async () => {
      const answer = await this.api.order(id, "retry", newId("cmd"));
      if (answer?.ok !== false) this.forget([id]);
      return answer;
    });
  }

  /** @param {"on" | "off" | "run"} what  Of improvements of its own. */
  selfAwake(what) {
    return this.ports.ordered("self-awake", `awake_${what}`, true, async () => {
      const answer = await this.api.selfAwake(what, newId("cmd"));
      this.store.set({ home: { ...this.store.state.home, at: 0 } });
      return answer;
    });
  }

  goAnswer() {
    this.ports.goAnswer();
  }

  /** @param {string[]} ids of tasks that failed and were looked at */
  async dismiss(ids) {
    this.forget(ids);
    try {
      for (const id of ids) await this.api.dismiss(id);
    } catch (error) {
      this.ports.onError(error);
      this.store.set({ home: { ...this.store.state.home, at: 0 } }); // they are shown again
    }
  }

  /** @private @param {string[]} ids  Home speaks of them no more. */
  forget(ids) {
    const { home } = this.store.state;
    if (!home.view) return;
    const needs = home.view.needs.filter((need) => !ids.includes(need.taskId ?? ""));
    this.store.set({ home: { ...home, view: { ...home.view, needs } } });
  }

  /** @param {string} pointed the key of a bar */
  point(pointed) {
    const { day } = this.store.state;
    if (day.pointed !== pointed) this.store.set({ day: { ...day, pointed } });
  }

  /** @param {boolean} listed */
  list(listed) {
    this.store.set({ day: { ...this.store.state.day, listed } });
    writePref("day", listed ? "list" : "");
  }

  // --- the log

  /** @param {Partial<State["logs"]>} values */
  setLogs(values) {
    this.store.set({ logs: { ...this.store.state.logs, ...values } });
  }

  async olderLogs() {
    const { logs } = this.store.state;
    if (!logs.before || logs.older === "loading") return;
    this.setLogs({ older: "loading" });
    try {
      const asked = wanted(logs);
      const page = await this.api.logs({ ...asked, before: logs.before, limit: "200" });
      const { lines } = this.store.state.logs;
      if (JSON.stringify(wanted(this.store.state.logs)) !== JSON.stringify(asked)) return;
      this.setLogs({ lines: [...page.lines, ...lines], before: page.before, older: "idle" });
    } catch (error) {
      this.setLogs({ older: "failed" });
      this.ports.onError(error);
    }
  }

  /** What is shown of the log, as a file. */
  saveLogs() {
    const lines = this.store.state.logs.lines.map(({ id: _, facts, ...head }) =>
      JSON.stringify({ ...head, ...facts }),
    );
    const file = new Blob([`${lines.join("\n")}\n`], { type: "application/x-ndjson" });
    saveFile(file, `mimikit-log-${today()}.jsonl`);
  }

  // --- what is taken away

  /** @param {"md" | "json"} format */
  saveChat(format) {
    return this.save({ what: "chat", format }, `mimikit-chat-${today()}.${format}`);
  }

  /** @param {string} id @param {"md" | "json"} format  One request with all that came of it. */
  saveTrace(id, format) {
    return this.save({ what: "trace", id, format }, `mimikit-${id}.${format}`);
  }

  /** @private @param {Record<string, string>} asked @param {string} name */
  async save(asked, name) {
    try {
      saveFile(await this.api.exported(asked), name);
    } catch (error) {
      this.ports.onError(error);
    }
  }
}

function today() {
  return new Date().toISOString().slice(0, 10);
}
