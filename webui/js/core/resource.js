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
    clearTimeout(this.resting);
    this.update({ load: "loading" }, key);
    try {
      this.update({ load: "ready", data: await this.request(key) }, key);
    } catch (error) {
      const missing = /** @type {any} */ (error)?.status === 404;
      this.update({ load: missing ? "missing" : "failed", error }, key);
    }
  }

  /**
   * Kept fresh: loaded when one comes to its page, and anew when what it was made of has changed.
   *
   * @param {unknown[] | null} is what it is made of; null: its page is not shown
   * @param {unknown[] | null} was
   * @param {number} ms
   */
  follow(is, was, ms) {
    if (is && !was) void this.load();
    else if (is?.some((part, at) => part !== was?.[at])) this.soon(() => void this.load(), ms);
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
    clearTimeout(this.resting);
    this.update({ load: "loading" }, key);
    this.resting = setTimeout(() => void this.load(key), ms);
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

/** What was ordered shows with the consumer's next heartbeats. */
const SETTLED_MS = [0, 2000, 6000];

/** A page of settings, kept as a part of the state that bears its name. */
export class SettingsPage {
  /**
   * @param {Store} store @param {Api} api @param {Actions} page
   * @param {"engines" | "life"} part @param {() => Promise<any>} request
   */
  constructor(store, api, page, part, request) {
    this.store = store;
    this.api = api;
    this.page = page;
    this.part = part;
    this.all = new Resource(request, (told) => {
      const error = told.error ? page.why(told.error) : "";
      store.patch(part, { ...withLoaded(store.state[part], told), error });
    });
  }

  /** @param {State} state @param {State} before  The status says that something may have changed. */
  onChange(state, before) {
    this.all.follow(this.madeOf(state), this.madeOf(before), SETTLED_MS[1]);
  }

  /** @private @param {State} state */
  madeOf({ session, route, status }) {
    if (session !== "in" || route.view !== this.part) return null;
    const { consumer, engines, byEngine, usage, workers } = status ?? {};
    return [JSON.stringify([consumer, engines, byEngine, usage?.runs, workers?.busy])];
  }

  settle() {
    for (const ms of SETTLED_MS) setTimeout(() => void this.all.load(), ms);
  }

  /** @param {string} id @param {string} what @param {() => Promise<any>} act  One at a time. */
  async ordered(id, what, act) {
    if (this.store.state.pending[id]) return false;
    const done = await this.page.ordered(id, what, true, act);
    if (done) this.settle();
    return done;
  }
}
