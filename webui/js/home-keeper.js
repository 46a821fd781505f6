/**
 * Keeps home fresh: what needs its user always, as the places show how much that is; the last hours
 * and the log while one looks at them.
 */

import { Keeper } from "./keeper.js";
import { placeShown } from "./places.js";

/** @typedef {import("./state-types.js").State} State */

const REFRESH_MS = 1500;
/** While nobody looks at it. */
const AWAY_MS = 6000;
/** The bars grow slowly; where one begins or ends they are looked at anew with the rest. */
const TIMELINE_MS = 15_000;
/** What comes with time alone: a trigger that is late, a disk that is full. */
const ANYWAY_MS = 60_000;
/** While nothing runs in the background: nobody tells whether it still starts, or has failed to. */
const ALONE_MS = 5000;
const LOG_MS = 2000;
export const LOG_KEPT = 2000;

/** @param {State} state  Whether one sees it. */
export function homeIsSeen(state) {
  const isOpen = state.wide ? state.panelOpen : state.route.view !== "chat";
  return isOpen && placeShown(state) === "home";
}

/** @extends {Keeper<import("./keeper.js").Timers>} */
export class HomeKeeper extends Keeper {
  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (state.session !== "in" || state.load !== "ready") return;
    const seen = homeIsSeen(state);
    const came = seen && !homeIsSeen(before);
    const { home, day, now } = state;
    const fresh = home.view?.health.consumer === "ok" ? ANYWAY_MS : ALONE_MS;
    if (state.jobs !== before.jobs && ranOrEnded(state.jobs, before.jobs)) this.moved = true;
    if (!home.at || came) {
      if (!this.busy) void this.load();
    } else if (moved(state, before) || now - home.at > fresh) {
      const rest = Math.min(Math.max(REFRESH_MS, this.took * 10), AWAY_MS);
      this.soon(() => void this.load(), seen ? rest : AWAY_MS);
    }
    if (state.route !== before.route) this.lookedAt(state);
    const stale = now - day.at > TIMELINE_MS;
    if (seen && stale && !this.drawing && (came || !day.at || home !== before.home)) {
      void this.loadDay();
    }
  }

  busy = false;
  drawing = false;
  moved = false;
  took = 0;

  /** @private @param {State} state  A failure whose task is opened was looked at. */
  lookedAt({ route, home }) {
    const id = route.view === "task" ? route.id : "";
    const isOpen = (/** @type {import("./types.js").Need} */ need) =>
      need.kind === "failure" && need.taskId === id;
    if (!home.view?.needs.some(isOpen)) return;
    const needs = home.view.needs.filter((need) => !isOpen(need));
    this.store.set({ home: { ...home, view: { ...home.view, needs } } });
    this.api.dismiss(id).catch(() => {}); // then it is told of again
  }

  async load() {
    this.busy = true;
    const began = Date.now();
    try {
      const view = await this.api.home();
      this.store.set({ home: { load: "ready", view, at: this.store.state.now || 1 } });
    } catch {
      const { home, now } = this.store.state;
      this.store.set({ home: { ...home, load: home.view ? "ready" : "failed", at: now || 1 } });
    }
    if (this.moved && !this.drawing && homeIsSeen(this.store.state)) await this.loadDay();
    this.took = Date.now() - began;
    this.busy = false;
  }

  async loadDay() {
    this.drawing = true;
    this.moved = false;
    try {
      const view = await this.api.timeline();
      const { day, now } = this.store.state;
      this.store.set({ day: { ...day, load: "ready", view, at: now } });
    } catch {
      const { day, now } = this.store.state;
      this.store.set({ day: { ...day, load: day.view ? "ready" : "failed", at: now } });
    }
    this.drawing = false;
  }
}

/** @param {State} state @param {State} before  Whether something changed that home may speak of. */
function moved(state, before) {
  if (state.jobs !== before.jobs || state.tasks !== before.tasks) return true;
  if (state.triggers !== before.triggers) return true;
  if (state.question !== before.question || state.session !== before.session) return true;
  return state.status !== before.status && gist(state) !== gist(before);
}

/** @param {State["jobs"]} jobs @param {State["jobs"]} before  Whether a run of one began or ended: lines come all the time. */
function ranOrEnded(jobs, before) {
  return Object.values(jobs).some((job) => {
    const was = before[job.id];
    if (job === was) return false;
    return job.state !== was?.state || job.taskId !== was.taskId || job.total !== was.total;
  });
}

/** @param {State} state  What home says of the status. */
function gist({ status }) {
  if (!status) return "";
  const { consumer, paused, degraded, quarantined, minds, usage } = status;
  const waiting = Object.values(minds).map((one) => [one.engine, one.state, one.until, one.tasks]);
  return JSON.stringify([consumer, paused, degraded, quarantined, waiting, usage.budget.until]);
}

/** @extends {Keeper<import("./keeper.js").Timers>} */
export class LogKeeper extends Keeper {
  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (state.route.view !== "logs" || state.session !== "in") return;
    const { logs } = state;
    const opened = state.route !== before.route || state.session !== before.session;
    const asked = ["type", "q", "id"].some((key) => logs[key] !== before.logs[key]);
    if (opened) {
      const { type = "", id = "" } = state.route;
      if (type || id) this.store.set({ logs: { ...logs, type, id, q: "", load: "loading" } });
      void this.load();
    } else if (asked) this.rested(() => void this.load(), logs.q === before.logs.q ? 0 : 250);
    else if (logs.load === "ready") this.soon(() => void this.follow(), LOG_MS);
  }

  /** The newest lines that are asked for. */
  async load() {
    const { logs } = this.store.state;
    const asked = wanted(logs);
    try {
      const page = await this.api.logs({ ...asked, limit: "200" });
      const { logs: now } = this.store.state;
      if (JSON.stringify(wanted(now)) !== JSON.stringify(asked)) return; // typed on meanwhile
      const { lines, before, after } = page;
      this.store.set({ logs: { ...now, load: "ready", lines, before, after, older: "idle" } });
    } catch {
      const { logs: now } = this.store.state;
      this.store.set({ logs: { ...now, load: now.after ? "ready" : "failed" } });
    }
  }

  /** What has come since; goes on by itself. */
  async follow() {
    const { logs, route, session } = this.store.state;
    if (route.view !== "logs" || session !== "in" || !logs.after || document.hidden) return;
    const asked = wanted(logs);
    try {
      const page = await this.api.logs({ ...asked, after: logs.after });
      const { logs: now } = this.store.state;
      if (JSON.stringify(wanted(now)) !== JSON.stringify(asked) || now.after !== logs.after) return;
      if (page.after === now.after) return;
      if (now.paused) return this.store.set({ logs: { ...now, held: page.lines.length } });
      const lines = [...now.lines, ...page.lines].slice(-LOG_KEPT);
      this.store.set({ logs: { ...now, lines, after: page.after, held: 0 } });
    } catch {
      // the next look finds what came meanwhile
    } finally {
      this.soon(() => void this.follow(), LOG_MS);
    }
  }
}

/** @param {State["logs"]} logs */
export function wanted({ type, q, id }) {
  return { type: type || null, q: q.trim() || null, id: id || null };
}
