/** What the palette offers, worked out from the state: nothing that would do nothing. Pure. */

import { ranked } from "./fuzzy.js";
import { t } from "./i18n.js";
import { isPlanOnly } from "./job-state.js";
import { placeNamed } from "./keys.js";

/**
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Route} Route
 * @typedef {"doing" | "work" | "place" | "trigger" | "found"} Group
 *
 * @typedef {object} Item
 * @property {string} id
 * @property {Group} group
 * @property {string} title
 * @property {string} sign an icon
 * @property {string} [beside] other words for it, in both languages
 * @property {string} [about] what stands behind its name
 * @property {Route} [to] where it leads
 * @property {string} [deed] what it does
 * @property {string} [subject] to what
 * @property {number} [weight]
 * @property {boolean} [rare] offered only to those who ask for it
 * @property {import("./types.js").SearchHit} [hit] what was found
 * @property {[number, number][]} [marks]
 */

/** The places, and their icons. */
const PLACES = {
  home: "home",
  chat: "chat",
  tasks: "tasks",
  triggers: "trigger",
  memory: "memory",
  backlog: "check",
  engines: "engine",
  channels: "bell",
  usage: "chart",
  logs: "logs",
  settings: "settings",
};
/** So much is offered before anything is typed, and so much of what was found of each group. */
const FIRST = { doing: 6, work: 5, place: 10, trigger: 0, found: 0 };
const MOST = 7;
const RUNNING = new Set(["planning", "waiting", "running", "asking", "queued"]);
/** What runs is rather meant than what is over. */
const LIVE_WEIGHT = 2;

/** @param {State} state @returns {Item[]} all there is, what is nearest first */
export function itemsOf(state) {
  return [...doings(state), ...works(state), ...places(), ...triggers(state)];
}

/**
 * @param {State} state
 * @param {string} query
 * @returns {Item[]} those that are offered, in groups, the one with the best hit first
 */
export function offered(state, query) {
  const all = ranked(query, itemsOf(state)).filter((item) => query.trim() || !item.rare);
  const most = (/** @type {Group} */ group) => (query.trim() ? MOST : FIRST[group]);
  const groups = [...new Set(all.map((item) => item.group))];
  return groups.flatMap((group) =>
    all.filter((item) => item.group === group).slice(0, most(group)),
  );
}

/** @param {State} state @returns {Item[]} */
function doings(state) {
  /** @param {string} deed @param {string} sign @param {Partial<Item>} [more] @returns {Item} */
  const doing = (deed, sign, more = {}) => {
    const title = t(`palette.${deed}`);
    return { id: deed, group: "doing", title, sign, deed, beside: t(`palette.${deed}.beside`), ...more };
  };
  const replies = state.turn !== null && state.turn.endedAt === null;
  const themes = /** @type {const} */ (["system", "light", "dark"]);
  return [
    ...(state.question ? [doing("answer", "s-asking")] : []),
    ...(replies ? [doing("stop", "stop")] : []),
    doing("compose", "edit"),
    doing("newTrigger", "plus", { to: { view: "triggerNew" } }),
    doing("newNote", "plus", { to: { view: "noteNew" } }),
    doing("search", "search"),
    ...themes
      .filter((theme) => theme !== state.theme)
      .map((theme) => doing(`theme.${theme}`, theme, { deed: "theme", subject: theme, rare: true })),
    state.language === "en"
      ? doing("language.zh", "edit", { deed: "language", subject: "zh", rare: true })
      : doing("language.en", "edit", { deed: "language", subject: "en", rare: true }),
    ...(state.wide ? [doing(state.panelOpen ? "hidePanel" : "showPanel", "panel", { deed: "panel", rare: true })] : []),
    ...(state.wide ? [doing(state.panelFull ? "notFull" : "full", "full", { deed: "full", rare: true })] : []),
    doing("export", "download", { rare: true }),
    doing("help", "info"),
    doing("logout", "leave", { rare: true }),
  ];
}

/** @returns {Item[]} */
function places() {
  return Object.entries(PLACES).flatMap(([name, sign]) => {
    const to = placeNamed(name);
    if (!to) return [];
    const [title, beside] = [t(`palette.place.${name}`), t(`palette.place.${name}.beside`)];
    return [{ id: `place-${name}`, group: "place", title, beside, sign, to }];
  });
}

/** @param {State} state @returns {Item[]} what is being done, then what was done last */
function works(state) {
  const jobs = Object.values(state.jobs);
  const at = (/** @type {import("./types.js").Job} */ job) =>
    Date.parse(job.endedAt ?? job.startedAt ?? job.createdAt);
  const live = (/** @type {import("./types.js").Job} */ job) => RUNNING.has(job.state);
  return jobs
    .filter((job) => job.kind === "request" && !isPlanOnly(job))
    .sort((a, b) => Number(live(b)) - Number(live(a)) || at(b) - at(a))
    .map((job) => ({
      id: `work-${job.id}`,
      group: "work",
      title: job.title,
      about: live(job) ? job.headline : "",
      sign: `s-${job.state === "planning" ? "running" : job.state}`,
      to: { view: "task", id: job.taskId },
      weight: live(job) ? LIVE_WEIGHT : 0,
    }));
}

/** @param {State} state @returns {Item[]} each to be opened, had run now, paused or let go on */
function triggers(state) {
  return Object.values(state.triggers).flatMap((trigger) => {
    const title = trigger.title || trigger.prompt.split("\n", 1)[0] || trigger.id;
    /** @type {Item} */
    const open = {
      id: `trigger-${trigger.id}`,
      group: "trigger",
      title,
      sign: "trigger",
      to: { view: "trigger", id: trigger.id },
    };
    const readable = trigger.type !== "broken"; // of the others nothing is known but the file
    const deeds = readable ? [trigger.enabled ? "pause" : "resume", "run"] : [];
    return [open, ...deeds.map((deed) => triggerDeed(deed, trigger.id, title))];
  });
}

/** @param {string} deed @param {string} id @param {string} title @returns {Item} */
function triggerDeed(deed, id, title) {
  return {
    id: `${deed}-${id}`,
    group: "trigger",
    title: t(`palette.trigger.${deed}`, { title }),
    beside: t(`palette.trigger.${deed}.beside`),
    sign: deed === "pause" ? "pause" : "play",
    deed,
    subject: id,
    weight: -1, // the trigger itself is rather meant
  };
}
