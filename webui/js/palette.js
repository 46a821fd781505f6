/** The palette: whatever can be gone to or done, by a few letters. Fetched when it is opened first. */

import { render } from "./html.js";
import { placeOfHit } from "./memory.js";
import { offered } from "./palette-items.js";
import { hashOf } from "./route.js";
import { paletteView } from "./views/palette.js";

/**
 * @typedef {import("./palette-items.js").Item} Item
 * @typedef {import("./actions.js").Actions} Actions
 * @typedef {import("./types.js").SearchHit} Hit
 */

/** What was said and remembered is looked through once the typing rests. */
const REST_MS = 200;
const FOUND = 6;
const PAGE = 7;
/** Above what is chosen, and below it. Units: CSS pixels. */
const HEAD = 34;
const GAP = 8;
/** @type {Record<string, string>} */
const NO_FILES = { transcript: "chat", result: "tasks", work: "tasks", trigger: "trigger" };

export class Palette {
  /**
   * @param {Actions} act
   * @param {HTMLElement} box in which it is drawn
   * @param {Record<string, () => void>} deeds what only the page itself can do
   */
  constructor(act, box, deeds) {
    this.act = act;
    this.box = box;
    this.deeds = deeds;
    this.query = "";
    this.chosen = "";
    /** @type {Hit[]} */
    this.hits = [];
    /** @type {"idle" | "asking" | "ready" | "failed"} */
    this.stage = "idle";
    /** @type {any} */
    this.resting = null;
    act.store.onChange(() => this.isOpen && this.draw());
  }

  /** @private @returns {HTMLDialogElement | null} */
  get dialog() {
    return this.box.querySelector("dialog.palette");
  }

  get isOpen() {
    return Boolean(this.dialog?.open);
  }

  open() {
    this.query = this.chosen = "";
    this.hits = [];
    this.stage = "idle";
    this.draw();
    this.dialog?.showModal();
    this.dialog?.querySelector("input")?.focus();
  }

  close() {
    this.dialog?.close();
  }

  /** What is offered, as it stands on the list. @returns {Item[]} */
  items() {
    const { state } = this.act.store;
    const items = offered(state, this.query);
    const q = this.query.trim();
    if (!q) return items;
    return [...items, ...this.hits.map((hit, number) => this.found(hit, number)), this.everywhere(q)];
  }

  /** @private @param {Hit} hit @param {number} number @returns {Item} */
  found(hit, number) {
    const place = placeOfHit(hit);
    const to = place && "view" in place ? place : undefined;
    const subject = place && "message" in place ? place.message : undefined;
    const sign = NO_FILES[hit.kind] ?? "note";
    return { id: `found-${number}`, group: "found", title: "", sign, to, deed: "message", subject, hit };
  }

  /** @private @param {string} q @returns {Item} */
  everywhere(q) {
    const to = /** @type {const} */ ({ view: "search", q, kind: "all" });
    return { id: "everywhere", group: "found", title: "", sign: "search", to };
  }

  // --- what the view tells

  /** @param {string} query */
  type(query) {
    this.query = query;
    this.chosen = "";
    clearTimeout(this.resting);
    const q = query.trim();
    if (!q) this.hits = [];
    this.stage = q ? "asking" : "idle";
    if (q) this.resting = setTimeout(() => void this.search(q), REST_MS);
    this.draw();
  }

  /** @private @param {string} q */
  async search(q) {
    try {
      const { hits } = await this.act.api.search(q, "all", FOUND);
      if (this.query.trim() !== q) return;
      this.hits = hits.filter((/** @type {Hit} */ hit) => placeOfHit(hit));
      this.stage = "ready";
    } catch {
      if (this.query.trim() !== q) return;
      this.hits = [];
      this.stage = "failed"; // the search's own place says why, and tries again
    }
    this.draw();
  }

  /** @param {KeyboardEvent} event  An input method's keys are its own. */
  key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    const items = this.items();
    const at = Math.max(0, items.findIndex((item) => item.id === this.chosen));
    const last = items.length - 1;
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: at === last ? 0 : at + 1,
      ArrowUp: at === 0 ? last : at - 1,
      PageDown: Math.min(last, at + PAGE),
      PageUp: Math.max(0, at - PAGE),
    };
    if (event.key in moves) {
      event.preventDefault();
      this.choose(items[moves[event.key]]?.id ?? "");
      this.follow();
    } else if (event.key === "Enter" && items[at]) {
      event.preventDefault();
      this.run(items[at]);
    }
  }

  /** @private  What is chosen is in sight, with the head of its group above it. */
  follow() {
    const list = this.box.querySelector("#palette-list");
    const item = this.box.querySelector("[aria-selected=true]");
    if (!list || !item) return;
    const [frame, place] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
    const above = place.top - HEAD - frame.top;
    const below = place.bottom + GAP - frame.bottom;
    if (above < 0) list.scrollTop += above;
    else if (below > 0) list.scrollTop += below;
  }

  /** @param {string} id */
  choose(id) {
    if (id === this.chosen) return;
    this.chosen = id;
    this.draw();
  }

  /** @param {Item} item */
  run({ to, deed, subject = "", hit }) {
    this.close();
    const { act } = this;
    const { state } = act.store;
    if (to) {
      if (state.wide && to.view !== "chat" && !state.panelOpen) act.togglePanel();
      location.hash = hashOf(to);
      if (to.view === "search") act.hands.focus("#search-field");
    } else if (deed === "message") void act.search.openMessage(subject, hit?.day);
    else if (deed === "stop") void act.turns.stop();
    else if (deed === "theme") act.setTheme(/** @type {any} */ (subject));
    else if (deed === "language") void act.setLanguage(/** @type {any} */ (subject));
    else if (deed === "export") void act.home.saveChat("md");
    else if (deed === "logout") void act.logout();
    else if (deed === "pause" || deed === "resume" || deed === "run") void act.orderTrigger(subject, deed);
    else if (deed) this.deeds[deed]?.();
  }

  /** @private */
  draw() {
    const items = this.items();
    if (!items.some((item) => item.id === this.chosen)) this.chosen = items[0]?.id ?? "";
    render(paletteView(this, items), this.box);
  }
}
