/** What the command palette offers: places, acts, triggers and tasks by their words. */

import { t } from "./i18n.js";
import { PLACES } from "./route.js";

/**
 * @typedef {object} PaletteItem
 * @property {string} label
 * @property {string} icon
 * @property {Route} [go]
 * @property {"theme" | "panel" | "keys" | "search"} [act]
 */

const MAX_SHOWN = 12;

/** @param {State} state @param {string} query @returns {PaletteItem[]} the best first */
export function paletteItems(state, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  /** @type {PaletteItem[]} */
  const all = [
    ...PLACES.map(({ view, icon }) => ({ label: t(`palette.${view}`), icon, go: { view } })),
    { label: t("palette.newTrigger"), icon: "plus", go: { view: "triggerNew" } },
    { label: t("palette.newNote"), icon: "plus", go: { view: "noteNew" } },
    { label: t("palette.theme"), icon: state.theme === "dark" ? "light" : "dark", act: "theme" },
    { label: t("palette.panel"), icon: "panel", act: "panel" },
    { label: t("palette.keys"), icon: "info", act: "keys" },
    ...(words.length ? named(state) : []),
  ];
  const fitting = all.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)));
  /** @type {PaletteItem[]} */
  const search = words.length
    ? [{ label: t("palette.search", { query: query.trim() }), icon: "search", act: "search" }]
    : [];
  return [...fitting.slice(0, MAX_SHOWN - search.length), ...search];
}

/** @param {State} state @returns {PaletteItem[]} the newest tasks first */
function named(state) {
  const jobs = Object.values(state.jobs).filter((job) => job.kind === "request");
  jobs.sort((a, b) => b.askedAt.localeCompare(a.askedAt));
  return [
    ...Object.values(state.triggers).map((trigger) => ({
      label: trigger.title || trigger.prompt,
      icon: "trigger",
      go: { view: /** @type {const} */ ("trigger"), id: trigger.id },
    })),
    ...jobs.map((job) => ({
      label: job.title,
      icon: "tasks",
      go: { view: /** @type {const} */ ("task"), id: job.taskId },
    })),
  ];
}
