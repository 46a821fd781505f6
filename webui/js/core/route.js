/** Where in the page we are, as the address's fragment says: so that the back button works. */

import { isNotePath } from "../pages/memory.js";
import { CHIPS } from "./jobs.js";

const ID = "([A-Za-z0-9][\\w.-]{0,127})";
const ONE = new RegExp(`^#/(task|trigger)/${ID}$`);
const EDIT = new RegExp(`^#/trigger/${ID}/edit$`);
const NOTE = /^#\/memory\/([^?]+)(?:\?(?:(edit)|line=(\d{1,7})))?$/;

/**
 * Of each view the place it belongs to, the view one level up inside the side panel, its address where
 * that is always the same, and the icon of a link to it.
 *
 * @type {Record<Route["view"], {place: string, above?: Route["view"], hash?: string, icon?: string}>}
 */
const VIEWS = {
  chat: { place: "chat", hash: "#/", icon: "chat" },
  home: { place: "home", hash: "#/home", icon: "mark" },
  tasks: { place: "tasks", hash: "#/tasks", icon: "tasks" },
  task: { place: "tasks", above: "tasks" },
  triggers: { place: "triggers", hash: "#/triggers", icon: "trigger" },
  trigger: { place: "triggers", above: "triggers" },
  triggerNew: { place: "triggers", above: "triggers", hash: "#/triggers/new" },
  triggerEdit: { place: "triggers", above: "trigger" },
  memory: { place: "memory", hash: "#/memory", icon: "memory" },
  note: { place: "memory", above: "memory" },
  noteNew: { place: "memory", above: "memory", hash: "#/memory/new" },
  noteEdit: { place: "memory", above: "note" },
  backlog: { place: "memory", above: "memory", hash: "#/backlog", icon: "list" },
  engines: { place: "settings", hash: "#/engines", icon: "settings" },
  life: { place: "settings", hash: "#/settings", icon: "settings" },
  usage: { place: "settings", above: "tasks", hash: "#/usage", icon: "list" },
};

/**
 * The views that can be gone to from anywhere.
 *
 * @type {{view: any, place: string, hash?: string, icon: string}[]}
 */
export const PLACES = Object.entries(VIEWS).flatMap(([view, { place, hash, icon }]) =>
  icon ? [{ view, place, hash, icon }] : [],
);

/** @param {string} hash @returns {Route} */
export function routeOf(hash) {
  const [place] = hash.split("?", 1);
  const plain = Object.entries(VIEWS).find(([, view]) => view.hash === place)?.[0];
  if (plain) return /** @type {Route} */ ({ view: plain });
  const edited = EDIT.exec(hash)?.[1];
  if (edited) return { view: "triggerEdit", id: edited };
  const [, view, id] = ONE.exec(hash) ?? [];
  if (view === "task" || view === "trigger") return { view, id };
  return noteOf(hash) ?? { view: "chat" };
}

/** @param {string} hash @returns {Route | null} */
function noteOf(hash) {
  const [, name, edit, line] = NOTE.exec(hash) ?? [];
  if (!name) return null;
  try {
    const path = name.split("/").map(decodeURIComponent).join("/");
    if (!isNotePath(path)) return null;
    if (edit) return { view: "noteEdit", path };
    return { view: "note", path, line: line ? Number(line) : null };
  } catch {
    return null; // typed by hand, and not well
  }
}

/** @param {Route} route */
export function hashOf(route) {
  switch (route.view) {
    case "task":
    case "trigger":
      return `#/${route.view}/${route.id}`;
    case "triggerEdit":
      return `#/trigger/${route.id}/edit`;
    case "note":
      return noteHash(route.path) + (route.line ? `?line=${route.line}` : "");
    case "noteEdit":
      return `${noteHash(route.path)}?edit`;
    default:
      return VIEWS[route.view].hash ?? "#/";
  }
}

/** @param {Route} route @param {Pick<State, "list" | "memory">} state  Its fragment, with what is looked for there. */
export function addressOf(route, { list, memory }) {
  const chip = list.chip === "all" ? "" : list.chip;
  const asked = { tasks: { q: list.q, chip }, memory: { q: memory.query } };
  const given = Object.entries(asked[/** @type {"tasks"} */ (route.view)] ?? {}).filter(([, value]) => value);
  return hashOf(route) + (given.length ? `?${new URLSearchParams(given)}` : "");
}

/** @param {string} hash  What is looked for, as `addressOf` wrote it. */
export function askedIn(hash) {
  const asked = new URLSearchParams(hash.split("?")[1]);
  const chip = asked.get("chip") ?? "";
  return { q: asked.get("q") ?? "", chip: Object.hasOwn(CHIPS, chip) ? chip : "all" };
}

/** @param {string} path */
function noteHash(path) {
  return `#/memory/${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** @param {Route} route  The place it belongs to. */
export function placeOf(route) {
  return VIEWS[route.view].place;
}

/** @param {Route} route @returns {Route | null} one level up, inside the side panel */
export function above(route) {
  const { above: view } = VIEWS[route.view];
  if (!view) return null;
  if (route.view === "noteEdit") return { view: "note", path: route.path, line: null };
  if (route.view === "triggerEdit") return { view: "trigger", id: route.id };
  return /** @type {Route} */ ({ view });
}

/** @param {string} hash @returns {string | null} the code of a one-time login link */
export function loginCode(hash) {
  return /^#login=([\w.~-]{1,200})$/.exec(hash)?.[1] ?? null;
}
