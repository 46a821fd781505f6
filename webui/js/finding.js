/**
 * Looking for words in the conversation, of which the browser's own search sees only the part that
 * is drawn. What is drawn is marked without a change to it.
 *
 * @typedef {import("./select.js").Entry} Entry
 * @typedef {import("./types.js").Message} Message
 */

/** @param {Entry} entry @returns {Message[]} what it shows of what was said */
export function messagesOf(entry) {
  if (entry.type === "card") return entry.results.slice(-1);
  return entry.type === "message" || entry.type === "fold" ? [entry.message] : [];
}

/**
 * @param {Entry[]} entries
 * @param {import("./cards.js").Jobs} jobs
 * @param {string} query
 * @returns {string[]} the keys of those that have it, in their order
 */
export function matches(entries, jobs, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return [];
  return entries
    .filter((entry) => {
      const texts = messagesOf(entry).map((message) => message.text);
      if (entry.type === "card") texts.push(jobs[entry.jobId]?.title ?? "");
      if (entry.type === "fold") texts.push(jobs[entry.message.triggerId ?? ""]?.title ?? "");
      return texts.some((text) => text.toLowerCase().includes(wanted));
    })
    .map((entry) => entry.key);
}

/**
 * @param {string[]} found
 * @param {string | null} at
 * @param {1 | -1} way
 * @returns {string | null} the one after or before; null: there is none
 */
export function next(found, at, way) {
  const here = at === null ? -1 : found.indexOf(at);
  if (here < 0) return (way < 0 ? found.at(-1) : found[0]) ?? null;
  return found[here + way] ?? null;
}

/**
 * Whether a key asks for what the browser could not find: part of the conversation is not drawn.
 *
 * @param {KeyboardEvent} event
 * @param {import("./state-types.js").State} state
 */
export function isFindKey(event, { before, session, finding }) {
  const isFind = event.key === "f" && (event.ctrlKey || event.metaKey);
  if (!isFind || event.altKey || event.shiftKey || event.defaultPrevented) return false;
  const { activeElement } = document;
  const isElsewhere = activeElement?.closest("#panel, dialog, #find-text"); // asked again: the browser's
  if (session !== "in" || isElsewhere) return false;
  const rooms = document.querySelectorAll("#timeline > .room");
  return Boolean(finding || before || [...rooms].some((room) => room.clientHeight > 0));
}

const MARKED = "found";
const CURRENT = "found-here";

/**
 * @param {Element | null} list
 * @param {string} query empty: nothing is marked any more
 * @param {Element | null} here the row one is at
 */
export function mark(list, query, here) {
  const marks = /** @type {any} */ (CSS).highlights;
  const wanted = query.trim().toLowerCase();
  if (!marks) return; // a browser without them shows the row, and not the word
  if (!wanted || !list) {
    marks.delete(MARKED);
    marks.delete(CURRENT);
    return;
  }
  const Highlight = /** @type {any} */ (globalThis).Highlight;
  const [others, own] = [new Highlight(), new Highlight()];
  const texts = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const text = (node.nodeValue ?? "").toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      const length = node.nodeValue?.length ?? 0;
      range.setStart(node, Math.min(at, length));
      range.setEnd(node, Math.min(at + wanted.length, length)); // few letters change their length
      (here?.contains(node) ? own : others).add(range);
    }
  }
  marks.set(MARKED, others);
  marks.set(CURRENT, own);
}
