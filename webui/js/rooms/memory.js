/** What the pages of memory, its notes and the backlog need beside their views. */

import { MemoryActions } from "../memory-actions.js";
import { MemoryKeeper } from "../memory-keeper.js";
import { MEMORY_ACTIONS } from "../memory-state.js";
import { readPref, writePref } from "../prefs.js";
import { addActions } from "../state.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, actions, hands, timers }) {
  addActions(MEMORY_ACTIONS);
  const keeper = new MemoryKeeper(store, api, { ...timers, read: readPref, keep: writePref });
  hands.reloadMemory = () => void keeper.loadList();
  hands.reloadBacklog = () => void keeper.loadBacklog();
  hands.reloadNote = (path) => void keeper.loadNote(path);
  actions.memory = new MemoryActions(store, api, {
    ...actions.help,
    go: (route) => actions.go(route),
    focus: hands.focus,
    reloadBacklog: hands.reloadBacklog,
  });
  addEventListener("pagehide", () => keeper.keepDrafts(store.state, null));
  return (state, before) => keeper.onChange(state, before);
}
