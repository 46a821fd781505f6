/**
 * The files that are to go with what is being written: how they change. Pure; a part of `state.js`.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Attachment} Attachment
 * @typedef {import("./types.js").SentFile} SentFile
 */

/** So many go with one message; the server says so, too. */
export const MOST_FILES = 10;
/** Megabytes that the server takes at most, whatever it is set to. */
export const MOST_MB = 10;
/** What is shown as a picture. Nothing else is: no SVG, no page. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** @returns {Pick<State, "files" | "dropping">} */
export function noFiles() {
  return { files: [], dropping: false };
}

/** @type {Record<string, (state: State, action: any) => State>} */
export const FILE_ACTIONS = {
  filesAdded: (state, { files }) => ({ ...state, files: [...state.files, ...files] }),
  fileTold: (state, { key, values }) => {
    const told = (/** @type {Attachment[]} */ files) =>
      alone(files.map((file) => (file.key === key ? { ...file, ...values } : file)), key);
    const { about } = state.composing;
    // Those that were put aside while a message is said anew go on their way, too.
    const composing = about?.files.length
      ? { ...state.composing, about: { ...about, files: told(about.files) } }
      : state.composing;
    return { ...state, files: told(state.files), composing };
  },
  fileGone: (state, { key }) => ({ ...state, files: state.files.filter((one) => one.key !== key) }),
};

/**
 * The same file twice is one.
 *
 * @param {Attachment[]} files
 * @param {string} key what was just told of
 */
function alone(files, key) {
  const told = files.find((file) => file.key === key)?.sent;
  if (!told) return files;
  const twins = files.filter((file) => file.sent?.id === told.id);
  return files.filter((file) => file === twins[0] || !twins.includes(file));
}

/** @param {{mediaType: string}} file */
export const isPicture = ({ mediaType }) => PICTURES.has(mediaType);

/**
 * One that was sent before, as a part of what is being written.
 *
 * @param {SentFile} sent
 * @returns {Attachment}
 */
export function attached(sent) {
  const { id, name, size, mediaType } = sent;
  return { key: id, name, size, mediaType, state: "ready", part: 1, sent, error: "", preview: "" };
}

/** @param {State} state  Whether something keeps the message from going out. */
export function filesWait({ files }) {
  return files.some((file) => file.state !== "ready");
}

/** @param {State} state @returns {boolean} whether there is something to send */
export function canSend(state) {
  return !filesWait(state) && Boolean(state.draft.trim() || state.files.length);
}

/**
 * What the browser keeps of them: those that are on the server, and names of the others, which have
 * to be chosen again.
 *
 * @param {Attachment[]} files
 */
export function keptFiles(files) {
  const kept = files.map(({ name, size, mediaType, sent }) => sent ?? { name, size, mediaType });
  return kept.length ? JSON.stringify(kept) : "";
}

/**
 * @param {string | null} kept
 * @returns {Attachment[]}
 */
export function filesFrom(kept) {
  try {
    const found = JSON.parse(kept ?? "[]");
    if (!Array.isArray(found)) return [];
    return found.flatMap((one, number) => {
      if (typeof one?.name !== "string" || typeof one.size !== "number") return [];
      const file = attached({ width: null, height: null, mediaType: "", ...one });
      return one.id ? [file] : [{ ...file, key: `lost-${number}`, state: "lost", sent: null }];
    });
  } catch {
    return [];
  }
}
