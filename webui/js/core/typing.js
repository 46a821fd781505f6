/** What a key means, and what is dropped or pasted. Pure. */

/**
 * Whether Enter sends. Not with Shift, not on a touch keyboard, which has no Shift+Enter, and not
 * where it picks an input method's candidate: browsers tell that by either of two signs.
 *
 * @param {{key: string, shiftKey: boolean, isComposing: boolean, keyCode: number}} event
 * @param {boolean} touch
 */
export function sends(event, touch) {
  const picks = event.isComposing || event.keyCode === 229;
  return event.key === "Enter" && !touch && !event.shiftKey && !picks;
}

/**
 * What to do instead of the browser: it would leave the page for a file or a link dropped on it.
 *
 * @param {string} kind of event: dragover, drop, paste
 * @param {readonly string[]} types of what is dropped or pasted
 * @param {boolean} field whether it goes into a field, which takes text
 * @returns {"" | "hold" | "take"} hold: nothing; take: attach the files
 */
export function insteadOfBrowser(kind, types, field) {
  const files = types.includes("Files");
  if (kind === "paste") return files && !types.includes("text/plain") ? "take" : "";
  if (files) return kind === "drop" ? "take" : "hold";
  return field ? "" : "hold";
}
