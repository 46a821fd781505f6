/**
 * How the reply that is being written changes. Pure; a part of `state.js`.
 *
 * The server says of each piece which text of the turn it belongs to (`part`) and where in that it
 * stands (`at`). So a piece that is heard twice changes nothing, and one that is missing is missed
 * (`gap`): then the whole picture is loaded anew. Places are counted as JavaScript counts.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Turn} Turn
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./types.js").DraftBlock} DraftBlock
 */

/** How long the draft of a turn that is over waits for its message. */
export const DRAFT_GRACE_MS = 4000;
/** A status may be so old: it does not know of a turn that has just begun. */
const HEARTBEAT_MS = 6000;

/** @type {Pick<Turn, "part" | "blocks" | "at" | "text">} */
const NOTHING_SAID = { part: 0, blocks: [], at: 0, text: "" };

/**
 * @param {string} turnId
 * @param {number} since
 * @param {string} [headline]
 * @param {string[]} [inputs]
 * @returns {Turn}
 */
function newTurn(turnId, since, headline = "", inputs = []) {
  const over = { endedAt: null, committed: false, gap: false };
  return { turnId, since, headline, inputs, ...NOTHING_SAID, ...over };
}

/** @param {Turn | null} turn whether something is said that no message has yet */
export const isDrafting = (turn) =>
  turn !== null && !turn.committed && (turn.blocks.length > 0 || turn.text !== "");

/**
 * The turn as a snapshot has it.
 *
 * @param {import("./types.js").Snapshot} given
 * @returns {Turn | null}
 */
export function turnOf({ draft, messages }) {
  if (!draft) return null;
  const { turnId, since, inputs, part, at, text, blocks } = draft;
  if (isTold(messages, turnId)) return null; // it was committed while the snapshot was made
  return { ...newTurn(turnId, Date.parse(since), "", inputs), part, at, text, blocks };
}

/** @param {import("./types.js").Message[]} messages @param {string} turnId  Its reply is there. */
const isTold = (messages, turnId) =>
  messages.some((one) => one.role !== "user" && one.turnId === turnId);

/** @param {Turn | null} turn @param {number} now */
export function turnAt(turn, now) {
  return turn?.endedAt != null && now - turn.endedAt > DRAFT_GRACE_MS ? null : turn;
}

/** @param {State} state @param {import("./types.js").Status} status */
export function turnByStatus({ turn, now, messages }, status) {
  const { state, turnId, since, headline } = status.teller;
  if (state === "idle" && status.consumer === "ok") {
    const isOver = turn?.endedAt === null && now - turn.since > HEARTBEAT_MS;
    return isOver ? { ...turn, endedAt: now } : turn;
  }
  if (state !== "replying" || !turnId || turnId === turn?.turnId) return turn;
  if (isTold(messages, turnId)) return turn;
  return newTurn(turnId, since ? Date.parse(since) : now, headline);
}

/** @param {Turn | null} turn @param {import("./types.js").Message} message */
export function turnTold(turn, message) {
  if (message.role === "user" || !turn || turn.turnId !== message.turnId) return turn;
  return { ...turn, ...NOTHING_SAID, part: turn.part, committed: true };
}

/** @param {State} state @param {Extract<Change, {kind: "turn"}>} change @returns {State} */
export function withTurn(state, change) {
  const mine = state.turn?.turnId === change.turnId ? state.turn : null;
  if (change.state === "ended") {
    return mine ? { ...state, turn: { ...mine, endedAt: mine.endedAt ?? state.now } } : state;
  }
  const { turnId, headline, inputs } = change;
  const turn = mine
    ? { ...mine, headline: headline ?? mine.headline, inputs: inputs ?? mine.inputs, endedAt: null }
    : newTurn(turnId, state.now, headline, inputs);
  const inbox = state.inbox.map((item) =>
    turn.inputs.includes(item.id) && item.state !== "answering"
      ? { ...item, state: /** @type {const} */ ("answering") }
      : item,
  );
  return { ...state, turn, inbox };
}

/** @param {State} state @param {Extract<Change, {kind: "delta"}>} delta @returns {State} */
export function withDelta(state, delta) {
  const known = state.turn?.turnId === delta.turnId ? state.turn : null;
  if (!known && isTold(state.messages, delta.turnId)) return state;
  const before = known ?? newTurn(delta.turnId, state.now);
  const turn = before.committed ? before : heard(before, delta);
  return turn === state.turn ? state : { ...state, turn };
}

/** @param {Turn} before @param {Extract<Change, {kind: "delta"}>} delta @returns {Turn} */
function heard(before, { part, at, text, blocks }) {
  if (part < before.part) return before;
  const turn = part > before.part ? { ...before, ...NOTHING_SAID, part } : before;
  const end = turn.at + turn.text.length;
  if (at > end) return { ...turn, gap: true };
  if (at + text.length <= end) return turn;
  return withBlocks({ ...turn, text: turn.text + text.slice(end - at) }, blocks);
}

/** @param {Turn} turn @param {DraftBlock[]} blocks what is whole by now, in order @returns {Turn} */
function withBlocks(turn, blocks) {
  let { at, text } = turn;
  const whole = [];
  for (const block of blocks) {
    if (block.start !== at) continue;
    text = text.slice(block.end - at);
    at = block.end;
    whole.push(block);
  }
  return whole.length ? { ...turn, at, text, blocks: [...turn.blocks, ...whole] } : turn;
}
