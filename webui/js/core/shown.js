/** A text as it is shown. Pure. */

/** Marks on one letter, more than any script has: with thousands a browser is busy for minutes. */
const STACK = /([\p{M}\p{Cf}]{32})[\p{M}\p{Cf}]+/gu;

/**
 * What is copied, edited or sent stays whole.
 *
 * @param {string} text
 * @returns {string}
 */
export function shown(text) {
  return text.replace(STACK, "$1…");
}
