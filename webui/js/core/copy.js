/** Copying text, also where the page has no secure context and so no clipboard. */

/** @param {string} text @returns {Promise<boolean>} whether it was copied */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // no clipboard, or refused: the old way may still be allowed
  }
}

/** @param {string} text */
function copyBySelection(text) {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "sr-only";
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return done;
}
