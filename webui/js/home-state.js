/** What home, the last hours and the log begin with. Pure; a part of `state.js`. */

/** @typedef {import("./state-types.js").State} State */

/** @returns {Pick<State, "home" | "day" | "logs">} */
export function noHome() {
  return {
    home: { load: "loading", view: null, at: 0 },
    day: { load: "loading", view: null, at: 0, pointed: "", listed: false },
    logs: {
      load: "loading",
      lines: [],
      before: null,
      after: null,
      type: "",
      q: "",
      id: "",
      paused: false,
      held: 0,
      older: "idle",
    },
  };
}

/** Failures that stand open beside each other; so many of one command are told by its last. */
const MOST_OPEN = 5;
const MANY = 3;
const DAY_MS = 86_400_000;

/**
 * What needs its user, without the failures that say nothing new: those of a day before, and the
 * earlier ones of what failed again and again. Newest first, as they come.
 *
 * @template {{kind: string, at: string | null, title: string, triggerId: string | null}} N
 * @param {N[]} needs
 * @param {number} now
 * @returns {{shown: N[], folded: N[]}}
 */
export function foldFailures(needs, now) {
  const nameOf = (/** @type {N} */ need) => need.triggerId ?? need.title;
  /** @type {Map<string, N[]>} */
  const alike = new Map();
  const failures = needs.filter((need) => need.kind === "failure");
  for (const need of failures) alike.set(nameOf(need), [...(alike.get(nameOf(need)) ?? []), need]);
  let open = 0;
  const folded = failures.filter((need) => {
    const group = alike.get(nameOf(need)) ?? [];
    const repeats = group.length >= MANY && group[0] !== need;
    const isOld = need.at !== null && now - Date.parse(need.at) > DAY_MS;
    return repeats || isOld || ++open > MOST_OPEN;
  });
  if (folded.length < 2) return { shown: needs, folded: [] }; // a line would save nothing
  return { shown: needs.filter((need) => !folded.includes(need)), folded };
}
