/** The opened task: what keeps it and its run's output fresh. */

import { Resource } from "../core/resource.js";

const FOLLOW_MS = 1000;
export const OUTPUT_SHOWN = 200_000;
/** What a run did that is worth a line of its own; the rest is its life's paperwork. */
const SHOWN = ["output", "line", "delta", "message", "tool", "command", "file", "note", "error"];

/** @type {TaskOutput}  Nothing is read yet. */
const silent = { blocks: [], dropped: 0, offset: null, ended: false, load: "idle", whole: false };

/** @param {string} id @param {Task | null} task @returns {TaskPage} */
function opened(id, task) {
  const none = { result: null, events: [], trace: [], chain: [], usage: null, diff: null };
  return { id, task, ...none, load: "loading", diffLoad: "idle", unfolded: {}, output: silent };
}

/** @param {TaskOutput} output @param {OutputEvent[]} events  With more of it: its end, or all. */
export function withMore(output, events) {
  const blocks = events.reduce(withEvent, output.blocks);
  const length = blocks.reduce((sum, block) => sum + block.text.length, 0);
  const dropped = output.whole ? 0 : Math.max(0, length - OUTPUT_SHOWN);
  let over = dropped;
  const kept = blocks.map((block) => {
    const cut = Math.min(over, block.text.length);
    over -= cut;
    return { ...block, text: block.text.slice(cut) };
  });
  const shown = kept.filter((block) => block.text);
  return { ...output, blocks: shown, dropped: output.dropped + dropped };
}

/**
 * Events that belong together become one block; an unfinished line goes with its stream's next event.
 *
 * @param {OutputBlock[]} blocks
 * @param {OutputEvent} event
 */
function withEvent(blocks, { type, text, stream: own, data }) {
  if (type === "reset" && blocks.at(-1)?.type === "delta") return blocks.slice(0, -1);
  if (!SHOWN.includes(type) || !text) return blocks;
  const stream = own ?? data?.stream ?? null;
  const kept = blocks.filter((block) => block.type !== "line" || block.stream !== stream);
  const last = kept.at(-1);
  const flows = (type === "output" || type === "delta") && last?.type === type;
  if (!flows || last.stream !== stream) return [...kept, { type, stream, text }];
  return kept.with(-1, { ...last, text: last.text + text });
}

export class DetailKeeper {
  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    this.store = store;
    this.api = api;
    this.diff = new Resource(api.taskDiff, ({ load, data }, id) =>
      this.tell(id, { diff: data ?? null, diffLoad: load }),
    );
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.fetching = "";
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    const { detail, route, session } = state;
    const id = session === "in" && route.view === "task" ? route.id : null;
    if (id !== (detail?.id ?? null)) {
      this.store.set({ detail: id ? opened(id, state.tasks[id] ?? null) : null });
      if (id) void this.load(id);
    } else if (id && detail) {
      const was = before.detail?.id === id ? before.detail.task : null;
      const moved = was !== null && hasMoved(was, detail.task);
      const back = state.connection === "online" && before.connection !== "online";
      const again = back && detail.load === "failed";
      if (moved || again || hasGrown(state, before)) void this.load(id);
    }
  }

  /** @private @param {string} id @param {Partial<TaskPage>} values  Unless another is open. */
  tell(id, values) {
    if (this.store.state.detail?.id === id) this.store.patch("detail", values);
  }

  /** @param {string} id */
  async load(id) {
    const was = this.known(id);
    try {
      const answer = await this.api.task(id);
      const now = this.known(id); // the stream may have been faster than the answer
      this.tell(id, { ...answer, load: "ready" });
      if (hasMoved(was, now) && hasMoved(answer.task, now)) void this.load(id);
      else void this.readOutput(id);
      const { diff } = this.store.state.detail ?? {}; // it changes no more
      if (answer.result?.hasDiff && !diff) void this.diff.load(id);
    } catch (error) {
      this.tell(id, { load: isMissing(error) ? "missing" : "failed" });
    }
  }

  /** @private @param {string} id */
  known(id) {
    const { detail } = this.store.state;
    return detail?.id === id ? detail.task : null;
  }

  /** @private @param {string} id  Until the run is over. */
  async readOutput(id) {
    if (this.fetching === id) return;
    this.fetching = id;
    clearTimeout(this.timer);
    let more = true;
    while (more) more = await this.readPiece(id);
    if (this.fetching === id) this.fetching = "";
    if (this.known(id)?.state !== "running" || this.store.state.detail?.output.ended) return;
    this.timer = setTimeout(() => void this.readOutput(id), FOLLOW_MS);
  }

  /** @private @param {string} id @returns {Promise<boolean>} whether there may be more at once */
  async readPiece(id) {
    const { detail } = this.store.state;
    if (detail?.id !== id || document.hidden) return false;
    const { offset } = detail.output;
    try {
      const piece = await this.api.output(id, offset);
      const output = this.store.state.detail?.output;
      if (output?.offset !== offset) return false;
      const { events, ...at } = piece;
      this.tell(id, { output: { ...withMore(output, events), ...at, load: "idle" } });
      return events.length > 0 && !piece.ended;
    } catch (error) {
      const load = isMissing(error) ? "idle" : "failed"; // it has not run: nothing to show
      const output = this.store.state.detail?.output;
      if (output) this.tell(id, { output: { ...output, load } });
      return false;
    }
  }

  reload() {
    const id = this.store.state.detail?.id;
    if (id) void this.load(id);
  }

  /** All that was printed, from its beginning. */
  showWhole() {
    this.store.patch("detail", { output: { ...silent, whole: true } });
    this.reload();
  }

  /** @param {string} key of a file of the diff, or a part of it @param {boolean} open */
  unfold(key, open) {
    const { unfolded } = this.store.state.detail ?? {};
    this.store.patch("detail", { unfolded: { ...unfolded, [key]: open } });
  }
}

/** @param {State} state @param {State} before  A step came into its chain, or a trigger of it moved. */
function hasGrown({ detail, triggers }, before) {
  const was = before.detail;
  if (detail?.load !== "ready" || was?.load !== "ready") return false;
  const more = detail.trace.length > was.trace.length;
  return more || detail.chain.some(({ id }) => triggers[id] !== before.triggers[id]);
}

/** @param {Task | null} was @param {Task | null} is */
function hasMoved(was, is) {
  return is !== null && (was?.state !== is.state || was.attempts !== is.attempts);
}

/** @param {unknown} error */
const isMissing = (error) => /** @type {any} */ (error)?.status === 404;
