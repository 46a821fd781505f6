/**
 * What is being written, of which message the actions are shown, and why a reply says what it says:
 * how these change. Pure; a part of `state.js`.
 *
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").Composing} Composing
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./types.js").Question} Question
 */

/** So much of a message is quoted. */
export const MOST_QUOTED = 2000;

/** @returns {Pick<State, "composing" | "tools" | "reason" | "touch">} */
export function noMessages() {
  return {
    composing: { about: null, answers: "" },
    tools: { hover: "", focus: "", sheet: "", copied: "" },
    reason: null,
    touch: false,
  };
}

/** @type {Record<string, (state: State, action: any) => State>} */
export const MESSAGE_ACTIONS = {
  composing: (state, { values }) => ({ ...state, composing: { ...state.composing, ...values } }),
  tools,
  reasonTold: (state, { reason }) => ({ ...state, reason }),
};

/** @param {State} state @param {{values: Partial<State["tools"]>}} action @returns {State} */
function tools(state, { values }) {
  const next = { ...state.tools, ...values };
  const same = Object.keys(values).every((key) => /** @type {any} */ (state.tools)[key] === /** @type {any} */ (next)[key]);
  return same ? state : { ...state, tools: next };
}

/**
 * A question that comes is answered in the field, unless something else is being written there:
 * what was meant for someone else must not go out as the answer.
 *
 * @param {State} state as it was before the question came
 * @param {Question | null} question
 * @returns {Composing}
 */
export function composingWith(state, question) {
  const { composing, draft } = state;
  if (!question) return composing.answers ? { ...composing, answers: "" } : composing;
  const isNew = question.questionId !== state.question?.questionId;
  const known = composing.answers === question.questionId;
  if (!isNew || known) return composing;
  const busy = Boolean(draft.trim() || composing.about);
  return { ...composing, answers: busy ? "" : question.questionId };
}

/** @param {State} state  Whether the open question has its answer already, on its way or being read. */
export function isAnswerSent({ question, answering, outbox, inbox }) {
  if (!question) return false;
  const { questionId, createdAt } = question;
  return (
    answering.busy ||
    outbox.some((item) => item.questionId === questionId && item.state !== "failed") ||
    inbox.some((item) => item.kind === "answer" && item.createdAt >= createdAt)
  );
}

/** @param {State} state @returns {boolean} whether what is written answers the open question */
export function answersNow(state) {
  const { question, composing } = state;
  return Boolean(question) && composing.answers === question?.questionId && !isAnswerSent(state);
}

/**
 * A message of the conversation, or one of the user's that still waits.
 *
 * @param {State} state
 * @param {string} id
 * @returns {Message | undefined}
 */
export function messageOf({ messages, inbox, outbox }, id) {
  const found = id ? messages.find((one) => one.id === id) : undefined;
  const waits = found || !id ? undefined : [...inbox, ...outbox].find((one) => one.id === id);
  return found ?? (waits && /** @type {any} */ ({ ...waits, role: "user" }));
}

/**
 * Where the work stands that a message speaks of; of what the user said, what its reply began.
 *
 * @param {State} state
 * @param {Message} message
 * @returns {import("./state-types.js").Route | null}
 */
export function workOf(state, message) {
  const job = state.jobs[message.jobId ?? ""];
  if (job?.kind === "trigger") return { view: "trigger", id: job.id };
  const id = job?.taskId ?? message.taskIds?.at(-1);
  if (id) return { view: "task", id };
  if (message.role !== "user") return null;
  const told = (/** @type {Message} */ one) => one.jobId || one.taskIds?.length;
  const reply = state.messages.find((one) => one.inReplyTo?.includes(message.id) && told(one));
  return reply && reply.role !== "user" ? workOf(state, reply) : null;
}
