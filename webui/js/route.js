/** Where in the page we are, as the address's fragment says: so that the back button works. */

/** @typedef {import("./types.js").Route} Route */

/** @param {string} hash @returns {Route} */
export function routeOf(hash) {
  const [, view, id] =
    /^#\/(tasks|triggers|task)(?:\/([A-Za-z0-9][\w.-]{0,127}))?$/.exec(hash) ?? [];
  if (view === "task" && id) return { view, id };
  if (view === "tasks" || view === "triggers") return { view };
  return { view: "chat" };
}

/** @param {Route} route */
export function hashOf(route) {
  if (route.view === "chat") return "#/";
  return route.view === "task" ? `#/task/${route.id}` : `#/${route.view}`;
}

/** @param {string} hash @returns {string | null} the code of a one-time login link */
export function loginCode(hash) {
  return /^#login=([\w.~-]{1,200})$/.exec(hash)?.[1] ?? null;
}
