/** What lies over the page, palette and help, and the keys that call it. Each is fetched at need. */

import { render } from "./html.js";
import { KeyReader } from "./keys.js";
import { readPref, writePref } from "./prefs.js";

/**
 * @typedef {import("./actions.js").Actions} Actions
 * @typedef {import("./store.js").Store} Store
 */

export class Overlays {
  /**
   * @param {Store} store
   * @param {Actions} act
   * @param {Record<string, () => void>} deeds what keys and palette do, by the name of it
   */
  constructor(store, act, deeds) {
    this.store = store;
    this.act = act;
    this.deeds = { ...deeds, palette: () => void this.openPalette(), help: () => void this.openHelp() };
    this.reader = new KeyReader();
    /** @type {import("./palette.js").Palette | null} */
    this.palette = null;
    this.boxes = { palette: boxOf("over-palette"), help: boxOf("over-help") };
    document.addEventListener("keydown", (event) => this.onKey(event));
    store.onChange((state) => {
      if (state.session === "out") this.closeAll();
    });
  }

  async openPalette() {
    if (this.store.state.session !== "in") return;
    try {
      const { Palette } = await import("./palette.js");
      this.palette ??= new Palette(this.act, this.boxes.palette, this.deeds);
    } catch {
      return this.act.notifyAway();
    }
    if (this.palette.isOpen) this.palette.close();
    else if (!isCovered()) this.palette.open();
  }

  async openHelp() {
    try {
      const { keysView } = await import("./views/keys.js");
      const draw = () => {
        const close = () => this.boxes.help.querySelector("dialog")?.close();
        const setSingle = (/** @type {boolean} */ on) => {
          writePref("keys", on ? "" : "off");
          draw();
        };
        render(keysView(single(), { close, setSingle }), this.boxes.help);
      };
      draw();
    } catch {
      return this.act.notifyAway();
    }
    if (!isCovered()) this.boxes.help.querySelector("dialog")?.showModal();
  }

  /** @private @param {KeyboardEvent} event */
  onKey(event) {
    if (this.store.state.session !== "in") return;
    const page = { now: performance.now(), single: single(), covered: isCovered() };
    const key = this.reader.read(event, page);
    if (!key) return;
    event.preventDefault();
    if (key.to) this.act.visit(key.to);
    else this.deeds[key.id]?.();
  }

  /** @private */
  closeAll() {
    for (const box of Object.values(this.boxes)) box.querySelector("dialog")?.close();
  }
}

/** Keys of one letter are in the way of those who speak to their machine: they can be put off. */
const single = () => readPref("keys") !== "off";

/** Whether something lies over the page: a key is meant for that. */
export const isCovered = () => Boolean(document.querySelector("dialog[open], :popover-open"));

/** @param {string} id */
function boxOf(id) {
  const box = document.createElement("div");
  box.id = id;
  document.body.append(box);
  return box;
}
