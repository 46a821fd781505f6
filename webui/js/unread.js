/** What came since somebody looked: a number in the title and on the icon. Pure. */

/**
 * @typedef {import("./state-types.js").State} State
 *
 * @typedef {object} Seen how far all tabs of this browser have seen
 * @property {string} id of the last message
 * @property {string} at when that was said
 * @property {string} question the id of the one that was seen last
 */

/** @param {State} state  Whether what comes is seen by whoever looks at this page. */
export function isInSight({ session, load, wide, panelOpen, panelFull, route, following, after }) {
  const chat = wide ? !(panelOpen && panelFull) : route.view === "chat";
  return session === "in" && load === "ready" && chat && following && after === null;
}

/** @param {State} state @returns {Seen} */
export function seenBy({ messages, question }) {
  const last = messages.at(-1);
  return { id: last?.id ?? "", at: last?.createdAt ?? "", question: question?.questionId ?? "" };
}

/**
 * How far one has seen: a tab that is behind the others takes nothing back.
 *
 * @param {Seen | null} before
 * @param {State} state
 * @returns {Seen}
 */
export function furthest(before, state) {
  const now = seenBy(state);
  const behind = before && before.id && !state.messages.some((one) => one.id === before.id);
  return behind && now.at <= before.at ? { ...before, question: now.question || before.question } : now;
}

/**
 * @param {State} state
 * @param {Seen | null} seen null: nobody has ever looked
 * @returns {number} things that others said, a trigger's as one, and a question
 */
export function unread(state, seen) {
  if (state.session !== "in" || !seen) return 0;
  const asked = state.question && state.question.questionId !== seen.question ? 1 : 0;
  if (state.after !== null) return asked + state.unseen;
  const at = state.messages.findIndex((one) => one.id === seen.id);
  const fresh = at >= 0 ? state.messages.slice(at + 1) : state.messages.filter((one) => one.createdAt > seen.at);
  const said = fresh.filter((one) => one.role !== "user");
  return asked + new Set(said.map((one) => one.triggerId ?? one.id)).size;
}

/** @param {number} count @returns {string} as it is shown; empty: not at all */
export function badgeOf(count) {
  return count > 9 ? "9+" : count > 0 ? String(count) : "";
}

/** @param {string} badge @returns {string} the icon with it, as an address that holds the picture */
export function iconWith(badge) {
  const mark =
    `<g transform="scale(1.333)"><circle cx="8.2" cy="12" r="5.4" fill="#1687a5"/>` +
    `<g fill="none" stroke="#1687a5" stroke-width="2" stroke-linecap="round">` +
    `<path d="M14.6 6.9a7.2 7.2 0 0 1 0 10.2"/></g></g>`;
  const disc =
    `<rect x="${badge.length > 1 ? 9 : 13}" y="13" width="${badge.length > 1 ? 23 : 19}" height="19" rx="9.5" fill="#c62f25"/>` +
    `<text x="${badge.length > 1 ? 20.5 : 22.5}" y="28" text-anchor="middle" font-family="sans-serif" font-size="15" font-weight="700" fill="#fff">${badge}</text>`;
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${mark}${disc}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(picture)}`;
}
