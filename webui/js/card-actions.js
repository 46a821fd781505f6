/** What the user can do with what the conversation shows of work, and with the conversation's view. */

import { isLong } from "./cards.js";
import { matches, messagesOf, next } from "./finding.js";
import { newId } from "./ids.js";
import { timeline } from "./select.js";

/**
 * @typedef {import("./cards.js").FoldEntry} FoldEntry
 *
 * @typedef {object} Help
 * @property {(text: string, tone?: "info" | "error") => void} notify
 * @property {(error: any) => string} words why a request failed
 * @property {() => void} signOut
 * @property {(selector: string) => void} focus
 * @property {(key: string) => void} showRow
 * @property {() => Promise<void>} loadOlder
 */

/** What stands lower than this has no room below it. Units: the window's height. */
const LOW = 0.6;

/** So many pages of older messages are loaded to look in at once. */
const PAGES_BACK = 40;

export class CardActions {
  /** @param {import("./store.js").Store} store @param {import("./api.js").Api} api @param {Help} help */
  constructor(store, api, help) {
    this.store = store;
    this.api = api;
    this.help = help;
  }

  /** @param {string} key @param {boolean} open */
  open(key, open) {
    this.store.dispatch({ type: "opened", key, open });
  }

  /** @param {string} key @param {boolean} open @param {Event} event  Closed, its beginning is come back to. */
  openLong(key, open, event) {
    this.open(key, open);
    const row = open ? null : rowOf(event);
    if (row && row.getBoundingClientRect().top < 0) this.help.showRow(row.id.replace(/^(m|row)-/, ""));
  }

  /** @param {string} id of a job, all of it  The card shows what comes of it. */
  async cancel(id) {
    await this.ordered(id, "cancel", () => this.api.cancelJob(id, newId("cmd")));
  }

  /** @param {string} id of a task  The card shows what comes of it. */
  async retry(id) {
    await this.ordered(id, "retry", () => this.api.order(id, "retry", newId("cmd")));
  }

  /** @private @param {string} id @param {string} what @param {() => Promise<any>} act */
  async ordered(id, what, act) {
    this.store.dispatch({ type: "pending", id, what });
    try {
      const answer = await act();
      if (answer?.ok === false) this.help.notify(this.help.words(answer), "error");
    } catch (error) {
      this.onError(error);
    } finally {
      this.store.dispatch({ type: "pending", id, what: "" });
    }
  }

  /** @param {FoldEntry} entry @param {boolean} open @param {Event} event  What opens out of sight is gone to. */
  async openFold(entry, open, event) {
    this.open(entry.key, open);
    if (!open) return;
    const isLow = (rowOf(event)?.getBoundingClientRect().bottom ?? 0) > innerHeight * LOW;
    await this.loadFirings(entry, true);
    if (isLow) this.help.showRow(entry.key);
  }

  /** @param {FoldEntry} entry @param {boolean} [anew]  What its runs told, further back. */
  async loadFirings(entry, anew = false) {
    const { key, message, since } = entry;
    const known = anew ? undefined : this.store.state.firings[key];
    this.store.dispatch({ type: "firings", key, load: "loading" });
    try {
      const until = known?.before ?? message.createdAt;
      const page = await this.api.firings(message.triggerId ?? "", until);
      const fresh = page.messages.toReversed().filter((/** @type {any} */ one) => one.createdAt >= since);
      const isAll = fresh.length < page.messages.length;
      const messages = [...(known?.messages ?? []), ...fresh];
      const before = isAll ? null : page.before;
      this.store.dispatch({ type: "firings", key, load: "ready", messages, before });
    } catch (error) {
      this.store.dispatch({ type: "firings", key, load: "failed" });
      this.onError(error);
    }
  }

  // --- finding

  startFinding() {
    this.store.dispatch({ type: "finding", values: {} });
    this.help.focus("#find-text");
  }

  stopFinding() {
    this.store.dispatch({ type: "finding", values: null });
    this.help.focus("#scroll");
  }

  /** @param {string} query  From the end back, the first that has it. */
  find(query) {
    this.store.dispatch({ type: "finding", values: { query, at: null } });
    const found = this.found();
    if (found.length) this.goTo(found[found.length - 1]);
  }

  /** @param {1 | -1} way later, or earlier: there what is not loaded yet is looked at as well */
  async step(way) {
    const { finding } = this.store.state;
    if (!finding?.query.trim() || finding.busy) return;
    const to = next(this.found(), finding.at, way);
    if (to) return this.goTo(to);
    if (way < 0) await this.stepFurtherBack(finding.query);
  }

  /** @private @param {string} query */
  async stepFurtherBack(query) {
    this.store.dispatch({ type: "finding", values: { busy: true } });
    for (let page = 0; page < PAGES_BACK && this.store.state.before; page += 1) {
      const known = this.found().length;
      await this.help.loadOlder();
      const { finding, older } = this.store.state;
      if (finding?.query !== query || older === "failed" || this.found().length > known) break;
    }
    if (this.store.state.finding?.query !== query) return;
    this.store.dispatch({ type: "finding", values: { busy: false } });
    const to = next(this.found(), this.store.state.finding.at, -1);
    if (to) this.goTo(to);
  }

  /** @private */
  found() {
    const { state } = this.store;
    return matches(timeline(state), state.jobs, state.finding?.query ?? "");
  }

  /** @private @param {string} key */
  goTo(key) {
    const { state } = this.store;
    this.store.dispatch({ type: "finding", values: { at: key } });
    const entry = timeline(state).find((one) => one.key === key);
    for (const message of entry ? messagesOf(entry) : []) {
      if (isLong(message.text, entry?.type === "card")) this.open(`whole-${message.id}`, true);
    }
    this.help.showRow(key);
  }

  /** @private @param {any} error */
  onError(error) {
    if (error?.status === 401) return this.help.signOut();
    this.help.notify(this.help.words(error), "error");
  }
}

/** @param {Event} event */
function rowOf({ target }) {
  return target instanceof Element ? target.closest("#timeline > li") : null;
}
