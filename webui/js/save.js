/** Hands a file to the browser. A link can not: the session's key goes with each request. */

const KEPT_MS = 60_000;

/** @param {Blob} file @param {string} name */
export function saveFile(file, name) {
  const link = document.createElement("a");
  // Whatever it is: it is saved, and opened by nobody.
  link.href = URL.createObjectURL(file.slice(0, file.size, "application/octet-stream"));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
