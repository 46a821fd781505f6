/** Finding a thing by a few letters of its name, in Latin and Chinese script. Pure. */

/** Points of a letter, by where it stands. */
const LETTER = 1;
const NEXT_TO_LAST = 6;
const BEGINS_WORD = 5;
const BEGINS_ALL = 3;
/** What is skipped in a name costs so much a letter, up to so many letters. */
const SKIPPED = 0.15;
const MOST_SKIPPED = 30;
/** A match beside the name, in words that mean the same, counts so much. */
const BESIDE = 0.6;

/** @param {string} text @returns {string} letter by letter as it was: only sizes and widths go */
function folded(text) {
  return [...text]
    .map((letter) => {
      const plain = letter.normalize("NFKC").toLowerCase();
      return plain.length === letter.length ? plain : letter;
    })
    .join("");
}

/** @param {string} text @param {number} at  Whether a word begins there; each Chinese letter is one. */
function beginsWord(text, at) {
  return at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]) || /\p{Script=Han}/u.test(text[at]);
}

/**
 * How well one word is found in a text, in the order of its letters.
 *
 * @param {string} word folded, not empty
 * @param {string} text folded
 * @returns {{score: number, places: number[]} | null}
 */
function matched(word, text) {
  const whole = text.indexOf(word);
  if (whole >= 0) {
    const atWord = wordAt(word, text, whole);
    return { score: scoreOf(text, run(atWord, word.length)), places: run(atWord, word.length) };
  }
  /** @type {number[]} */
  const places = [];
  for (let at = 0; at < word.length; at += 1) {
    const from = (places.at(-1) ?? -1) + 1;
    const found = nextOf(word[at], text, from, places.length > 0);
    if (found < 0) return null;
    places.push(found);
  }
  // Letters strewn over a name say nothing: most of them begin a word or follow one another.
  const telling = places.filter((at, n) => places[n - 1] === at - 1 || beginsWord(text, at)).length;
  return telling * 2 > places.length ? { score: scoreOf(text, places), places } : null;
}

/** @param {string} word @param {string} text  Beside the name only what begins a word is meant. */
function begun(word, text) {
  const first = text.indexOf(word);
  const at = first < 0 ? -1 : wordAt(word, text, first);
  if (at < 0 || !beginsWord(text, at)) return null;
  return { score: scoreOf(text, run(at, word.length)) };
}

/** @param {string} word @param {string} text @param {number} first  Its first place where a word begins. */
function wordAt(word, text, first) {
  for (let at = first; at >= 0; at = text.indexOf(word, at + 1)) {
    if (beginsWord(text, at)) return at;
  }
  return first;
}

/** @param {number} from @param {number} length */
function run(from, length) {
  return Array.from({ length }, (_, number) => from + number);
}

/** @param {string} letter @param {string} text @param {number} from @param {boolean} after it follows another */
function nextOf(letter, text, from, after) {
  if (after && text[from] === letter) return from;
  const first = text.indexOf(letter, from);
  for (let at = first; at >= 0; at = text.indexOf(letter, at + 1)) {
    if (beginsWord(text, at)) return at;
  }
  return first;
}

/** @param {string} text @param {number[]} places */
function scoreOf(text, places) {
  let score = places[0] === 0 ? BEGINS_ALL : 0;
  for (const [number, at] of places.entries()) {
    score += LETTER;
    if (number && places[number - 1] === at - 1) score += NEXT_TO_LAST;
    else if (beginsWord(text, at)) score += BEGINS_WORD;
  }
  return score - SKIPPED * Math.min(text.length - places.length, MOST_SKIPPED);
}

/**
 * How well all words of a query are found in a name, or beside it; null: one of them is not.
 *
 * @param {string} query
 * @param {string} name
 * @param {string} [beside] other words for the same
 * @returns {{score: number, marks: [number, number][]} | null} where in the name; in UTF-16 units
 */
export function fuzzy(query, name, beside = "") {
  const words = folded(query).split(/\s+/).filter(Boolean);
  const [text, more] = [folded(name), folded(beside)];
  /** @type {Set<number>} */
  const places = new Set();
  let score = 0;
  for (const word of words) {
    const found = matched(word, text);
    const other = found ? null : begun(word, more);
    if (!found && !other) return null;
    score += found ? found.score : BESIDE * (other?.score ?? 0);
    for (const at of found?.places ?? []) places.add(at);
  }
  return { score, marks: rangesOf([...places].sort((a, b) => a - b)) };
}

/** @param {number[]} places in order @returns {[number, number][]} those that stand together as one */
function rangesOf(places) {
  /** @type {[number, number][]} */
  const ranges = [];
  for (const at of places) {
    const last = ranges.at(-1);
    if (last?.[1] === at) last[1] = at + 1;
    else ranges.push([at, at + 1]);
  }
  return ranges;
}

/**
 * What is found, the best first; of equals the one that stood first.
 *
 * @template {{title: string, beside?: string, weight?: number}} T
 * @param {string} query empty: all, as they stand
 * @param {T[]} items
 * @returns {(T & {marks: [number, number][]})[]}
 */
export function ranked(query, items) {
  if (!query.trim()) return items.map((item) => ({ ...item, marks: [] }));
  return items
    .flatMap((item) => {
      const found = fuzzy(query, item.title, item.beside);
      return found ? [{ item, score: found.score + (item.weight ?? 0), marks: found.marks }] : [];
    })
    .sort((a, b) => b.score - a.score)
    .map(({ item, marks }) => ({ ...item, marks }));
}
