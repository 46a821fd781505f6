/** Files of memory as the page shows and names them, and where in a text a passage stands. Pure. */

import { bare, marked } from "../core/marks.js";

export const LONG_TERM = "memory.md";

/** @type {Record<MemoryFile["kind"], "longTerm" | "days" | "summaries" | "docs">} */
export const GROUP_OF = {
  longTerm: "longTerm",
  raw: "days",
  day: "summaries",
  month: "summaries",
  docs: "docs",
};

/** Names of entries, kept in comments: for the program, not for the reader. */
const COMMENT = /<!--[^]*?(?:-->|$)/g;
/** Signs of Markdown around words: where it is not rendered, they only disturb. */
const AROUND = /(\*\*|`)(?=\S)([^\n]*?\S)\1/g;

/** @param {string} text  As many letters that are not shown. */
const blank = (text) => "\0".repeat([...text].length);

/** @param {string} snippet @param {[number, number][]} [marks]  Its pieces, what was found marked. */
export function piecesOf(snippet, marks = []) {
  /** @type {{text: string, marked: boolean}[]} */
  const pieces = [];
  const letters = snippet
    .replace(COMMENT, blank)
    .replace(AROUND, (_, sign, words) => `${blank(sign)}${words}${blank(sign)}`);
  // Marks count characters, not JavaScript's halves of them.
  for (const [at, letter] of [...letters].entries()) {
    if (letter === "\0") continue;
    const marked = marks.some(([from, to]) => from <= at && at < to);
    const last = pieces.at(-1);
    if (last?.marked === marked) last.text += letter;
    else pieces.push({ text: letter, marked });
  }
  return pieces;
}

/**
 * Where a hit is opened: a file at its line, a task; or the message in the conversation.
 *
 * @param {Pick<SearchHit, "source" | "kind" | "line"> & Partial<SearchHit>} hit
 * @returns {Route | {message: string} | null}
 */
export function placeOfHit({ source, kind, line, messageId, taskId }) {
  if (kind === "result") return taskId ? { view: "task", id: taskId } : null;
  if (kind === "transcript") return messageId ? { message: messageId } : null;
  return isNotePath(source) ? { view: "note", path: source, line: line > 0 ? line : null } : null;
}

/** @param {string} path  Whether it may be a file of memory; whether it is one, the server says. */
export function isNotePath(path) {
  const parts = path.split("/");
  return /\.md$/i.test(path) && parts.every((part) => part && part !== "." && part !== "..");
}

/** @param {string} text @returns {string} letters and digits alone: what is left of markdown in HTML */
export function lettersOf(text) {
  return text.replace(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}

const NEEDLE = 40;

/** @param {string} line @returns {string} as it begins where it is shown, up to the first link's end */
function needleOf(line) {
  const said = /^## (\d\d:\d\d) (?:user|agent|system)\s*(?:<!--|$)/.exec(line);
  if (said) return lettersOf(said[1]); // who said it is shown in the reader's language
  const plain = line.replace(COMMENT, "").replace(/!?\[([^\]]*)\]\([^)]*\).*$/, "$1");
  return lettersOf(plain.replace(/^\s*(?:[-*+]\s+)?\[[ xX]\]\s/, "")).slice(0, NEEDLE);
}

/**
 * How a line is found again where its text is shown: how it begins, and how many before it begin so.
 *
 * @param {string} text @param {number} line from 1; null: from there on there is nothing to be seen
 */
export function lineMark(text, line) {
  const needles = text.split("\n").map(needleOf);
  const at = needles.findIndex((needle, index) => index >= line - 1 && needle);
  if (at < 0) return null;
  const needle = needles[at];
  return { needle, before: needles.slice(0, at).filter((one) => one === needle).length };
}

// --- writing

/** @param {string} day @param {string} title @param {string} id for a title without a Latin letter */
export function noteStem(day, title, id) {
  const plain = title.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = plain.replace(/[^a-z0-9]+/g, "-").slice(0, 32);
  const slug = words.replace(/^-+|-+$/g, "") || `mem-${id.slice(-8)}`;
  return `memory/${day}-${slug}`;
}

/** @param {string} title @param {string} text  A new note as its file holds it. */
export function noteText(title, text) {
  const body = `${text.trim()}\n`;
  return title.trim() ? `# ${title.trim()}\n\n${body}` : body;
}

/** @param {string} text  Line ends as a field of the page has them. */
const plainEnds = (text) => text.replace(/\r\n?/g, "\n");

/** @param {string} text of a file, as a field of the page holds it */
export const typed = (text) => bare(plainEnds(text));

/**
 * A text that was typed as its file holds it: with the names of entries and the line ends it had.
 *
 * @param {string} text @param {(string | null | undefined)[]} sources of it, the nearest first
 */
export function written(text, sources) {
  const known = sources.filter((one) => one != null);
  const whole = known.reduce((made, source) => marked(made, plainEnds(source)), text);
  return known[0]?.includes("\r\n") ? whole.replaceAll("\n", "\r\n") : whole;
}

/** @param {NoteForm} form */
export function isDirty({ key, title, text, base }) {
  if (key === "new") return Boolean(title.trim() || text.trim());
  return base ? base.text === null || typed(base.text) !== text : Boolean(text.trim());
}

/** @param {string} text */
function linesOf(text) {
  return typed(text)
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => line.trimEnd());
}

/** @param {string} other @param {string} mine  The other's lines, those that mine lacks marked. */
export function otherLines(other, mine) {
  /** @type {Map<string, number>} */
  const left = new Map();
  for (const line of linesOf(mine)) left.set(line, (left.get(line) ?? 0) + 1);
  return linesOf(other).map((text) => {
    const count = left.get(text) ?? 0;
    left.set(text, count - 1);
    return { text, marked: count < 1 && text !== "" };
  });
}

/** @param {string} html @param {string} title  Without a first heading that only says the title. */
export function withoutTitle(html, title) {
  const [whole, first] = /^\s*<h1(?: dir="auto")?>([^<]*)<\/h1>\s*/.exec(html) ?? [];
  const said = first?.replace(/&(?:amp|lt|gt|quot|#39);/g, " ");
  return whole && lettersOf(said) === lettersOf(title) ? html.slice(whole.length) : html;
}

/** @param {string} html @param {(role: string) => string} nameOf  Of messages: who said them when. */
export function withHeads(html, nameOf) {
  return html.replace(
    /<h2(?: dir="auto")?>(\d\d:\d\d) (user|agent|system)<\/h2>/g,
    (_, at, role) => `<h2 class="said">${at} ${nameOf(role)}</h2>`,
  );
}
