/** What keys and palette do on the page itself, by the name of it. */

const ITEMS = "#timeline > li:not(.day)";
/** What stands for the rows that are not drawn. */
const ROOM = ".room";
/** So long it is waited for a row that the last step brought near, and that is not drawn yet. */
const FRAMES = 60;

/**
 * @param {import("./store.js").Store} store
 * @param {import("./actions.js").Actions} act
 * @returns {Record<string, () => void>}
 */
export function deedsOf(store, act) {
  /** @param {() => void} then  The chat is in sight. */
  const inChat = (then) => {
    act.setFull(false);
    if (!store.state.wide) act.go({ view: "chat" });
    then();
  };
  /** @param {1 | -1} step @param {number} [frames] */
  const read = (step, frames = FRAMES) =>
    inChat(() => {
      const item = neighbour([...document.querySelectorAll(ITEMS)], step);
      if (!item) return;
      if (item.matches(ROOM)) {
        if (!frames || !item.offsetHeight) return;
        requestAnimationFrame(() => read(step, frames - 1));
        return;
      }
      if (!item.hasAttribute("tabindex")) item.tabIndex = -1;
      item.focus({ preventScroll: true });
      act.hands.bring(item);
    });
  return {
    compose: () => inChat(() => act.hands.focusComposer()),
    answer: () => inChat(() => act.hands.focus("#question :is(button, input), #composer")),
    latest: () => inChat(() => act.hands.toBottom()),
    next: () => read(1),
    previous: () => read(-1),
    search: () => act.goSearch(),
    panel: () => {
      if (store.state.wide) act.togglePanel();
    },
    full: () => act.setFull(!store.state.panelFull),
  };
}

/**
 * The message after, or before, the one that is read.
 *
 * @param {Element[]} items
 * @param {1 | -1} step
 * @returns {HTMLElement | null}
 */
function neighbour(items, step) {
  const own = document.activeElement?.closest(ITEMS);
  const at = own ? items.indexOf(own) : -1;
  const next = at >= 0 ? items[at + step] : nearest(items, step);
  return next instanceof HTMLElement ? next : null;
}

/** @param {Element[]} items @param {1 | -1} step  Of those in sight the first, or the last. */
function nearest(items, step) {
  const box = document.getElementById("scroll")?.getBoundingClientRect();
  if (!box) return null;
  const seen = items.filter((item) => {
    if (item.matches(ROOM)) return false;
    const { top, bottom } = item.getBoundingClientRect();
    return bottom > box.top + 8 && top < box.bottom - 8;
  });
  return (step > 0 ? seen[0] : seen.at(-1)) ?? null;
}
