/** The field one writes in: as tall as its text, in sight above a keyboard, ready at the start. */

/** @typedef {import("./state-types.js").State} State */

const field = () => document.getElementById("composer");

/** The field is as tall as its text; browsers that can do this by style do it by style. */
export function growComposer() {
  if (CSS.supports("field-sizing", "content")) return;
  const place = field();
  if (!(place instanceof HTMLTextAreaElement)) return;
  place.style.height = "auto";
  place.style.height = `${place.scrollHeight}px`;
}

/**
 * Once the conversation is there one can write; but a finger's keyboard does not come up by itself,
 * and who came for something else, or is somewhere already, is left there.
 *
 * @param {State} state
 * @param {State} before
 */
export function focusAtStart(state, before) {
  const isThere = state.session === "in" && state.load === "ready";
  const wasThere = before.session === "in" && before.load === "ready";
  if (!isThere || wasThere || state.touch || state.route.view !== "chat") return;
  const { activeElement } = document;
  if (!activeElement || activeElement === document.body) field()?.focus({ preventScroll: true });
}

/**
 * Some browsers lay a keyboard over the page instead of making it smaller: the page then ends where
 * what is seen of it ends. Zoomed in, the whole page stays as it is.
 */
export function keepAboveKeyboard() {
  const seen = window.visualViewport;
  if (!seen) return;
  const fit = () => {
    const covered = seen.scale === 1 && innerHeight - seen.height > 1;
    document.documentElement.style.setProperty("--seen", covered ? `${seen.height}px` : "100dvh");
    if (covered && seen.offsetTop) scrollTo(0, 0);
  };
  seen.addEventListener("resize", fit);
  fit();
}
