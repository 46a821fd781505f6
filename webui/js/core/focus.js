/** Going to what may not be drawn yet. */

const LOOK_MS = 50;
/** Give up waiting for an element after this many ms. */
const TIMEOUT_MS = 5000;

/** Counts the waits: a new one takes the place of the last. */
let waits = 0;

/** @param {string} selector @param {(element: HTMLElement) => void} act  Called once it is there. */
export function onceDrawn(selector, act) {
  const own = ++waits;
  const until = performance.now() + TIMEOUT_MS;
  const look = () => {
    if (own !== waits) return;
    const element = /** @type {HTMLElement | null} */ (document.querySelector(selector));
    if (element) act(element);
    else if (performance.now() < until) setTimeout(look, LOOK_MS);
  };
  setTimeout(look, LOOK_MS);
}

/** @param {string} selector */
export function focusSoon(selector) {
  onceDrawn(selector, (element) => element.focus());
}

/** @param {Element} element @param {string} name @param {number} ms  It has the class for so long. */
export function flash(element, name, ms) {
  element.classList.add(name);
  setTimeout(() => element.classList.remove(name), ms);
}
