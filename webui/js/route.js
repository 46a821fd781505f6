/** Where in the page we are, as the address's fragment says: so that the back button works. */

import { filterOf, listHash } from "./lists.js";

/** @typedef {import("./state-types.js").Route} Route */

const ID = "([A-Za-z0-9][\\w.-]{0,127})";
const ONE = new RegExp(`^#/(task|trigger|reason)/${ID}$`);
const EDIT = new RegExp(`^#/trigger/${ID}/edit$`);
const LIST = /^#\/(tasks|triggers)\?(.*)$/;
const SEARCH = /^#\/search(?:\?(.*))?$/;
const LOGS = /^#\/logs(?:\?(type|id)=([A-Za-z0-9][\w.-]{0,127}))?$/;
const NOTE = /^#\/memory\/([^?]+)(?:\?(?:(edit)|line=(\d{1,7})))?$/;

/** @type {Record<string, Route>} */
const PLAIN = {
  "#/home": { view: "home" },
  "#/settings": { view: "settings" },
  "#/tasks": { view: "tasks" },
  "#/triggers": { view: "triggers" },
  "#/triggers/new": { view: "triggerNew" },
  "#/memory": { view: "memory" },
  "#/memory/new": { view: "noteNew" },
  "#/backlog": { view: "backlog" },
  "#/engines": { view: "engines" },
  "#/channels": { view: "channels" },
  "#/usage": { view: "usage" },
};

/** @param {string} hash @returns {Route} */
export function routeOf(hash) {
  if (PLAIN[hash]) return { ...PLAIN[hash] };
  const edited = EDIT.exec(hash)?.[1];
  if (edited) return { view: "triggerEdit", id: edited };
  const [, view, id] = ONE.exec(hash) ?? [];
  if (view === "task" || view === "trigger" || view === "reason") return { view, id };
  const [, list, filter] = LIST.exec(hash) ?? [];
  if (list === "tasks" || list === "triggers") return { view: list, ...filterOf(list, filter) };
  const search = SEARCH.exec(hash);
  if (search) return searchOf(new URLSearchParams(search[1] ?? ""));
  return logsOf(hash) ?? noteOf(hash) ?? { view: "chat" };
}

/** @param {string} hash @returns {Route | null}  Lines of one kind, or about one task. */
function logsOf(hash) {
  const [found, key, value] = LOGS.exec(hash) ?? [];
  return found ? { view: "logs", ...(key ? { [key]: value } : {}) } : null;
}

export const KINDS = /** @type {const} */ (["all", "messages", "memory", "work"]);

/** @param {URLSearchParams} asked @returns {Route} */
function searchOf(asked) {
  const kind = KINDS.find((one) => one === asked.get("kind")) ?? "all";
  return { view: "search", q: (asked.get("q") ?? "").slice(0, 1000), kind };
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
    case "chat":
      return "#/";
    case "task":
    case "trigger":
    case "reason":
      return `#/${route.view}/${route.id}`;
    case "tasks":
    case "triggers":
      return listHash(route.view, route);
    case "search":
      return searchHash(route.q, route.kind);
    case "triggerNew":
      return "#/triggers/new";
    case "triggerEdit":
      return `#/trigger/${route.id}/edit`;
    case "logs":
      if (route.id) return `#/logs?id=${route.id}`;
      return route.type ? `#/logs?type=${route.type}` : "#/logs";
    case "noteNew":
      return "#/memory/new";
    case "note":
      return noteHash(route.path) + (route.line ? `?line=${route.line}` : "");
    case "noteEdit":
      return `${noteHash(route.path)}?edit`;
    default:
      return `#/${route.view}`;
  }
}

/** @param {string} q @param {string} kind */
function searchHash(q, kind) {
  const asked = new URLSearchParams({ ...(q ? { q } : {}), ...(kind === "all" ? {} : { kind }) });
  return asked.size ? `#/search?${asked}` : "#/search";
}

/** @param {string} path */
function noteHash(path) {
  return `#/memory/${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** @type {Record<Route["view"], "chat" | "home" | "tasks" | "triggers" | "memory" | "search" | "settings">} */
const PLACES = {
  chat: "chat",
  reason: "chat",
  home: "home",
  tasks: "tasks",
  task: "tasks",
  triggers: "triggers",
  trigger: "triggers",
  triggerNew: "triggers",
  triggerEdit: "triggers",
  memory: "memory",
  note: "memory",
  noteNew: "memory",
  noteEdit: "memory",
  backlog: "memory",
  search: "search",
  settings: "settings",
  engines: "settings",
  channels: "settings",
  logs: "settings",
  usage: "settings",
};

/** @param {Route} route  The place it belongs to. */
export function placeOf(route) {
  return PLACES[route.view];
}

/** @param {Route} route @returns {Route | null} one level up, inside the side panel */
export function above(route) {
  switch (route.view) {
    case "task":
      return { view: "tasks" };
    case "engines":
    case "channels":
    case "usage":
    case "logs":
      return { view: "settings" };
    case "triggerEdit":
      return { view: "trigger", id: route.id };
    case "trigger":
    case "triggerNew":
      return { view: "triggers" };
    case "noteEdit":
      return { view: "note", path: route.path, line: null };
    case "note":
    case "noteNew":
    case "backlog":
      return { view: "memory" };
    case "reason":
      return { view: "chat" };
    default:
      return null;
  }
}

/** @param {string} hash @returns {string | null} the code of a one-time login link */
export function loginCode(hash) {
  return /^#login=([\w.~-]{1,200})$/.exec(hash)?.[1] ?? null;
}

/** @param {string} path  Whether it may be a file of memory; whether it is one, the server says. */
export function isNotePath(path) {
  const parts = path.split("/");
  return /\.md$/i.test(path) && parts.every((part) => part && part !== "." && part !== "..");
}
