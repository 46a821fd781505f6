/** Files that are dropped anywhere on the page, or pasted. */

/**
 * @typedef {object} Taker
 * @property {(files: File[]) => void} add
 * @property {(dropping: boolean) => void} drop
 */

/** @param {DataTransfer | null} given */
const holdsFiles = (given) => Boolean(given && [...given.types].includes("Files"));

/** @param {DataTransfer} given  Folders are none. */
function filesOf(given) {
  const items = [...given.items].filter((item) => item.kind === "file");
  const plain = items.filter((item) => item.webkitGetAsEntry?.()?.isDirectory !== true);
  return plain.flatMap((item) => item.getAsFile() ?? []);
}

/**
 * Files alone: text that was copied from a document brings a picture of itself, and is text.
 *
 * @param {DataTransfer} given
 * @returns {File[]}
 */
export function pasted(given) {
  const files = filesOf(given);
  const text = given.getData("text/plain").trim();
  return !text || files.some((file) => file.name === text) ? files : [];
}

/** @param {Taker} taker @param {() => boolean} isOpen whether there is a conversation */
export function takeDrops(taker, isOpen) {
  const over = (/** @type {DragEvent} */ event) => {
    if (!holdsFiles(event.dataTransfer)) return;
    event.preventDefault(); // else the browser would leave the page for the file
    if (event.dataTransfer) event.dataTransfer.dropEffect = isOpen() ? "copy" : "none";
    taker.drop(isOpen());
  };
  addEventListener("dragenter", over);
  addEventListener("dragover", over);
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) taker.drop(false);
  });
  addEventListener("drop", (event) => {
    if (!holdsFiles(event.dataTransfer)) return;
    event.preventDefault();
    taker.drop(false);
    if (isOpen() && event.dataTransfer) taker.add(filesOf(event.dataTransfer));
  });
  addEventListener("paste", (event) => {
    const inField = event.target instanceof Element && event.target.closest("input, textarea:not(#composer)");
    if (inField || !isOpen() || !event.clipboardData) return;
    const files = pasted(event.clipboardData);
    if (!files.length) return;
    event.preventDefault();
    taker.add(files);
  });
}
