/** Shows in title and icon what came unseen; tabs tell one another through what the browser keeps. */

import { badgeOf, furthest, iconWith, isInSight, unread } from "./unread.js";

const KEY = "seen";

export class UnreadKeeper {
  /**
   * @param {import("./store.js").Store} store
   * @param {{read: (key: string) => string | null, keep: (key: string, value: string) => boolean,
   *   hidden: () => boolean, show: (title: string, icon: string) => void, icon: string}} ports
   */
  constructor(store, ports) {
    this.store = store;
    this.ports = ports;
    /** @type {import("./unread.js").Seen | null} */
    this.seen = seenFrom(ports.read(KEY));
    this.shown = "";
  }

  /** The state has changed, somebody looks, or another tab was looked at. */
  look() {
    const { state } = this.store;
    if (state.load === "ready" && state.session === "in") {
      const inSight = !this.ports.hidden() && isInSight(state);
      if (inSight || !this.seen) this.keep(furthest(this.seen, state));
    }
    const badge = badgeOf(unread(state, this.seen));
    if (badge === this.shown) return;
    this.shown = badge;
    this.ports.show(badge ? `(${badge}) mimikit` : "mimikit", badge ? iconWith(badge) : this.ports.icon);
  }

  /** Another tab has seen something. @param {string | null} kept */
  hear(kept) {
    this.seen = seenFrom(kept) ?? this.seen;
    this.look();
  }

  /** @private @param {import("./unread.js").Seen} seen */
  keep(seen) {
    const text = JSON.stringify(seen);
    if (text === JSON.stringify(this.seen)) return;
    this.seen = seen;
    this.ports.keep(KEY, text);
  }
}

/** @param {string | null} kept @returns {import("./unread.js").Seen | null} */
function seenFrom(kept) {
  try {
    const { id, at, question } = JSON.parse(kept ?? "null") ?? {};
    return typeof id === "string" ? { id, at: String(at), question: String(question ?? "") } : null;
  } catch {
    return null;
  }
}
