/** Server-sanitised HTML that comes block by block: each is put in once, and stays as it is. */

import { nothing } from "../vendor/lit-html/lit-html.js";
import { Directive, directive } from "../vendor/lit-html/directive.js";
import { insertHtml } from "./html.js";

/** @typedef {import("./types.js").DraftBlock} DraftBlock */

class GrowingHtml extends Directive {
  /** @param {any} part */
  constructor(part) {
    super(part);
    this.name = "";
    this.count = 0;
  }

  /** @param {string} _name of the text: another one begins anew @param {DraftBlock[]} _blocks */
  render(_name, _blocks) {
    return nothing;
  }

  /** @param {any} part @param {[string, DraftBlock[]]} values */
  update(part, [name, blocks]) {
    const { element } = part;
    if (name !== this.name || blocks.length < this.count) {
      element.replaceChildren();
      this.name = name;
      this.count = 0;
    }
    for (const block of blocks.slice(this.count)) {
      const box = document.createElement("div");
      insertHtml(box, block.html);
      element.append(...box.childNodes);
    }
    this.count = blocks.length;
    return nothing;
  }
}

export const growingHtml = directive(GrowingHtml);
