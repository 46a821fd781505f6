/**
 * Templates, and the one place where HTML made elsewhere enters the page.
 *
 * The server renders and sanitises; the browser's own sanitiser goes over it again where there is
 * one. Nothing else in the page may make HTML from a string: the content policy sees to that.
 */

import { html, nothing, render, svg } from "../../vendor/lit-html/lit-html.js";
import { Directive, directive } from "../../vendor/lit-html/directive.js";
import { guard } from "../../vendor/lit-html/directives/guard.js";
import { live } from "../../vendor/lit-html/directives/live.js";
import { repeat as keyed } from "../../vendor/lit-html/directives/repeat.js";
import { t } from "./i18n.js";
import { shown } from "./shown.js";

export { guard, html, live, nothing, render, svg };

/** @type {<T>(items: T[], key: (item: T) => string, view: (item: T, at: number) => unknown) => unknown} */
export const repeat = keyed;

/** Beside the bundle's folder, webui/dist/. */
const SPRITE = new URL("../icons.svg", import.meta.url).pathname;

const asIs = { createHTML: (/** @type {string} */ text) => text };
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("mimikit-html", asIs) ?? asIs;

/** Besides scripts and event handlers, which the browser's sanitiser always takes out. */
const TAKEN_OUT = {
  removeElements: ["form", "input", "button", "style", "svg", "math", "img", "video", "audio"],
  removeAttributes: ["style", "id", "name"],
};

/** @param {Element} element @param {string} text  Put server-sanitised HTML into an element. */
function insertHtml(element, text) {
  const box = /** @type {any} */ (element);
  if (typeof box.setHTML === "function") box.setHTML(text, { sanitizer: TAKEN_OUT });
  else box.innerHTML = policy.createHTML(text);
  finish(element);
}

/** @param {Element} element with texts that are shown in part */
function cutStacks(element) {
  const text = element.textContent ?? "";
  if (shown(text) === text) return;
  for (const code of element.querySelectorAll("pre")) {
    const whole = code.textContent ?? "";
    if (shown(whole) !== whole) code.dataset.whole = whole;
  }
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.nodeValue = shown(texts.currentNode.nodeValue ?? "");
}

/** @param {Element} element what the page adds to rendered text */
function finish(element) {
  cutStacks(element);
  for (const link of element.querySelectorAll("a[href]")) {
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer");
  }
  for (const table of element.querySelectorAll("table")) {
    const box = boxFor(table, "table-box");
    box.tabIndex = 0; // wide ones scroll sideways: the keyboard must reach them
    box.append(table);
  }
  for (const code of element.querySelectorAll("pre")) {
    const box = boxFor(code, "code-box");
    code.tabIndex = 0;
    box.append(copyButton(), code);
  }
}

/** @param {Element} element @param {string} name a box that takes its place */
function boxFor(element, name) {
  const box = document.createElement("div");
  box.className = name;
  element.replaceWith(box);
  return box;
}

/** The click is heard by the page as a whole (`data-copy`), so that a copy of the node works too. */
function copyButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.dataset.copy = "code";
  button.textContent = t("code.copy");
  return button;
}

class ServerHtml extends Directive {
  /** @param {any} part */
  constructor(part) {
    super(part);
    this.shown = /** @type {string[]} */ ([]);
    this.nodes = /** @type {any[]} */ ([]);
    /** What the element has of its own. */
    this.own = part.element.firstChild;
  }

  /** @param {string[]} _blocks */
  render(..._blocks) {
    return nothing;
  }

  /** @param {any} part @param {string[]} blocks */
  update({ element }, blocks) {
    if (this.shown.some((text, at) => text !== blocks[at])) {
      for (const node of this.nodes.splice(0)) node.remove();
      this.shown = [];
    }
    for (const text of blocks.slice(this.shown.length)) {
      const box = document.createElement("div");
      insertHtml(box, text);
      this.nodes.push(...box.childNodes);
      for (const node of [...box.childNodes]) element.insertBefore(node, this.own);
    }
    this.shown = blocks;
    return nothing;
  }
}

/** On an element: it begins with this server-sanitised HTML; what is known already is not put in again. */
export const serverHtml = directive(ServerHtml);

/** @param {string} name */
export function icon(name) {
  return html`<svg class="icon icon-${name}" aria-hidden="true" focusable="false">
    <use href="${SPRITE}#${name}"></use>
  </svg>`;
}
