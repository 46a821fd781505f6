/** Finding the place in rendered text at which a line of its source is shown. */

import { lettersOf, lineMark } from "../pages/memory.js";

const BLOCKS = "h1, h2, h3, h4, h5, h6, p, li, tr, pre";

/**
 * The block of a rendered text that shows a line of its source; null where there is none.
 *
 * @param {Element} box
 * @param {string} text the source
 * @param {number} line from 1
 * @returns {HTMLElement | null}
 */
export function blockAt(box, text, line) {
  const mark = lineMark(text, line);
  if (!mark) return null;
  const { needle, before } = mark;
  const all = [...box.querySelectorAll(BLOCKS)].map((block) => ({
    block: /** @type {HTMLElement} */ (block),
    letters: ownLetters(block),
  }));
  const begins = all.filter(({ letters }) => letters.startsWith(needle));
  // Of a paragraph of several lines, all but the first stand further in.
  const found = begins.length ? begins : all.filter(({ letters }) => letters.includes(needle));
  return found[Math.min(before, found.length - 1)]?.block ?? null;
}

/** @param {Element} block  What it says itself: a list's item without the lists inside. */
function ownLetters(block) {
  let text = "";
  for (const child of block.childNodes) {
    const inside = child instanceof Element && child.matches(`${BLOCKS}, ul, ol`);
    if (!inside) text += child.textContent ?? "";
  }
  return lettersOf(text);
}
