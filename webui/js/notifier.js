/** Tells what needs somebody by the browser, while nobody looks at any tab; each once. */

import { t } from "./i18n.js";
import { hashOf } from "./route.js";

/**
 * @typedef {import("./state-types.js").State} State
 * @typedef {"insecure" | "denied" | "off" | "on"} Standing
 *
 * @typedef {object} Told
 * @property {string} tag one event has one, in whatever tab it is heard
 * @property {string} title
 * @property {string} body
 * @property {import("./state-types.js").Route} to
 */

const SHOWN = "mimikit-shown";
const LONGEST = 200;

/**
 * What is worth a word to somebody who does not look.
 *
 * @param {State} state
 * @param {State} before
 * @returns {Told[]}
 */
export function toldBetween(state, before) {
  if (before.load !== "ready" || state.load !== "ready") return [];
  /** @type {Told[]} */
  const told = [];
  const { question } = state;
  if (question && question.questionId !== before.question?.questionId) {
    const body = question.question.slice(0, LONGEST);
    told.push({ tag: question.questionId, title: t("notify.question"), body, to: { view: "chat" } });
  }
  for (const message of state.messages === before.messages ? [] : remindersSince(state, before)) {
    const body = (message.reminder ?? "").slice(0, LONGEST);
    told.push({ tag: message.id, title: t("notify.reminder"), body, to: { view: "chat" } });
  }
  for (const trigger of state.triggers === before.triggers ? [] : Object.values(state.triggers)) {
    const was = before.triggers[trigger.id];
    if (trigger.pausedBy !== "breaker" || !was || was.pausedBy === "breaker") continue;
    const to = /** @type {const} */ ({ view: "trigger", id: trigger.id });
    const body = trigger.title.slice(0, LONGEST);
    told.push({ tag: `${trigger.id} breaker`, title: t("notify.breaker"), body, to });
  }
  for (const job of state.jobs === before.jobs ? [] : Object.values(state.jobs)) {
    const was = before.jobs[job.id];
    if (!job.failedTaskId || was === job || !hasFailed(job, was, before.now)) continue;
    const to = /** @type {const} */ ({ view: "task", id: job.failedTaskId });
    told.push({ tag: `${job.id} ${job.failedTaskId}`, title: t("notify.failed"), body: job.title.slice(0, LONGEST), to });
  }
  return told;
}

/** @param {State} state @param {State} before  Those that came, not what an older page brought. */
function remindersSince({ messages }, before) {
  const last = before.messages.at(-1)?.createdAt ?? "";
  const known = new Set(before.messages.map((one) => one.id));
  return messages.filter((one) => one.reminder && one.createdAt >= last && !known.has(one.id));
}

/**
 * @param {import("./types.js").Job} job
 * @param {import("./types.js").Job | undefined} was
 * @param {number} since milliseconds
 */
function hasFailed(job, was, since) {
  if (job.kind === "trigger") {
    if (was) return was.failedTaskId !== job.failedTaskId;
    return job.lastAt !== null && Date.parse(job.lastAt) >= since;
  }
  if (job.state !== "failed") return false;
  if (was) return was.state !== "failed" || was.failedTaskId !== job.failedTaskId;
  return job.endedAt !== null && Date.parse(job.endedAt) >= since; // it began and ended between two looks
}

export class Notifier {
  /**
   * @param {import("./store.js").Store} store
   * @param {{secure: boolean, notification: typeof Notification | undefined,
   *   locks: LockManager | undefined, worker: ServiceWorkerContainer | undefined,
   *   hidden: () => boolean, leading: () => boolean, icon: string,
   *   read: (key: string) => string | null, keep: (key: string, value: string) => boolean,
   *   visit: (told: Told) => void}} ports
   */
  constructor(store, ports) {
    this.store = store;
    this.ports = ports;
    /** @type {(() => void) | null} */
    this.release = null;
    this.holding = false;
    this.look();
  }

  /** @returns {Standing} */
  get standing() {
    const { secure, notification, locks } = this.ports;
    if (!secure || !notification || !locks) return "insecure";
    if (notification.permission === "denied") return "denied";
    const wanted = this.ports.read("notify") === "on";
    return wanted && notification.permission === "granted" ? "on" : "off";
  }

  /** The reader's own click: only then the browser is asked. */
  async toggle() {
    const { notification } = this.ports;
    if (this.standing === "on") this.ports.keep("notify", "");
    else if (notification && this.standing === "off") {
      const answer = await notification.requestPermission();
      this.ports.keep("notify", answer === "granted" ? "on" : "");
    }
    this.store.set({ notify: this.standing });
  }

  /** Shown or hidden: while one tab is looked at, none of them says a word. */
  look() {
    const { locks } = this.ports;
    this.holding = !this.ports.hidden();
    this.release?.();
    this.release = null;
    if (!locks || !this.holding) return;
    void locks.request(SHOWN, { mode: "shared" }, () => {
      if (!this.holding) return undefined; // hidden again before it was granted
      return new Promise((release) => (this.release = () => release(undefined)));
    });
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (!this.ports.hidden() || !this.ports.leading() || this.standing !== "on") return;
    const told = toldBetween(state, before);
    if (told.length) void this.tell(told);
  }

  /** @private @param {Told[]} told */
  async tell(told) {
    const { held = [] } = (await this.ports.locks?.query()) ?? {};
    if (held.some((lock) => lock.name === SHOWN)) return; // another tab is looked at
    for (const one of told) this.show(one);
  }

  /** @private @param {Told} told */
  show(told) {
    const { notification: Shown, icon, worker } = this.ports;
    const options = { body: told.body, tag: told.tag, icon, lang: document.documentElement.lang };
    if (!Shown) return;
    try {
      const note = new Shown(told.title, options);
      note.onclick = () => {
        note.close();
        this.ports.visit(told);
      };
    } catch {
      // On phones only a worker may, which leads back here.
      const data = { hash: hashOf(told.to) };
      void worker?.ready.then((ready) => ready.showNotification(told.title, { ...options, data }));
    }
  }
}
