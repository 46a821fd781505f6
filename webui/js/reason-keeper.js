/** Fetches why a reply says what it says, when one asks. */

/**
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Reason} Reason
 */

export class ReasonKeeper {
  /** @param {import("./store.js").Store} store @param {import("./api.js").Api} api */
  constructor(store, api) {
    this.store = store;
    this.api = api;
  }

  /** @param {State} state */
  onChange({ route, session, reason }) {
    const id = session === "in" && route.view === "reason" ? route.id : null;
    if (id === (reason?.id ?? null)) return;
    this.tell(id ? { id, load: "loading", told: null } : null);
    if (id) void this.load(id);
  }

  /** @param {string} id */
  async load(id) {
    try {
      const told = await this.api.turn(id);
      if (this.isAsked(id)) this.tell({ id, load: "ready", told });
    } catch (error) {
      const load = /** @type {any} */ (error)?.status === 404 ? "missing" : "failed";
      if (this.isAsked(id)) this.tell({ id, load, told: null });
    }
  }

  again() {
    const { reason } = this.store.state;
    if (!reason) return;
    this.tell({ ...reason, load: "loading" });
    void this.load(reason.id);
  }

  /** @private @param {string} id  One may have gone on meanwhile. */
  isAsked(id) {
    return this.store.state.reason?.id === id;
  }

  /** @private @param {Reason | null} reason */
  tell(reason) {
    this.store.dispatch({ type: "reasonTold", reason });
  }
}
