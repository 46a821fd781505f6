/**
 * A run's output as far as it is loaded: pages in their order, between them what is not. Pure; a
 * part of `state.js`.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Output} Output
 * @typedef {import("./state-types.js").OutputPage} OutputPage
 * @typedef {import("./state-types.js").OutputBlock} OutputBlock
 * @typedef {import("./types.js").OutputEvent} OutputEvent
 */

/** So many bytes of record make a page; what comes while one watches is gathered to that. */
export const PAGE_BYTES = 2 ** 18;
/** A page that watches for long lets go of what lies behind it: it can be loaded again. */
export const PAGES_KEPT = 12;

/** @type {Record<string, (state: State, action: any) => State>} */
export const OUTPUT_ACTIONS = {
  output: (state, { id, part }) => withOutput(state, id, (output) => taken(output, part)),
  outputTold: (state, { id, ...values }) =>
    withOutput(state, id, (output) => ({ ...output, ...values })),
};

/** @returns {Output} */
export function noOutput() {
  return { pages: [], size: 0, ended: false, load: "idle", busy: null };
}

/** @param {State} state @param {string} id @param {(output: Output) => Output} change */
function withOutput(state, id, change) {
  const { detail } = state;
  if (detail?.id !== id) return state;
  return { ...state, detail: { ...detail, output: change(detail.output) } };
}

/** @param {Output} output where reading goes on, at its end */
export function endOf({ pages }) {
  return pages.at(-1)?.end ?? 0;
}

/**
 * What is there with a page more; of one that is there already, only how far the record reaches.
 *
 * @param {Output} output
 * @param {import("./types.js").Output} part
 * @returns {Output}
 */
export function taken(output, part) {
  const [start, end] = [Number(part.start), Number(part.offset)];
  const size = Math.max(output.size, part.size);
  const isLast = end >= endOf(output);
  const told = { ...output, size, ended: isLast ? part.ended : output.ended };
  const overlaps = output.pages.some((page) => start < page.end && page.start < end);
  if (end <= start || overlaps) return { ...told, load: "idle" };
  const page = { start, end, blocks: blocksOf(part.events) };
  const pages = [...output.pages, page].sort((a, b) => a.start - b.start);
  const met = joined(pages);
  return { ...told, load: "idle", pages: isLast ? bounded(met) : met };
}

/** @param {OutputPage[]} pages  Small ones that meet are one. */
function joined(pages) {
  /** @type {OutputPage[]} */
  const result = [];
  for (const page of pages) {
    const before = result.at(-1);
    if (before?.end === page.start && page.end - before.start <= PAGE_BYTES) {
      const blocks = merged([...before.blocks, ...page.blocks]);
      result[result.length - 1] = { start: before.start, end: page.end, blocks };
    } else {
      result.push(page);
    }
  }
  return result;
}

/** @param {OutputPage[]} pages  The first stays, and the last ones. */
function bounded(pages) {
  const surplus = pages.length - PAGES_KEPT;
  return surplus > 0 ? [pages[0], ...pages.slice(1 + surplus)] : pages;
}

/** What a run did that is worth a line of its own; the rest is its life's paperwork. */
const SHOWN = new Set([
  ...["output", "delta", "message", "tool", "command", "file", "note", "error"],
  ...["gap", "started"],
]);

/** @param {OutputEvent[]} events @returns {OutputBlock[]} */
export function blocksOf(events) {
  return merged(events.filter((event) => SHOWN.has(event.type)).map(blockOf));
}

/** @param {OutputEvent} event @returns {OutputBlock} */
function blockOf({ type, text, stream, data }) {
  /** @type {OutputBlock} */
  const block = { type, stream: stream ?? data?.stream ?? null, text };
  const number = (/** @type {unknown} */ value) => (typeof value === "number" ? value : 0);
  if (type === "gap") return { ...block, bytes: number(data.bytes), open: Boolean(data.open) };
  if (type === "started") return { ...block, attempt: number(data.attempt) };
  if (type !== "command" && type !== "tool") return block;
  const printed = typeof data.output === "string" ? data.output : "";
  const id = data.id ? `${type} ${data.id}` : "";
  return { ...block, call: id, printed, bytes: number(data.cutBytes) };
}

/** @param {OutputBlock[]} blocks  What belongs together is one block. */
function merged(blocks) {
  /** @type {OutputBlock[]} */
  const result = [];
  for (const block of blocks) {
    const at = placeOf(result, block);
    if (at === null) continue;
    const last = result[at];
    result[at] = last ? follow(last, block) : block;
  }
  return result.filter((block) => block.type !== "gap" || block.open || block.bytes);
}

/**
 * @param {OutputBlock[]} blocks
 * @param {OutputBlock} block
 * @returns {number | null} of the block it goes on with, or behind the last; null: it says nothing
 */
function placeOf(blocks, block) {
  const end = blocks.length;
  const last = blocks[end - 1];
  if (block.type === "started") return (block.attempt ?? 1) > 1 ? end : null;
  if (block.type === "gap") {
    return last?.type === "gap" ? end - 1 : end;
  }
  if (block.call) {
    const at = blocks.findIndex((one) => one.call === block.call);
    return at < 0 ? end : at;
  }
  if (!block.text) return null;
  const flows = block.type === "output" || block.type === "delta";
  if (flows && last?.type === block.type && last.stream === block.stream) return end - 1;
  // What was streamed is said again as a whole.
  if (block.type === "message" && last?.type === "delta" && block.text.trim() === last.text.trim())
    return end - 1;
  return end;
}

/** @param {OutputBlock} before @param {OutputBlock} block  The two as one. @returns {OutputBlock} */
function follow(before, block) {
  if (block.type === "gap") {
    return { ...block, bytes: (before.bytes ?? 0) + (block.bytes ?? 0), open: block.open };
  }
  if (block.type === "output" || block.type === "delta") {
    return { ...before, text: before.text + block.text };
  }
  return block;
}

/**
 * What stands in the output box: pages, and between them places where more can be loaded.
 *
 * @param {Output} output
 * @returns {({page: OutputPage} | {from: number, to: number})[]}
 */
export function outputParts({ pages }) {
  /** @type {({page: OutputPage} | {from: number, to: number})[]} */
  const parts = [];
  let from = 0;
  for (const page of pages) {
    if (page.start > from) parts.push({ from, to: page.start });
    parts.push({ page });
    from = page.end;
  }
  return parts;
}

/** @param {Output} output  Whether the record lacks something that is known of it. */
export function hasGaps({ pages }) {
  return pages.some((page) => page.blocks.some((block) => block.type === "gap"));
}
