/** What the server is asked for: asked once, asked anew when it is stale, shown until it comes. */

export class Resource {
  /**
   * @param {Timers} timers
   * @param {(key: any) => Promise<any>} request
   * @param {(told: Told, key: any) => void} tell
   */
  constructor(timers, request, tell) {
    this.timers = timers;
    this.request = request;
    this.tell = tell;
    /** @type {any} */
    this.refreshing = null;
    /** @type {any} */
    this.resting = null;
  }

  /** @param {any} [key]  Of what is asked for, where there is more than one. */
  async load(key) {
    this.tell({ load: "loading" }, key);
    try {
      this.tell({ load: "ready", data: await this.request(key) }, key);
    } catch (error) {
      const missing = /** @type {any} */ (error)?.status === 404;
      this.tell({ load: missing ? "missing" : "failed", error }, key);
    }
  }

  /** @param {() => void} act @param {number} ms  Once, however often it is called until then. */
  soon(act, ms) {
    if (this.refreshing !== null) return;
    this.refreshing = this.timers.later(() => {
      this.refreshing = null;
      act();
    }, ms);
  }

  /** @param {any} key @param {number} ms  Load only what was called last: the typing rests. */
  rested(key, ms) {
    this.wake();
    this.resting = this.timers.later(() => {
      this.resting = null;
      void this.load(key);
    }, ms);
  }

  /** Nothing is waited for any more. */
  wake() {
    if (this.resting !== null) this.timers.drop(this.resting);
    this.resting = null;
  }
}

/**
 * One that is kept as a part of the state.
 *
 * @param {Store} store @param {"memory" | "backlog" | "usage" | "home"} part
 * @param {Timers} timers @param {() => Promise<any>} request
 */
export function kept(store, part, timers, request) {
  const tell = (/** @type {Told} */ told) => store.set({ [part]: heard(store.state[part], told) });
  return new Resource(timers, request, tell);
}

/**
 * A part of the state after asking: what is known stays until the next comes, and when none comes.
 *
 * @template {{load: string}} T
 * @param {T} known
 * @param {Told} told
 * @returns {T}
 */
export function heard(known, { load, data }) {
  if (load === "ready") return { ...known, ...data, load };
  const first = known.load !== "ready";
  return first ? { ...known, load: load === "loading" ? load : "failed" } : known;
}
