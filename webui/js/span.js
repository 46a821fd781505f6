/**
 * Which part of a long list is drawn. Pure.
 *
 * What lies outside is room of the height it was measured to have, or is taken to.
 *
 * @typedef {{from: number, to: number}} Span rows from one to before another
 * @typedef {{from: string, next?: string, to: string | null} | null} Sight the same by keys; null: the end
 */

/** Drawn of a list whose rows nobody has measured yet. */
const TAIL = 24;
const UNKNOWN_PX = 90;

/**
 * The first row may be the day's, which goes as older ones of that day come: the next one stays.
 *
 * @param {{key: string}[]} rows
 * @param {number} from
 * @param {string | null} to
 * @returns {Sight}
 */
export function sightOf(rows, from, to) {
  return { from: rows[from].key, next: rows[from + 1]?.key, to };
}

/**
 * @param {{key: string}[]} rows
 * @param {Sight} sight
 * @returns {Span}
 */
export function spanOf(rows, sight) {
  const { length } = rows;
  const tail = { from: Math.max(0, length - TAIL), to: length };
  if (!sight) return tail;
  const from = rows.findIndex(({ key }) => key === sight.from || key === sight.next);
  const to = sight.to === null ? length : rows.findLastIndex((row) => row.key === sight.to) + 1;
  if (from < 0 && to > 0 && sight.to !== null) return { from: Math.max(0, to - TAIL), to };
  if (from < 0) return tail;
  return { from, to: to > from ? to : Math.min(length, from + TAIL) };
}

/** Heights of rows by their keys, as they were when last drawn. Units: pixels. */
export class Heights {
  constructor() {
    /** @type {Map<string, number>} */
    this.known = new Map();
    this.sum = 0;
  }

  /** @param {string} key @param {number} height */
  learn(key, height) {
    this.sum += height - (this.known.get(key) ?? 0);
    this.known.set(key, height);
  }

  /** @param {string} key */
  of(key) {
    return this.known.get(key) ?? (this.known.size ? this.sum / this.known.size : UNKNOWN_PX);
  }

  /** @param {{key: string}[]} rows @param {number} from @param {number} to */
  total(rows, from, to) {
    let sum = 0;
    for (let at = from; at < to; at += 1) sum += this.of(rows[at].key);
    return sum;
  }

  /**
   * The rows that fill a stretch of the list.
   *
   * @param {{key: string}[]} rows
   * @param {number} top of the stretch, from the list's beginning
   * @param {number} bottom
   * @returns {Span}
   */
  between(rows, top, bottom) {
    let [from, at, y] = [0, 0, 0];
    for (; at < rows.length && y < bottom; at += 1) {
      y += this.of(rows[at].key);
      if (y <= top) from = at + 1;
    }
    return { from: Math.min(from, Math.max(0, rows.length - 1)), to: at };
  }
}
