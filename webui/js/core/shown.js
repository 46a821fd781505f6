/** A text as it is shown. Pure. */

/** Marks on one letter, more than any script has: with thousands a browser is busy for minutes. */
const STACK = /([\p{M}\p{Cf}]{32})[\p{M}\p{Cf}]+/gu;

/** @param {string} text @returns {string}  What is copied, edited or sent stays whole. */
export function shown(text) {
  return text.replace(STACK, "$1…");
}
