/** How wide the side panel is: as its reader drew it, kept by the browser. */

/** Less is no panel, and beside it less is no chat. Units: CSS pixels. */
export const LEAST = 300;
const LEAST_CHAT = 352;
const STEP = 24;

/** @param {number} room  The whole width. @returns {number} */
export function mostOf(room) {
  return Math.max(LEAST, Math.round(room) - LEAST_CHAT);
}

/** @param {number} width @param {number} room the whole width */
export function fitting(width, room) {
  return Math.round(Math.min(Math.max(width, LEAST), mostOf(room)));
}

/**
 * What a key makes of the width; null: as it is without the reader; undefined: no key of ours.
 *
 * @param {string} key
 * @param {number} width
 * @param {number} room
 * @returns {number | null | undefined}
 */
export function widthBy(key, width, room) {
  if (key === "ArrowLeft") return fitting(width + STEP, room);
  if (key === "ArrowRight") return fitting(width - STEP, room);
  if (key === "Home") return mostOf(room);
  if (key === "End") return LEAST;
  return key === "Enter" ? null : undefined;
}

/** @param {string | null} kept */
export function keptWidth(kept) {
  const width = Number(kept);
  return Number.isFinite(width) && width >= LEAST ? width : null;
}

/** @param {number | null} width  The style sheet has the rest. */
export function applyWidth(width) {
  const { style } = document.documentElement;
  if (width === null) style.removeProperty("--panel-own");
  else style.setProperty("--panel-own", `${width}px`);
}
