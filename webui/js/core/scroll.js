/**
 * Keeps the reader's place in the conversation.
 *
 * At the bottom it follows what comes. Further up, whatever is put in above or below, what is being
 * read stays where it is. It moves the container itself and nothing else.
 */

const NEAR_BOTTOM = 32;
const NEAR_TOP = 500;

const list = () => document.getElementById("timeline");

export class ScrollKeeper {
  /** @param {HTMLElement} scroller @param {Store} store @param {() => void} onNearTop */
  constructor(scroller, store, onNearTop) {
    this.scroller = scroller;
    this.store = store;
    this.onNearTop = onNearTop;
    this.lastTop = 0;
    /** @type {{element: Element, top: number} | null} */
    this.anchor = null;
    this.setFollowing(true);
    scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.sizes = new ResizeObserver(() => this.after());
    for (const element of [scroller, list()]) if (element) this.sizes.observe(element);
  }

  /** @private */
  get following() {
    return this.store.state.following;
  }

  /** Call before the list changes. */
  before() {
    this.anchor = this.following ? null : this.firstVisible();
  }

  /** Call when it has changed. */
  after() {
    if (this.following) {
      this.move(this.scroller.scrollHeight);
    } else if (this.anchor?.element.isConnected) {
      const moved = this.topOf(this.anchor.element) - this.anchor.top;
      if (Math.abs(moved) >= 1) this.move(this.scroller.scrollTop + moved);
    }
    if (this.scroller.scrollTop < NEAR_TOP) this.onNearTop();
  }

  toBottom() {
    const { scrollHeight: top, scrollTop, clientHeight } = this.scroller;
    const isNear = top - scrollTop - clientHeight < 2 * clientHeight;
    const isSmooth = isNear && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.setFollowing(true);
    if (isSmooth) this.scroller.scrollTo({ top, behavior: "smooth" });
    else this.move(top);
  }

  /** @param {Element} element brought to the upper third */
  show(element) {
    this.setFollowing(false);
    const wanted = this.topOf(element) - this.scroller.clientHeight / 3;
    this.move(this.scroller.scrollTop + wanted);
    this.anchor = { element, top: this.topOf(element) };
  }

  /** @private */
  onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const up = scrollTop < this.lastTop - 1;
    this.lastTop = scrollTop;
    if (scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM) this.setFollowing(true);
    else if (up) this.setFollowing(false);
    if (!this.following) this.anchor = this.firstVisible();
    if (scrollTop < NEAR_TOP) this.onNearTop();
  }

  /** @private @param {boolean} yes */
  setFollowing(yes) {
    if (yes !== this.following) this.store.set({ following: yes, unseen: 0 });
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

  /** @private The first thing read that is in sight: by halving, for lists may be long. */
  firstVisible() {
    const items = list()?.children ?? [];
    let low = 0;
    let high = items.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      const bottom = this.topOf(items[middle]) + items[middle].getBoundingClientRect().height;
      if (bottom > 0) high = middle;
      else low = middle + 1;
    }
    const element = items[low];
    return element ? { element, top: this.topOf(element) } : null;
  }
}
