/**
 * How the lists of work and of triggers are narrowed, as the address says it, and in what order.
 * Pure.
 *
 * @typedef {import("./types.js").Trigger} Trigger
 * @typedef {import("./state-types.js").ListFilter} ListFilter
 */

/** Of which state the work is shown; empty: all. */
export const WORK_STATES = /** @type {const} */ (["", "running", "waiting", "failed"]);
/** The groups that the server tells triggers by, in their order. */
export const TRIGGER_GROUPS = /** @type {const} */ (["attention", "active", "paused", "step"]);
export const TRIGGER_ORDERS = /** @type {const} */ (["next", "last", "title"]);
const MAX_TEXT = 200;
const ID = /^[A-Za-z0-9][\w.-]{0,127}$/;

/**
 * What an address asks of a list; what it says wrongly it does not say.
 *
 * @param {"tasks" | "triggers"} view
 * @param {string} query
 * @returns {ListFilter}
 */
export function filterOf(view, query) {
  const asked = new URLSearchParams(query);
  const of = (/** @type {readonly string[]} */ known, /** @type {string} */ name) =>
    known.find((one) => one && one === asked.get(name));
  const q = (asked.get("q") ?? "").slice(0, MAX_TEXT);
  const trigger = asked.get("trigger") ?? "";
  const found =
    view === "tasks"
      ? { state: of(WORK_STATES, "state"), trigger: ID.test(trigger) ? trigger : "" }
      : { show: of(TRIGGER_GROUPS, "show"), sort: of(TRIGGER_ORDERS.slice(1), "sort") };
  const given = Object.entries({ ...found, q }).filter(([, value]) => value);
  return Object.fromEntries(given);
}

/** @param {string} view @param {ListFilter} filter  Its address. */
export function listHash(view, { state, trigger, show, sort, q }) {
  const given = Object.entries({ state, trigger, show, sort, q }).filter(([, value]) => value);
  const query = new URLSearchParams(/** @type {[string, string][]} */ (given)).toString();
  return query ? `#/${view}?${query}` : `#/${view}`;
}

/**
 * The triggers as they are listed, and how many each group has; what has a text, wherever it stands.
 *
 * @param {Trigger[]} triggers
 * @param {ListFilter} filter
 * @returns {{counts: Record<string, number>, groups: {name: string, triggers: Trigger[]}[]}}
 */
export function triggerGroups(triggers, { show, sort = "next", q = "" }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = triggers.filter((one) => {
    const text = `${one.title} ${one.prompt} ${one.words.en} ${one.words.zh}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  found.sort(orders[sort] ?? orders.next);
  const groups = TRIGGER_GROUPS.map((name) => ({
    name,
    triggers: found.filter((one) => one.group === name),
  }));
  const counts = Object.fromEntries(groups.map(({ name, triggers: of }) => [name, of.length]));
  return {
    counts: { ...counts, all: found.length },
    groups: groups.filter((one) => one.triggers.length && (!show || one.name === show)),
  };
}

/** @type {Record<string, (a: Trigger, b: Trigger) => number>} */
const orders = {
  next: by((one) => (one.enabled ? time(one.nextRunAt, 9e15) : Infinity)),
  last: by((one) => -time(one.lastRunAt, 0)),
  title: (a, b) => named(a).localeCompare(named(b)),
};

/** @param {(one: Trigger) => number} rank @returns {(a: Trigger, b: Trigger) => number} */
function by(rank) {
  return (a, b) => {
    const [first, second] = [rank(a), rank(b)];
    return first === second ? a.createdAt.localeCompare(b.createdAt) : first - second;
  };
}

/** @param {string | null} at @param {number} never */
const time = (at, never) => Date.parse(at ?? "") || never;
/** @param {Trigger} one */
const named = (one) => one.title || one.prompt || one.id;
