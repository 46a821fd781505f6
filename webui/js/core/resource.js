/** What the server is asked for: once, again when it is stale, shown until the answer comes. */

export class Resource {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  refreshing;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  resting;

  /**
   * @param {(key: any) => Promise<any>} request
   * @param {(loaded: Loaded, key: any) => void} update
   */
  constructor(request, update) {
    this.request = request;
    this.update = update;
  }

  /** @param {any} [key]  Of what is asked for, where there is more than one. */
  async load(key) {
    this.update({ load: "loading" }, key);
    try {
      this.update({ load: "ready", data: await this.request(key) }, key);
    } catch (error) {
      const missing = /** @type {any} */ (error)?.status === 404;
      this.update({ load: missing ? "missing" : "failed", error }, key);
    }
  }

  /** @param {() => void} act @param {number} ms  Once, however often it is called until then. */
  soon(act, ms) {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = undefined;
      act();
    }, ms);
  }

  /** @param {any} key @param {number} ms  Debounced: only the last key called for is loaded. */
  rested(key, ms) {
    this.wake();
    this.resting = setTimeout(() => void this.load(key), ms);
  }

  /** Cancels what `rested` would load. */
  wake() {
    clearTimeout(this.resting);
  }
}

/**
 * One that is kept as a part of the state.
 *
 * @param {Store} store @param {"memory" | "backlog" | "usage" | "home"} part
 * @param {() => Promise<any>} request
 */
export function stateResource(store, part, request) {
  return new Resource(request, (loaded) => store.set({ [part]: withLoaded(store.state[part], loaded) }));
}

/**
 * A part of the state after loading: what is known stays until the next comes, and when that fails.
 *
 * @template {{load: string}} T
 * @param {T} known
 * @param {Loaded} loaded
 * @returns {T}
 */
export function withLoaded(known, { load, data }) {
  if (load === "ready") return { ...known, ...data, load };
  const first = known.load !== "ready";
  return first ? { ...known, load: load === "loading" ? load : "failed" } : known;
}
