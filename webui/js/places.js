/** The places of the side panel: each is fetched when one comes to it first. */

/**
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./actions.js").Actions} Actions
 * @typedef {(state: State, act: Actions) => unknown} View
 * @typedef {(state: State, before: State) => void} Hearer
 *
 * @typedef {object} Parts what the page has for those who work behind a view
 * @property {import("./store.js").Store} store
 * @property {import("./api.js").Api} api
 * @property {Actions} actions
 * @property {import("./actions.js").Hands} hands
 * @property {import("./keeper.js").Timers} timers
 *
 * @typedef {(parts: Parts) => Hearer} Begin has them begin, once; hears what changes from then on
 */

/** @type {Record<string, () => Promise<{begin: Begin}>>} what several places share beside their views */
const ROOMS = {
  work: () => import("./rooms/work.js"),
  triggers: () => import("./rooms/triggers.js"),
  memory: () => import("./rooms/memory.js"),
  engines: () => import("./rooms/engines.js"),
  channels: () => import("./rooms/channels.js"),
  usage: () => import("./rooms/usage.js"),
  search: () => import("./rooms/search.js"),
  reason: () => import("./rooms/reason.js"),
};

/** @type {Partial<Record<State["route"]["view"], keyof typeof ROOMS>>} */
const ROOM_OF = {
  tasks: "work",
  task: "work",
  trigger: "triggers",
  triggerNew: "triggers",
  triggerEdit: "triggers",
  memory: "memory",
  note: "memory",
  noteNew: "memory",
  noteEdit: "memory",
  backlog: "memory",
  engines: "engines",
  channels: "channels",
  usage: "usage",
  search: "search",
  reason: "reason",
};

/** @type {Record<Exclude<State["route"]["view"], "chat">, () => Promise<View>>} */
const VIEWS = {
  home: async () => (await import("./views/home.js")).homeView,
  settings: async () => (await import("./views/settings-page.js")).settingsPageView,
  logs: async () => (await import("./views/logs.js")).logsView,
  tasks: async () => (await import("./views/tasks.js")).tasksView,
  task: async () => (await import("./views/task.js")).taskView,
  triggers: async () => (await import("./views/triggers.js")).triggersView,
  trigger: async () => (await import("./views/trigger.js")).triggerView,
  triggerNew: async () => (await import("./views/trigger-form.js")).triggerFormView,
  triggerEdit: async () => (await import("./views/trigger-form.js")).triggerFormView,
  memory: async () => (await import("./views/memory.js")).memoryView,
  note: async () => (await import("./views/note.js")).noteView,
  noteNew: async () => (await import("./views/note-form.js")).noteFormView,
  noteEdit: async () => (await import("./views/note-form.js")).noteFormView,
  search: async () => (await import("./views/search.js")).searchView,
  backlog: async () => (await import("./views/backlog.js")).backlogView,
  engines: async () => (await import("./views/engines.js")).enginesView,
  channels: async () => (await import("./views/channels.js")).channelsView,
  reason: async () => (await import("./views/reason.js")).reasonView,
  usage: async () => (await import("./views/usage.js")).usageView,
};

/** @param {State} state  The place that the panel shows; beside the chat it is this one. */
export function placeShown({ route }) {
  return route.view === "chat" ? "home" : route.view;
}

export class PlaceKeeper {
  /** @param {Parts} parts */
  constructor(parts) {
    this.parts = parts;
    this.store = parts.store;
    /** @type {Map<string, Promise<void>>} */
    this.rooms = new Map();
    /** @type {Hearer[]} */
    this.hearers = [];
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    for (const hearer of this.hearers) hearer(state, before);
    const unseen = !state.wide && state.route.view === "chat";
    if (state.session !== "in" || unseen) return;
    const name = placeShown(state);
    const anew = state.connection !== before.connection || state.route !== before.route;
    const lost = anew && state.places[name] === "failed"; // the line is back, or one comes again
    if (lost || !(name in state.places)) void this.load(name);
  }

  /** @param {keyof typeof VIEWS} name */
  async load(name) {
    this.keep(name, "loading");
    try {
      const [view] = await Promise.all([VIEWS[name](), this.opened(ROOM_OF[name])]);
      this.keep(name, view);
    } catch {
      this.keep(name, "failed"); // the server is away, or has a newer page
    }
  }

  /** @private @param {string | undefined} room */
  async opened(room) {
    if (room === undefined) return;
    if (!this.rooms.has(room)) this.rooms.set(room, this.open(room));
    try {
      await this.rooms.get(room);
    } catch (error) {
      this.rooms.delete(room);
      throw error;
    }
  }

  /** @private @param {string} room  To who begins here it is as if one had just come from the chat. */
  async open(room) {
    const { begin } = await ROOMS[room]();
    const hearer = begin(this.parts);
    this.hearers.push(hearer);
    const { state } = this.store;
    hearer(state, { ...state, route: { view: "chat" } });
  }

  /** @private @param {string} name @param {import("./state-types.js").Place} place */
  keep(name, place) {
    this.store.set({ places: { ...this.store.state.places, [name]: place } });
  }
}
