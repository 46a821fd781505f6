/**
 * Where the bars of the last hours stand. Pure. Places and widths are percent of the width.
 *
 * @typedef {import("./types.js").Timeline} Timeline
 * @typedef {import("./types.js").TimelineBar} Bar
 * @typedef {import("./types.js").TimelineRow} Row
 *
 * @typedef {object} PlacedBar
 * @property {string} key
 * @property {Bar} bar
 * @property {number} x where it runs
 * @property {number} width 0 while it waits
 * @property {number} waitX where it waits
 * @property {number} waitWidth
 * @property {number} lane 0 is the top one
 *
 * @typedef {object} PlacedRow
 * @property {Row} row
 * @property {PlacedBar[]} bars
 * @property {number} lanes
 *
 * @typedef {object} Layout
 * @property {PlacedRow[]} rows
 * @property {{x: number, at: number}[]} ticks round hours of the reader's day
 */

/** What is over in a moment is still seen. */
const LEAST = 0.3;
/** Two bars in one lane are so far apart. */
const APART = 0.15;
export const MOST_LANES = 3;
const HOUR = 3_600_000;
/** Hours between ticks, for so many hours at most. */
const STEPS = /** @type {const} */ ([
  [6, 1],
  [12, 3],
  [30, 6],
  [Infinity, 12],
]);

/**
 * @param {Timeline} timeline
 * @param {number} now
 * @param {number} offsetMs of the reader's time from UTC
 * @returns {Layout}
 */
export function layout(timeline, now, offsetMs) {
  const hours = (Date.parse(timeline.until) - Date.parse(timeline.since)) / HOUR;
  const until = Math.max(now, Date.parse(timeline.until));
  const since = until - hours * HOUR;
  const rows = timeline.rows
    .map((row) => placedRow(row, since, until))
    .filter((row) => row.bars.length);
  return { rows, ticks: ticks(since, until, offsetMs) };
}

/** @param {Row} row @param {number} since @param {number} until @returns {PlacedRow} */
function placedRow(row, since, until) {
  const placed = row.bars
    .map((bar) => place(bar, since, until))
    .filter((bar) => bar !== null)
    .sort((a, b) => left(a) - left(b));
  if (row.kind !== "request") {
    // Of one trigger hardly two run at a time; its failures lie on top.
    placed.sort((a, b) => Math.sign(a.bar.failed) - Math.sign(b.bar.failed) || left(a) - left(b));
    return { row, bars: placed, lanes: 1 };
  }
  /** @type {number[]} where each lane is free again */
  const free = [];
  const bars = placed.map((bar) => {
    let lane = free.findIndex((end) => end <= left(bar));
    if (lane < 0 && free.length < MOST_LANES) lane = free.length;
    if (lane < 0) lane = free.indexOf(Math.min(...free)); // full: over the one that ends first
    free[lane] = Math.max(free[lane] ?? 0, right(bar) + APART);
    return { ...bar, lane };
  });
  return { row, bars, lanes: free.length };
}

/** @param {PlacedBar} bar */
const left = (bar) => (bar.waitWidth ? bar.waitX : bar.x);
/** @param {PlacedBar} bar */
const right = (bar) => Math.max(bar.x + bar.width, bar.waitX + bar.waitWidth);

/** @param {Bar} bar @param {number} since @param {number} until @returns {PlacedBar | null} */
function place(bar, since, until) {
  const percent = (/** @type {number} */ at) =>
    (100 * (Math.min(Math.max(at, since), until) - since)) / (until - since);
  const ended = bar.endedAt ? Date.parse(bar.endedAt) : until;
  if (ended < since) return null;
  const waiting = !bar.startedAt && !bar.endedAt;
  const started = bar.startedAt ? Date.parse(bar.startedAt) : ended;
  const created = bar.createdAt ? Date.parse(bar.createdAt) : started;
  const [begin, end] = [percent(started), percent(ended)];
  const width = waiting ? 0 : Math.max(end - begin, LEAST);
  const x = Math.min(begin, 100 - width); // what has just begun is seen, too
  const waitX = Math.min(percent(created), x);
  const waits = x - waitX > LEAST || waiting;
  const waitWidth = waits ? Math.max(x - waitX, LEAST) : 0;
  const key = `${bar.taskId}-${bar.failed ? "f" : ""}${bar.count}`;
  return { key, bar, x, width, waitX: Math.min(waitX, 100 - waitWidth), waitWidth, lane: 0 };
}

/**
 * Round hours of the reader's day.
 *
 * @param {number} since
 * @param {number} until
 * @param {number} offsetMs
 */
export function ticks(since, until, offsetMs) {
  const hours = (until - since) / HOUR;
  const [, every] = STEPS.find(([most]) => hours <= most) ?? STEPS[0];
  const step = every * HOUR;
  const found = [];
  let at = Math.ceil((since + offsetMs) / step) * step - offsetMs;
  for (; at <= until; at += step) found.push({ x: (100 * (at - since)) / (until - since), at });
  return found;
}

/**
 * The bar that an arrow key leads to.
 *
 * @param {Layout} shown
 * @param {string} from the key of the present one; empty: none
 * @param {string} arrow
 * @returns {string | null} null: none that way
 */
export function step(shown, from, arrow) {
  const row = shown.rows.findIndex(({ bars }) => bars.some((bar) => bar.key === from));
  if (row < 0) return inTime(shown.rows[0]?.bars ?? []).at(-1)?.key ?? null;
  const bars = inTime(shown.rows[row].bars);
  const at = bars.findIndex((bar) => bar.key === from);
  if (arrow === "Home") return bars[0].key;
  if (arrow === "End") return bars[bars.length - 1].key;
  if (arrow === "ArrowLeft") return bars[at - 1]?.key ?? null;
  if (arrow === "ArrowRight") return bars[at + 1]?.key ?? null;
  const other = shown.rows[row + (arrow === "ArrowUp" ? -1 : 1)]?.bars;
  if (!other) return null;
  const away = (/** @type {PlacedBar} */ bar) => Math.abs(bar.x - bars[at].x);
  return other.reduce((best, bar) => (away(bar) < away(best) ? bar : best)).key;
}

/** @param {PlacedBar[]} bars */
function inTime(bars) {
  return bars.toSorted((a, b) => left(a) - left(b));
}

/** @param {Layout} shown @param {string} key @returns {{row: Row, bar: Bar} | null} */
export function barOf(shown, key) {
  for (const { row, bars } of shown.rows) {
    const found = bars.find((one) => one.key === key);
    if (found) return { row, bar: found.bar };
  }
  return null;
}
