/**
 * Keeps the reader's place in a scrolling list.
 *
 * At the bottom it follows what comes. Further up, whatever is put in above or below, what is being
 * read stays where it is. It moves the container itself and nothing else.
 */

const NEAR_BOTTOM = 32;
const NEAR_TOP = 500;

export class ScrollKeeper {
  /**
   * @param {HTMLElement} scroller
   * @param {() => HTMLElement | null} list whose children are the things read
   * @param {{following: (yes: boolean) => void, nearTop: () => void}} hearers
   */
  constructor(scroller, list, hearers) {
    this.scroller = scroller;
    this.list = list;
    this.hearers = hearers;
    this.following = true;
    this.lastTop = 0;
    /** @type {{element: Element, top: number} | null} */
    this.anchor = null;
    scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.sizes = new ResizeObserver(() => this.after());
    this.sizes.observe(scroller);
    const items = list();
    if (items) this.sizes.observe(items);
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
    if (this.scroller.scrollTop < NEAR_TOP) this.hearers.nearTop();
  }

  toBottom(smooth = false) {
    const away = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
    const near = away < 2 * this.scroller.clientHeight;
    this.setFollowing(true);
    const top = this.scroller.scrollHeight;
    if (smooth && near) this.scroller.scrollTo({ top, behavior: "smooth" });
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
    if (scrollTop < NEAR_TOP) this.hearers.nearTop();
  }

  /** @private @param {boolean} yes */
  setFollowing(yes) {
    if (yes === this.following) return;
    this.following = yes;
    this.hearers.following(yes);
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
    const items = this.list()?.children ?? [];
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
