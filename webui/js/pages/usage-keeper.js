/** Keeps the usage page fresh: loaded when one comes to it, and when what was used has changed. */

import { Keeper } from "../core/keeper.js";

/** @typedef {import("../core/state-types.js").State} State */

const BY = /** @type {const} */ (["day", "engine", "role", "trigger"]);
const REFRESH_MS = 2000;

/** @extends {Keeper<import("../core/keeper.js").Timers>} */
export class UsageKeeper extends Keeper {
  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (state.route.view !== "usage" || state.session !== "in") return;
    const opened = state.route !== before.route || state.session !== before.session;
    const runs = (/** @type {State} */ at) => at.status?.usage.runs;
    if (opened) void this.load();
    else if (runs(state) !== runs(before)) this.soon(() => void this.load(), REFRESH_MS);
  }

  async load() {
    try {
      const [day, engine, role, trigger] = await Promise.all(BY.map((by) => this.api.usage(by)));
      this.store.set({ usage: { load: "ready", day, engine, role, trigger } });
    } catch {
      const { usage } = this.store.state;
      this.store.set({ usage: { ...usage, load: usage.day ? "ready" : "failed" } });
    }
  }
}
