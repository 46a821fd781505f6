/** Copying text, also where the page has no secure context and so no clipboard. */

/** @param {string} text @returns {Promise<boolean>} whether it was copied */
export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // refused by the browser: the old way may still be allowed
    }
  }
  return copyBySelection(text);
}

/** @param {string} text */
function copyBySelection(text) {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "sr-only";
  field.value = text;
  document.body.append(field);
  field.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return done;
}
