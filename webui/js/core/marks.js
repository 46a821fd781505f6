/**
 * Names of entries at the ends of lines, `<!-- note-01… -->`: while a text is typed they are out of
 * sight, and when it is saved each stands again at the line it belongs to. Pure.
 *
 * A line keeps its name when it is moved or reworded, and loses it when it is gone.
 */

const MARK = /[ \t]*<!-- [A-Za-z0-9][\w.-]{0,127}(?: [\d-]{10}T[\d:.]{8,16}Z)? -->[ \t]*$/;
/** Of two versions with more lines than this, changed ones are found by their words alone. */
const MOST_CELLS = 4_000_000;
/** So many lines on are looked at for the one that was reworded. */
const REACH = 200;
/** The head of a message: many are the same, and what follows tells them apart. */
const HEAD = /^## \d\d:\d\d \w+$/;
/** So much of a line must be left for it to be the same one, reworded. */
const ALIKE = 0.4;

/** @param {string} line */
function bareLine(line) {
  const bare = line.replace(MARK, "");
  return bare.trim() ? bare : line; // a comment that stands alone is the user's own
}

/** @param {string} text with line ends of one letter @returns {string} as it is typed */
export function bare(text) {
  return text.split("\n").map(bareLine).join("\n");
}

/**
 * A text that was typed, with the names its lines had in another.
 *
 * @param {string} text
 * @param {string} source with line ends of one letter
 */
export function marked(text, source) {
  const lines = text.split("\n");
  const old = source.split("\n").map((line) => {
    const plain = bareLine(line);
    return { plain, mark: line.slice(plain.length) };
  });
  if (!old.some(({ mark }) => mark)) return text;
  const plain = lines.map(bareLine);
  const origins = originsOf(keysOf(old.map((one) => one.plain)), keysOf(plain));
  const there = new Set(lines.map((line, at) => line.slice(plain[at].length).trim()));
  return lines
    .map((line, at) => {
      const mark = old[origins[at]]?.mark ?? "";
      return mark && line === plain[at] && !there.has(mark.trim()) ? line + mark : line;
    })
    .join("\n");
}

/** @param {string[]} lines @returns {string[]} what tells each apart: of a head, also what follows */
function keysOf(lines) {
  const keys = [...lines];
  let below = "";
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    const line = lines[at];
    if (HEAD.test(line)) keys[at] = `${line}\n${below}`;
    else if (line.trim()) below = line;
  }
  return keys;
}

/**
 * From which old line each new one comes; -1 from none.
 *
 * @param {string[]} old
 * @param {string[]} now
 * @returns {number[]}
 */
function originsOf(old, now) {
  const origins = now.map(() => -1);
  const head = common(old, now);
  const tail = commonEnd(old, now, head);
  for (let at = 0; at < head; at += 1) origins[at] = at;
  for (let back = 1; back <= tail; back += 1) origins[now.length - back] = old.length - back;
  const middle = { from: head, old: old.length - tail, now: now.length - tail };
  sameOrder(old, now, middle, origins);
  moved(old, now, origins);
  reworded(old, now, origins);
  return origins;
}

/** @param {ArrayLike<string>} old @param {ArrayLike<string>} now  How much of both begins alike. */
function common(old, now) {
  let at = 0;
  while (at < old.length && at < now.length && old[at] === now[at]) at += 1;
  return at;
}

/** @param {ArrayLike<string>} old @param {ArrayLike<string>} now @param {number} head  How much ends alike. */
function commonEnd(old, now, head) {
  const most = Math.min(old.length, now.length) - head;
  let back = 0;
  while (back < most && old[old.length - back - 1] === now[now.length - back - 1]) back += 1;
  return back;
}

/**
 * The longest run of lines, with others between, that stand in both in the same order.
 *
 * @param {string[]} old
 * @param {string[]} now
 * @param {{from: number, old: number, now: number}} middle where the two differ
 * @param {number[]} origins
 */
function sameOrder(old, now, middle, origins) {
  const [height, width] = [middle.old - middle.from, middle.now - middle.from];
  if (height <= 0 || width <= 0 || height * width > MOST_CELLS) return;
  const row = width + 1;
  const longest = new Uint32Array((height + 1) * row);
  for (let i = height - 1; i >= 0; i -= 1) {
    for (let j = width - 1; j >= 0; j -= 1) {
      const same = old[middle.from + i] === now[middle.from + j];
      longest[i * row + j] = same
        ? longest[(i + 1) * row + j + 1] + 1
        : Math.max(longest[(i + 1) * row + j], longest[i * row + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < height && j < width;) {
    if (old[middle.from + i] === now[middle.from + j]) {
      origins[middle.from + j] = middle.from + i;
      i += 1;
      j += 1;
    } else if (longest[(i + 1) * row + j] >= longest[i * row + j + 1]) i += 1;
    else j += 1;
  }
}

/** @param {string[]} old @param {string[]} now @param {number[]} origins */
function moved(old, now, origins) {
  const taken = new Set(origins);
  /** @type {Map<string, number[]>} */
  const left = new Map();
  for (const [at, line] of old.entries()) {
    if (!taken.has(at) && line.trim()) left.set(line, [...(left.get(line) ?? []), at]);
  }
  for (const [at, line] of now.entries()) {
    if (origins[at] < 0) origins[at] = left.get(line)?.shift() ?? -1;
  }
}

/** @param {string[]} old @param {string[]} now @param {number[]} origins  Between lines that stayed. */
function reworded(old, now, origins) {
  const taken = new Set(origins);
  let above = -1;
  for (let at = 0; at < now.length; at += 1) {
    if (origins[at] >= 0) {
      above = origins[at];
      continue;
    }
    let best = { share: ALIKE, origin: -1 };
    const end = Math.min(old.length, above + 1 + REACH);
    for (let one = above + 1; one < end && !taken.has(one); one += 1) {
      const share = alike(old[one], now[at]);
      if (share > best.share) best = { share, origin: one };
    }
    if (best.origin < 0) continue;
    origins[at] = above = best.origin;
    taken.add(best.origin);
  }
}

/** @param {string} one @param {string} other @returns {number} the share that begins and ends alike */
function alike(one, other) {
  const [head, below] = one.split("\n", 2);
  if (below !== undefined && other.startsWith(`${head}\n`)) return 1; // of a message, its words
  const begin = common(one, other);
  return (begin + commonEnd(one, other, begin)) / Math.max(one.length, other.length, 1);
}
