/** The state's holder: changes go in as actions, those who draw are told once per frame. */

import { initialState, reduce } from "./state.js";

export class Store {
  /** @param {(draw: () => void) => void} [soon] calls back at the next good moment to draw */
  constructor(soon = (draw) => void requestAnimationFrame(draw)) {
    this.state = initialState();
    this.soon = soon;
    /** @type {((state: State, before: State) => void)[]} */
    this.listeners = [];
    /** @type {State | null} what was last drawn, while a drawing is ahead */
    this.drawn = null;
  }

  /** @param {Action} action */
  dispatch(action) {
    const before = this.state;
    this.state = reduce(before, action);
    if (this.state === before || this.drawn) return;
    this.drawn = before;
    this.soon(() => this.tell());
  }

  /** @param {Partial<State>} values the page's own small choices */
  set(values) {
    this.dispatch({ type: "set", values });
  }

  /** @param {keyof State} part @param {object} values  Some of one part of the state. */
  patch(part, values) {
    const before = /** @type {object} */ (this.state[part]);
    this.set({ [part]: { ...before, ...values } });
  }

  /** @param {"outbox" | "files"} list @param {OutboxItem | AttachedFile} item */
  add(list, item) {
    this.set({ [list]: [...this.state[list], item] });
  }

  /** @param {"outbox" | "files"} list @param {string} id @param {object} values  Some of one of its items. */
  change(list, id, values) {
    this.set({ [list]: this.state[list].map((one) => (one.id === id ? { ...one, ...values } : one)) });
  }

  /** @param {"outbox" | "files" | "notices"} list @param {string} id */
  remove(list, id) {
    this.set({ [list]: this.state[list].filter((one) => one.id !== id) });
  }

  /** @param {(state: State, before: State) => void} listener */
  onChange(listener) {
    this.listeners.push(listener);
  }

  /** @private */
  tell() {
    const before = this.drawn ?? this.state;
    this.drawn = null;
    for (const listener of this.listeners) listener(this.state, before);
  }
}
