/**
 * The page's keys: one table, which the handler follows and the help shows. Pure.
 *
 * Nothing is a key while one types, and nothing that an input method is at work on.
 */

import { routeOf } from "./route.js";

/**
 * @typedef {object} Key
 * @property {string} id what it does, also in the dictionary: `keys.ID`
 * @property {string} press `Mod+k`, a letter or sign, or two letters one after the other
 * @property {"anywhere" | "going" | "reading"} group
 * @property {import("./state-types.js").Route} [to] where it leads
 */

/** Two letters must follow one another within this time. */
export const TOGETHER_MS = 1500;
const FIELDS = "input, select, textarea, [contenteditable]";

/** @type {[string, string][]} */
const PLACES = [
  ["g h", "home"],
  ["g c", "chat"],
  ["g t", "tasks"],
  ["g r", "triggers"],
  ["g m", "memory"],
  ["g b", "backlog"],
  ["g e", "engines"],
  ["g u", "usage"],
  ["g l", "logs"],
  ["g s", "settings"],
];

/** @param {string} name @returns {import("./state-types.js").Route | null} null: the page has no such place */
export function placeNamed(name) {
  const route = name === "chat" ? routeOf("#/") : routeOf(`#/${name}`);
  return route.view === name ? route : null;
}

/** @type {Key[]} */
export const KEYS = [
  { id: "palette", press: "Mod+k", group: "anywhere" },
  { id: "search", press: "/", group: "anywhere" },
  { id: "compose", press: "n", group: "anywhere" },
  { id: "help", press: "?", group: "anywhere" },
  { id: "next", press: "j", group: "reading" },
  { id: "previous", press: "k", group: "reading" },
  { id: "latest", press: "l", group: "reading" },
  { id: "panel", press: "p", group: "reading" },
  { id: "full", press: "f", group: "reading" },
  ...PLACES.flatMap(([press, name]) => {
    const to = placeNamed(name);
    return to ? [{ id: `go.${name}`, press, group: /** @type {const} */ ("going"), to }] : [];
  }),
];

export const isMac = () => /Mac|iPhone|iPad/.test(navigator.platform);

/** @param {string} press @param {boolean} mac @returns {string[]} as they stand on the keyboard */
export function capsOf(press, mac) {
  if (press.startsWith("Mod+")) return [mac ? "⌘" : "Ctrl", press.slice(4).toUpperCase()];
  return press.split(" ").map((key) => (/^[a-z]$/.test(key) ? key.toUpperCase() : key));
}

/**
 * @typedef {object} Pressed what of a keyboard event counts
 * @property {string} key
 * @property {number} [keyCode]
 * @property {boolean} [isComposing]
 * @property {boolean} [defaultPrevented]
 * @property {boolean} [ctrlKey]
 * @property {boolean} [metaKey]
 * @property {boolean} [altKey]
 * @property {boolean} [shiftKey]
 * @property {any} [target]
 */

export class KeyReader {
  constructor() {
    this.first = "";
    this.firstAt = 0;
  }

  /**
   * @param {Pressed} event
   * @param {{now: number, single: boolean, covered: boolean}} page whether keys of one letter count,
   *   and whether a dialog lies over all else
   * @returns {Key | null} what is to be done
   */
  read(event, { now, single, covered }) {
    const { first } = this;
    this.first = "";
    if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return null;
    const key = plainKey(event);
    if (event.ctrlKey || event.metaKey || event.altKey) {
      const one = event.ctrlKey !== event.metaKey && !event.altKey && !event.shiftKey;
      return (one && KEYS.find((known) => known.press === `Mod+${key}`)) || null;
    }
    if (!single || covered || event.target?.closest?.(FIELDS)) return null;
    const press = first && now - this.firstAt <= TOGETHER_MS ? `${first} ${key}` : key;
    const found = KEYS.find((known) => known.press === press);
    if (found) return found;
    if (press === key && KEYS.some((known) => known.press.startsWith(`${key} `))) {
      this.first = key;
      this.firstAt = now;
    }
    return null;
  }
}

/** @param {Pressed} event  Also of a keyboard that writes wide signs, or is locked to capitals. */
function plainKey({ key, shiftKey }) {
  const plain = key.normalize("NFKC");
  return plain.length === 1 && !shiftKey ? plain.toLowerCase() : plain;
}
