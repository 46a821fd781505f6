/** What the user can do with a reply: stop it, stop all that runs, have a message answered again. */

import { newId } from "./ids.js";
import { t, tn } from "./i18n.js";
import { messageOf } from "./message-state.js";
import { live } from "./select.js";

/**
 * @typedef {object} TurnHands
 * @property {(text: string, tone?: "info" | "error") => void} notify
 * @property {(id: string, what: "cancel" | "retry", tell: boolean) => Promise<boolean>} order
 * @property {(item: import("./state-types.js").OutboxItem) => void} hand hand a message over
 */

/** What `state.confirming` holds while it is asked whether all is to stop. */
export const STOP_ALL = "stop all";

export class TurnActions {
  /** @param {import("./store.js").Store} store @param {TurnHands} hands */
  constructor(store, hands) {
    this.store = store;
    this.hands = hands;
  }

  /** Stop the reply that is being written, and nothing else: its message says so. */
  async stop() {
    const turnId = live(this.store.state)?.turnId;
    if (!turnId) return;
    const done = await this.hands.order(turnId, "cancel", false);
    if (!done) this.hands.notify(t("stop.over"), "error");
  }

  /** @param {boolean} asks whether all is to stop; else it is not */
  askStopAll(asks) {
    this.store.set({ confirming: asks ? STOP_ALL : "" });
  }

  /** Stop what runs beside the reply. */
  async stopAll() {
    this.askStopAll(false);
    const running = live(this.store.state)?.running ?? [];
    const told = await Promise.all(running.map(({ id }) => this.hands.order(id, "cancel", false)));
    const n = told.filter(Boolean).length;
    const all = n === running.length;
    this.hands.notify(
      all ? tn("stop.done", n) : t("stop.some", { n, all: running.length }),
      all ? "info" : "error",
    );
  }

  /** @param {string} given of a message that is to be answered again, or of its reply */
  again(given) {
    const found = messageOf(this.store.state, given);
    const id = found?.role === "agent" ? (found.inReplyTo.at(-1) ?? "") : given;
    const said = messageOf(this.store.state, id) ?? found;
    if (!id || !said || this.isAsked(id, said.retryOf ?? id)) return;
    const { text, files } = said;
    const createdAt = new Date(this.store.state.skewMs + Date.now()).toISOString();
    /** @type {import("./state-types.js").OutboxItem} */
    const item = { kind: "retry", id: newId("msg"), text, files, retryOf: id, createdAt, state: "sending" };
    this.hands.hand(item);
  }

  /** @private @param {string[]} ids of one message  Whether it waits to be answered again already. */
  isAsked(...ids) {
    const { inbox, outbox } = this.store.state;
    const waiting = [...inbox, ...outbox.filter((item) => item.state !== "failed")];
    return waiting.some(({ retryOf }) => ids.includes(retryOf ?? ""));
  }
}
