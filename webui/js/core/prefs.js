/** What the browser keeps: choices, the unsent draft, messages that never got out. */

/** @param {() => Storage} place @param {string} key */
function read(place, key) {
  try {
    return place().getItem(`mimikit.${key}`);
  } catch {
    return null; // storage is closed to the page; everything works, nothing is kept
  }
}

/** @param {() => Storage} place @param {string} key @param {string} value empty removes it */
function write(place, key, value) {
  try {
    if (value) place().setItem(`mimikit.${key}`, value);
    else place().removeItem(`mimikit.${key}`);
    return true;
  } catch {
    return false; // closed or full: the same
  }
}

const local = () => localStorage;
const session = () => sessionStorage;

/** @param {string} key */
export const readPref = (key) => read(local, key);

/** @param {string} key @param {string} value @returns {boolean} whether it is kept */
export const writePref = (key, value) => write(local, key, value);

/** The unsent message of this tab: two tabs are two drafts. */
export const readDraft = () => read(session, "draft") ?? "";

/** @param {string} text */
export const writeDraft = (text) => write(session, "draft", text);

/**
 * Of this tab the files beside its draft, and messages that were not handed over before it was
 * reloaded: another tab must not offer to send them as well.
 *
 * @param {"files" | "outbox"} key @returns {any[]}
 */
export const readUnsent = (key) => JSON.parse(read(session, key) || "[]");

/** @param {"files" | "outbox"} key @param {object[]} items */
export const writeUnsent = (key, items) => write(session, key, JSON.stringify(items));

/** Under this name the storage has the session's key. */
export const SESSION_KEY = "mimikit.session";
let heldKey = "";

/**
 * The session's key. It is read each time, since another tab may have logged in.
 *
 * @type {KeyStore}
 */
export const sessionKey = {
  read: () => read(local, "session") ?? heldKey,
  keep: (key) => {
    heldKey = write(local, "session", key) ? "" : key;
  },
};

/** The random name of this tab: a new stream of it replaces its old one. */
export function tabId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {"system" | "light" | "dark"} theme */
export function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
