/** Where in the page we are, as the address's fragment says: so that the back button works. */

/** @typedef {import("./types.js").Route} Route */

const ID = "([A-Za-z0-9][\\w.-]{0,127})";
const ONE = new RegExp(`^#/(task|trigger)/${ID}$`);
const EDIT = new RegExp(`^#/trigger/${ID}/edit$`);

/** @param {string} hash @returns {Route} */
export function routeOf(hash) {
  if (hash === "#/tasks") return { view: "tasks" };
  if (hash === "#/triggers") return { view: "triggers" };
  if (hash === "#/triggers/new") return { view: "triggerNew" };
  const edited = EDIT.exec(hash)?.[1];
  if (edited) return { view: "triggerEdit", id: edited };
  const [, view, id] = ONE.exec(hash) ?? [];
  if (view === "task" || view === "trigger") return { view, id };
  return { view: "chat" };
}

/** @param {Route} route */
export function hashOf(route) {
  switch (route.view) {
    case "chat":
      return "#/";
    case "task":
    case "trigger":
      return `#/${route.view}/${route.id}`;
    case "triggerNew":
      return "#/triggers/new";
    case "triggerEdit":
      return `#/trigger/${route.id}/edit`;
    default:
      return `#/${route.view}`;
  }
}

/** @param {Route} route @returns {"chat" | "tasks" | "triggers"} the place it belongs to */
export function placeOf(route) {
  if (route.view === "task") return "tasks";
  if (route.view === "chat" || route.view === "tasks") return route.view;
  return "triggers";
}

/** @param {Route} route @returns {Route | null} one level up, inside the side panel */
export function above(route) {
  if (route.view === "task") return { view: "tasks" };
  if (route.view === "triggerEdit") return { view: "trigger", id: route.id };
  if (route.view === "trigger" || route.view === "triggerNew") return { view: "triggers" };
  return null;
}

/** @param {string} hash @returns {string | null} the code of a one-time login link */
export function loginCode(hash) {
  return /^#login=([\w.~-]{1,200})$/.exec(hash)?.[1] ?? null;
}
