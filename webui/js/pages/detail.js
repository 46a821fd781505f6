/** The opened task: how its state changes, and what keeps it and its run's output fresh. */

const FOLLOW_MS = 1000;
export const OUTPUT_SHOWN = 200_000;

/** @type {Reducers} */
export const TASK_ACTIONS = {
  detailOpened,
  detailLoaded: (state, { id, answer }) =>
    withDetail(state, id, () => {
      const { task, result = null, events = [], trace = [], chain = [], usage = null } = answer;
      return { load: "ready", task, result, events, trace, chain, usage };
    }),
  detailFailed: (state, { id, load }) => withDetail(state, id, () => ({ load })),
  diffLoaded: (state, { id, diff, load }) =>
    withDetail(state, id, () => ({ diff, diffLoad: load })),
  unfolded: (state, { key, open }) =>
    withDetail(state, state.detail?.id, ({ unfolded }) => ({
      unfolded: { ...unfolded, [key]: open },
    })),
  output,
  wholeOutput: (state) => withDetail(state, state.detail?.id, () => ({ output: { ...silent, whole: true } })),
};

/** @type {TaskOutput}  Nothing is read yet. */
const silent = { blocks: [], dropped: 0, offset: null, ended: false, load: "idle", whole: false };

/**
 * @param {State} state
 * @param {string | undefined} id  An answer to what is not open any more is not heard.
 * @param {(detail: TaskPage) => Partial<TaskPage>} change
 * @returns {State}
 */
function withDetail(state, id, change) {
  const { detail } = state;
  return detail && detail.id === id
    ? { ...state, detail: { ...detail, ...change(detail) } }
    : state;
}

/** @param {State} state @param {{id: string | null}} action @returns {State} */
function detailOpened(state, { id }) {
  if (id === null) return { ...state, detail: null };
  if (state.detail?.id === id) return state;
  const task = state.tasks[id] ?? null;
  const none = { result: null, events: [], trace: [], chain: [], usage: null };
  /** @type {Pick<TaskPage, "diff" | "diffLoad" | "unfolded">} */
  const unchanged = { diff: null, diffLoad: "idle", unfolded: {} };
  const detail = { id, task, ...none, ...unchanged, output: silent };
  return { ...state, detail: { ...detail, load: "loading" } };
}

/**
 * More of a run's output, or that it could not be had.
 *
 * @param {State} state
 * @param {{id: string, load: TaskOutput["load"], events?: OutputEvent[],
 *   offset?: string, ended?: boolean}} action
 * @returns {State}
 */
function output(state, { id, load, events = [], offset, ended }) {
  return withDetail(state, id, ({ output: before }) => {
    const all = appended(before.blocks, events);
    const { blocks, dropped } = before.whole ? { blocks: all, dropped: 0 } : shortened(all);
    const at = { offset: offset ?? before.offset, ended: ended ?? before.ended };
    const { whole } = before;
    return { output: { blocks, dropped: before.dropped + dropped, ...at, load, whole } };
  });
}

/** What a run did that is worth a line of its own; the rest is its life's paperwork. */
const SHOWN = new Set([
  "output",
  "line",
  "delta",
  "message",
  "tool",
  "command",
  "file",
  "note",
  "error",
]);

/**
 * Events that belong together become one block; an unfinished line goes with its stream's next event.
 *
 * @param {OutputBlock[]} blocks
 * @param {OutputEvent[]} events
 */
function appended(blocks, events) {
  const result = [...blocks];
  for (const event of events) {
    if (event.type === "reset" && result.at(-1)?.type === "delta") result.pop();
    if (!SHOWN.has(event.type) || !event.text) continue;
    const stream = event.stream ?? event.data?.stream ?? null;
    const replaced = result.findIndex((block) => block.type === "line" && block.stream === stream);
    if (replaced >= 0) result.splice(replaced, 1);
    const last = result.at(-1);
    const flows = event.type === "output" || event.type === "delta";
    if (flows && last?.type === event.type && last.stream === stream) {
      result[result.length - 1] = { ...last, text: last.text + event.text };
    } else {
      result.push({ type: event.type, stream, text: event.text });
    }
  }
  return result;
}

/** @param {OutputBlock[]} blocks the end of them, what fits on a page */
function shortened(blocks) {
  let over = blocks.reduce((sum, block) => sum + block.text.length, 0) - OUTPUT_SHOWN;
  if (over <= 0) return { blocks, dropped: 0 };
  const dropped = over;
  const kept = [];
  for (const block of blocks) {
    const cut = Math.min(over, block.text.length);
    over -= cut;
    if (cut < block.text.length) kept.push({ ...block, text: block.text.slice(cut) });
  }
  return { blocks: kept, dropped };
}

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

/** @param {Task | null} was @param {Task | null} is */
function hasMoved(was, is) {
  return is !== null && (was?.state !== is.state || was.attempts !== is.attempts);
}
