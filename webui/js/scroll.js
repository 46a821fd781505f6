/**
 * Keeps the reader's place in a scrolling list of which a part is drawn.
 *
 * At the bottom it follows what comes. Further up, whatever is put in above or below, what is being
 * read stays where it is, also when the page gets another width. It moves the container itself and
 * nothing else. Around what is seen it has the list drawn; for the rest it keeps room.
 *
 * @typedef {import("./span.js").Span} Span
 * @typedef {import("./span.js").Sight} Sight
 *
 * @typedef {object} Ports
 * @property {() => HTMLElement | null} list  its children: room, the rows that are drawn, room
 * @property {() => {key: string}[]} rows  all that there are
 * @property {() => Sight} sight  which are drawn
 * @property {(sight: Sight) => void} look  have these drawn
 * @property {(yes: boolean) => void} following
 * @property {() => void} nearTop
 * @property {() => boolean} nearEnd  whether the end is the present one: else there is nothing to follow
 *
 * @typedef {{element: Element, top: number, height: number}} Anchor
 */

import { Heights, sightOf, spanOf } from "./span.js";

const NEAR_BOTTOM = 32;
const NEAR_TOP = 500;
/** Around what is seen so much more is drawn, once less than this is; in heights of the view. */
const AROUND = 1.1;
const LEAST = 0.75;
const MOST = 3;
/** So much stays between a row that is brought into sight and the edge. Units: pixels. */
const AIR = 24;
/** Rows drawn before and after one that is gone to. */
const BESIDE = 12;
/** Rows in sight that are held on to: the first may be gone once all is drawn anew. */
const HELD = 8;
const BLOCKS = "p, li, pre, tr, h1, h2, h3, h4, h5, h6, .plain";

export class ScrollKeeper {
  /** @param {HTMLElement} scroller @param {Ports} ports */
  constructor(scroller, ports) {
    this.scroller = scroller;
    this.ports = ports;
    this.following = true;
    this.lastTop = 0;
    this.heights = new Heights();
    /** @type {{rows: {key: string}[], span: Span}} as it was drawn last: the state may be further */
    this.drawn = { rows: [], span: { from: 0, to: 0 } };
    /** @type {Anchor[]} */
    this.anchors = [];
    this.width = scroller.clientWidth;
    /** @type {string | null} the row that is gone to as soon as it is drawn */
    this.aim = null;
    /** @type {Anchor | null} what is opened or closed: it stays under the pointer */
    this.grip = null;
    /** @type {Element | null} */
    this.focused = null;
    scroller.addEventListener("click", (event) => this.onClick(event), { capture: true });
    scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.sizes = new ResizeObserver(() => this.onResize());
    this.sizes.observe(scroller);
    const list = ports.list();
    if (list) this.sizes.observe(list);
  }

  /** Call before the list changes. */
  before() {
    this.reflow();
    // What was seen when it was last scrolled is where the reader is, whatever has moved it since.
    const isHeld = this.anchors.some(({ element }) => element.isConnected);
    if (this.following) this.anchors = [];
    else if (!isHeld) this.anchors = this.inSight();
    const { activeElement } = document;
    this.focused = this.ports.list()?.contains(activeElement) ? activeElement : null;
  }

  /** Call when it has changed. */
  after() {
    const list = this.ports.list();
    if (!list) return;
    const rows = this.ports.rows();
    const span = spanOf(rows, this.ports.sight());
    this.drawn = { rows, span };
    const expected = this.expected(list, rows);
    this.measure(list, rows, span);
    this.keepRoom(list, rows, span);
    if (!this.aimAt(list, rows, span) && !this.keepGrip()) this.hold(list, rows, expected);
    if (this.focused && !this.focused.isConnected) this.scroller.focus({ preventScroll: true });
    this.focused = null;
    this.cover(list, rows, span);
    if (this.scroller.scrollTop < NEAR_TOP) this.ports.nearTop();
  }

  toBottom(smooth = false) {
    const away = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
    const near = away < 2 * this.scroller.clientHeight;
    this.setFollowing(true);
    this.aim = null;
    this.ports.look(null);
    const top = this.scroller.scrollHeight;
    if (smooth && near) this.scroller.scrollTo({ top, behavior: "smooth" });
    else this.move(top);
  }

  /** @param {string} key a row, brought to the upper third */
  show(key) {
    const rows = this.ports.rows();
    const at = rows.findIndex((row) => row.key === key);
    if (at < 0) return;
    this.setFollowing(false);
    this.aim = key;
    const to = at + BESIDE < rows.length ? rows[at + BESIDE].key : null;
    this.ports.look(sightOf(rows, Math.max(0, at - BESIDE), to));
  }

  /** @param {Element} row  Into sight; of one that is taller than the view, its beginning. */
  bring(row) {
    const { top, height } = this.placeOf(row);
    const above = top - AIR;
    const below = top + height - this.scroller.clientHeight + AIR;
    const by = above < 0 ? above : Math.min(above, Math.max(0, below));
    if (!by) return;
    this.move(this.scroller.scrollTop + by);
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.setFollowing(scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM && this.ports.nearEnd());
    this.anchors = this.following ? [] : this.inSight();
  }

  /** @private */
  onScroll() {
    if (this.aim !== null) return; // it is left as soon as where one goes to is drawn
    this.reflow();
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const up = scrollTop < this.lastTop - 1;
    const isOwn = scrollTop === this.lastTop; // moved by us, to where what is held on to is
    this.lastTop = scrollTop;
    const left = scrollHeight - scrollTop - clientHeight;
    const isEnd = left < NEAR_TOP && this.ports.nearEnd();
    const list = this.ports.list();
    if (!list) return;
    if (left < NEAR_BOTTOM && isEnd) this.setFollowing(true);
    else if (up) this.setFollowing(false);
    if (!this.following && !isOwn) this.anchors = this.inSight();
    this.cover(list, this.drawn.rows, this.drawn.span);
    if (scrollTop < NEAR_TOP) this.ports.nearTop();
  }

  /** @private @param {Event} event */
  onClick({ target }) {
    const button = target instanceof Element ? target.closest("[aria-expanded]") : null;
    const row = button?.closest("#timeline > li");
    if (!button || !row) return;
    // Of a text that is opened above its button, what is seen of it first.
    const isBelow = button.matches(".long-button");
    this.grip = (isBelow ? this.blockIn(row) : null) ?? this.placeOf(isBelow ? row : button);
  }

  /** @private */
  keepGrip() {
    const { grip } = this;
    this.grip = null;
    if (!grip?.element.isConnected) return false;
    this.anchors = [grip];
    this.restore(false);
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.setFollowing(this.following && scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM);
    this.anchors = this.following ? [] : this.inSight();
    return true;
  }

  /** @private */
  onResize() {
    this.reflow();
    if (this.following) this.move(this.scroller.scrollHeight);
    else this.restore(false);
  }

  /** @private  With another width every text is broken anew: what was held on to is put back first. */
  reflow() {
    if (this.scroller.clientWidth === this.width) return;
    this.width = this.scroller.clientWidth;
    if (this.following) return;
    this.restore(true);
    this.anchors = this.inSight();
  }

  /** @private @param {boolean} yes */
  setFollowing(yes) {
    if (yes === this.following) return;
    this.following = yes;
    this.ports.following(yes);
    if (!yes && !this.ports.sight()) this.pin();
  }

  /** @private  What is drawn stays so, whatever comes at the end. */
  pin() {
    const { rows, span } = this.drawn;
    if (rows.length) this.ports.look(sightOf(rows, span.from, null));
  }

  /** @private @param {number} top */
  move(top) {
    this.scroller.scrollTop = top;
    this.lastTop = this.scroller.scrollTop;
  }

  /** @private @param {Element} element */
  topOf(element) {
    return element.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
  }

  // --- the part that is drawn

  /** @private @param {HTMLElement} list @param {{key: string}[]} rows @param {Span} span */
  measure(list, rows, span) {
    const drawn = Math.min(list.children.length - 2, span.to - span.from);
    for (let at = 0; at < drawn; at += 1) {
      const { height } = list.children[at + 1].getBoundingClientRect();
      this.heights.learn(rows[span.from + at].key, height);
    }
  }

  /** @private @param {HTMLElement} list @param {{key: string}[]} rows @param {Span} span */
  keepRoom(list, rows, span) {
    const above = this.heights.total(rows, 0, span.from);
    const below = this.heights.total(rows, span.to, rows.length);
    /** @type {HTMLElement} */ (list.firstElementChild).style.height = `${above}px`;
    /** @type {HTMLElement} */ (list.lastElementChild).style.height = `${below}px`;
  }

  /**
   * @private  The row that lies at the top of the view by what was known of heights so far.
   * @param {HTMLElement} list
   * @param {{key: string}[]} rows
   */
  expected(list, rows) {
    const top = -this.topOf(list);
    const { from } = this.heights.between(rows, top, top + 1);
    return { from, into: top - this.heights.total(rows, 0, from) };
  }

  /** @private @param {HTMLElement} list @param {{key: string}[]} rows @param {Span} span */
  aimAt(list, rows, span) {
    const at = this.aim === null ? -1 : rows.findIndex((row) => row.key === this.aim);
    const element = at >= span.from && at < span.to ? list.children[at - span.from + 1] : null;
    if (!element) return false;
    this.aim = null;
    this.move(this.scroller.scrollTop + this.topOf(element) - this.scroller.clientHeight / 3);
    this.anchors = this.inSight();
    return true;
  }

  /**
   * @private
   * @param {HTMLElement} list
   * @param {{key: string}[]} rows
   * @param {{from: number, into: number}} expected
   */
  hold(list, rows, { from, into }) {
    if (this.following) return this.move(this.scroller.scrollHeight);
    if (this.restore(false) || !rows.length) return undefined;
    // None of what was seen is drawn any more: the reader went far, to where others are now.
    const top = this.heights.total(rows, 0, from) + into;
    return this.move(this.scroller.scrollTop + this.topOf(list) + top);
  }

  /** @private @param {boolean} reflowed  Put what was seen back to where it was. */
  restore(reflowed) {
    const anchor = this.anchors.find(({ element }) => element.isConnected);
    if (!anchor) return false;
    const { element, top, height } = anchor;
    const cut = reflowed && top < 0 && height > 0; // read from its middle: its middle stays
    const wanted = cut ? (top / height) * element.getBoundingClientRect().height : top;
    const moved = this.topOf(element) - wanted;
    if (Math.abs(moved) >= 1) this.move(this.scroller.scrollTop + moved);
    return true;
  }

  /** @private @param {HTMLElement} list @param {{key: string}[]} rows @param {Span} span */
  cover(list, rows, span) {
    if (this.aim !== null || !rows.length || list.childElementCount < 2) return;
    const view = this.scroller.clientHeight;
    const top = -this.topOf(list);
    const above = top - /** @type {HTMLElement} */ (list.firstElementChild).offsetHeight;
    const room = /** @type {HTMLElement} */ (list.lastElementChild).offsetHeight;
    const below = list.offsetHeight - room - top - view;
    const lacksAbove = above < LEAST * view && span.from > 0;
    const lacksBelow = (this.following || below < LEAST * view) && span.to < rows.length;
    if (!lacksAbove && !lacksBelow && above < MOST * view && below < MOST * view) return;
    const wanted = this.heights.between(rows, top - AROUND * view, top + (1 + AROUND) * view);
    if (this.isSelecting(list)) {
      wanted.from = Math.min(wanted.from, span.from);
      wanted.to = Math.max(wanted.to, span.to);
    }
    if (this.following) wanted.to = rows.length;
    if (wanted.from === span.from && wanted.to === span.to) return;
    const to = wanted.to < rows.length ? rows[wanted.to - 1].key : null;
    this.ports.look(sightOf(rows, wanted.from, to));
  }

  /** @private @param {HTMLElement} list  What is being marked must not go while it is. */
  isSelecting(list) {
    const selection = document.getSelection();
    return Boolean(selection && !selection.isCollapsed && list.contains(selection.anchorNode));
  }

  // --- what is held on to

  /** @private @returns {Anchor[]} what is in sight, the first thing first: by halving */
  inSight() {
    const list = this.ports.list();
    const items = list ? [...list.children].slice(1, -1) : [];
    let low = 0;
    let high = items.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.placeOf(items[middle]).top + items[middle].getBoundingClientRect().height > 0) high = middle;
      else low = middle + 1;
    }
    const seen = items.slice(low, low + HELD).map((item) => this.placeOf(item));
    if (!seen.length || seen[0].top >= 0) return seen;
    // Its beginning is out of sight: the next one is held, or what of it is seen first.
    const [cut, ...whole] = seen;
    const inside = this.blockIn(cut.element);
    const own = inside ? [inside, cut] : [cut];
    const isNear = whole.length && whole[0].top < this.scroller.clientHeight / 2;
    return isNear ? [...whole, ...own] : [...own, ...whole];
  }

  /** @private @param {Element} item of which the beginning is out of sight: what of it is seen first */
  blockIn(item) {
    for (const block of item.querySelectorAll(BLOCKS)) {
      const place = this.placeOf(block);
      if (place.height > 0 && place.top + place.height > 0) return place;
    }
    return null;
  }

  /** @private @param {Element} element @returns {Anchor} */
  placeOf(element) {
    return { element, top: this.topOf(element), height: element.getBoundingClientRect().height };
  }
}
