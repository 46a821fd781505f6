/** Keeps the opened task's detail fresh: what it is, and what its run puts out. */

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../core/api.js").Api} Api
 */

const FOLLOW_MS = 1000;

export class DetailKeeper {
  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    this.store = store;
    this.api = api;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    this.fetching = "";
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    const id = state.session === "in" && state.route.view === "task" ? state.route.id : null;
    if (id !== (state.detail?.id ?? null)) {
      this.store.dispatch({ type: "detailOpened", id });
      if (id) void this.load(id);
      return;
    }
    if (!id || !state.detail) return;
    const was = before.detail?.id === id ? before.detail.task : null;
    const moved = was !== null && hasMoved(was, state.detail.task);
    const grown = this.grown(state, before);
    const back = state.connection === "online" && before.connection !== "online";
    if (moved || grown || (back && state.detail.load === "failed")) void this.load(id);
  }

  /** @private @param {State} state @param {State} before  A step came into its chain, or a trigger of it moved. */
  grown(state, before) {
    const { detail } = state;
    const was = before.detail;
    if (detail?.load !== "ready" || was?.load !== "ready") return false;
    if (detail.trace.length > was.trace.length) return true;
    if (state.triggers === before.triggers) return false;
    return detail.chain.some(({ id }) => state.triggers[id] !== before.triggers[id]);
  }

  /** @param {string} id */
  async load(id) {
    const was = this.told(id);
    try {
      const answer = await this.api.task(id);
      const now = this.told(id); // the stream may have been faster than the answer
      const outdated = hasMoved(was, now) && hasMoved(answer.task, now);
      this.store.dispatch({ type: "detailLoaded", id, answer });
      if (outdated) void this.load(id);
      else void this.readOutput(id);
      if (answer.result?.hasDiff) void this.loadDiff(id);
    } catch (error) {
      const load = /** @type {any} */ (error)?.status === 404 ? "missing" : "failed";
      this.store.dispatch({ type: "detailFailed", id, load });
    }
  }

  /** @private @param {string} id  Once it has ended, what it changed changes no more. */
  async loadDiff(id) {
    if (this.store.state.detail?.diff) return;
    try {
      const diff = await this.api.taskDiff(id);
      this.store.dispatch({ type: "diffLoaded", id, diff, load: "idle" });
    } catch (error) {
      const gone = /** @type {any} */ (error)?.status === 404; // it was kept for its time
      this.store.dispatch({ type: "diffLoaded", id, diff: null, load: gone ? "idle" : "failed" });
    }
  }

  /** @private @param {string} id  What is known of it now. */
  told(id) {
    const { detail } = this.store.state;
    return detail?.id === id ? detail.task : null;
  }

  /** @private @param {string} id read on until the run is over */
  async readOutput(id) {
    if (this.fetching === id) return;
    this.fetching = id;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const more = await this.readPiece(id);
    this.fetching = this.fetching === id ? "" : this.fetching;
    const detail = this.store.state.detail;
    if (detail?.id !== id || detail.output.ended) return;
    const running = detail.task?.state === "running";
    if (more) void this.readOutput(id);
    else if (running) this.timer = setTimeout(() => void this.readOutput(id), FOLLOW_MS);
  }

  /** @private @param {string} id @returns {Promise<boolean>} whether there may be more at once */
  async readPiece(id) {
    const detail = this.store.state.detail;
    if (detail?.id !== id || document.hidden) return false;
    try {
      const { events, offset, ended } = await this.api.output(id, detail.output.offset);
      if (this.store.state.detail?.output.offset !== detail.output.offset) return false;
      this.store.dispatch({ type: "output", id, load: "idle", events, offset, ended });
      return events.length > 0 && !ended;
    } catch (error) {
      const none = /** @type {any} */ (error)?.status === 404; // it has not run: nothing to show
      this.store.dispatch({ type: "output", id, load: none ? "idle" : "failed" });
      return false;
    }
  }
}

/**
 * @param {import("../core/types.js").Task | null} was
 * @param {import("../core/types.js").Task | null} is
 */
function hasMoved(was, is) {
  return is !== null && (was?.state !== is.state || was.attempts !== is.attempts);
}
