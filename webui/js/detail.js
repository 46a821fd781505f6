/** Keeps the opened task's detail fresh: what it is, and what its run puts out. */

import { endOf, hasGaps, noOutput } from "./output.js";

/**
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./api.js").Api} Api
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
    return detail.graph.nodes.some(({ id }) => state.triggers[id] !== before.triggers[id]);
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
      void this.loadJob(id);
    } catch (error) {
      const isGone = /** @type {any} */ (error)?.status === 404;
      if (isGone && (await this.openJob(id))) return;
      this.store.dispatch({ type: "detailFailed", id, load: isGone ? "missing" : "failed" });
    }
  }

  /** @private @param {string} id  The work that it is a step of. */
  async loadJob(id) {
    try {
      const job = await this.api.job(id);
      this.store.dispatch({ type: "detailJob", id, job });
    } catch {
      // the step stands alone
    }
  }

  /** @private @param {string} id @returns {Promise<boolean>} whether it named work, which is shown by its step */
  async openJob(id) {
    try {
      const job = await this.api.job(id);
      if (job.taskId === id || this.store.state.detail?.id !== id) return false;
      this.store.set({ route: { view: "task", id: job.taskId } });
      return true;
    } catch {
      return false;
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

  /** @private @param {string} id  Its end first, then its beginning, then what comes. */
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
    const output = this.shown(id);
    if (!output || document.hidden) return false;
    const isFirst = !output.pages.length;
    if (!isFirst) return this.readOn(id, output);
    const more = await this.readPart(id, { before: "end" });
    const [last] = this.shown(id)?.pages ?? [];
    if (last?.start) await this.readPart(id, { offset: "0", before: String(last.start) });
    return more;
  }

  /** @private @param {string} id @param {import("./state-types.js").Output} output */
  async readOn(id, output) {
    const more = await this.readPart(id, { offset: String(endOf(output)) });
    const now = this.shown(id);
    if (!now?.ended || !hasGaps(now)) return more;
    // As it ends its result may have what its record lacks: read it anew, once.
    this.store.dispatch({ type: "outputTold", id, ...noOutput() });
    await this.readPiece(id);
    return false;
  }

  /** @param {string} id @param {number} from @param {number} to  What lies between two pages. */
  async fillOutput(id, from, to) {
    this.store.dispatch({ type: "outputTold", id, busy: from });
    await this.readPart(id, { offset: String(from), before: String(to) });
    this.store.dispatch({ type: "outputTold", id, busy: null });
  }

  /** @private @param {string} id @param {{offset?: string, before?: string}} place */
  async readPart(id, place) {
    try {
      const part = await this.api.outputPage(id, place);
      this.store.dispatch({ type: "output", id, part });
      return part.events.length > 0 && !part.ended;
    } catch (error) {
      const none = /** @type {any} */ (error)?.status === 404; // it has not run: nothing to show
      this.store.dispatch({ type: "outputTold", id, load: none ? "idle" : "failed" });
      return false;
    }
  }

  /** @private @param {string} id */
  shown(id) {
    const { detail } = this.store.state;
    return detail?.id === id ? detail.output : null;
  }
}

/**
 * @param {import("./types.js").Task | null} was
 * @param {import("./types.js").Task | null} is
 */
function hasMoved(was, is) {
  return is !== null && (was?.state !== is.state || was.attempts !== is.attempts);
}
