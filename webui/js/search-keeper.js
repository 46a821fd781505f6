/** Keeps what was found fresh: asked for once the typing rests, and when one comes to an address. */

import { Keeper } from "./keeper.js";
import { hashOf } from "./route.js";
import { askedBy } from "./search-state.js";

/**
 * @typedef {import("./state-types.js").State} State
 *
 * @typedef {object} Page
 * @property {(error: any) => string} words why a request failed
 * @property {(hash: string) => void} replace the address, without a step for "back"
 */

/** The search begins once the typing rests. */
export const REST_MS = 250;
const SHOWN = { all: 50, messages: 100, memory: 100, work: 100 };

/** @extends {Keeper<import("./keeper.js").Timers & Page>} */
export class SearchKeeper extends Keeper {
  /** @param {State} state @param {State} before */
  onChange(state, before) {
    const { route, search } = state;
    if (state.session !== "in" || route.view !== "search") return;
    const came = route !== before.route || before.session !== "in";
    const query = search.query.trim();
    if (came && route.q !== query) this.store.dispatch({ type: "searchTyped", query: route.q });
    else if (search.query !== before.search.query && query !== route.q) {
      this.rested(() => this.settle(), REST_MS);
    }
    const asked = askedBy(route);
    const anew = before.route.view !== "search" || before.session !== "in";
    if (asked !== search.asked || (asked && came && anew)) this.ask();
  }

  /** What was typed is what the address says, and what is asked for. */
  settle() {
    this.wake();
    const { route, search } = this.store.state;
    if (route.view !== "search") return;
    const settled = { ...route, q: search.query.trim() };
    this.ports.replace(hashOf(settled));
    this.store.set({ route: settled });
    if (askedBy(settled) === search.asked) this.ask();
  }

  /** @private */
  ask() {
    const { route } = this.store.state;
    if (route.view !== "search") return;
    const { q, kind } = route;
    const asked = askedBy(route);
    this.store.dispatch({ type: "searchAsked", asked, kind });
    if (asked) void this.fetch(asked, q.trim(), kind);
  }

  /** @private @param {string} asked @param {string} q @param {import("./state-types.js").SearchKind} kind */
  async fetch(asked, q, kind) {
    try {
      const answer = await this.api.search(q, kind, SHOWN[kind]);
      this.store.dispatch({ type: "searchDone", asked, answer });
    } catch (error) {
      this.store.dispatch({ type: "searchDone", asked, error: this.ports.words(error) });
    }
  }
}
