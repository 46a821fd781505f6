/**
 * How the state of an opened trigger and of the forms changes. Pure; a part of `state.js`.
 *
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").TriggerForm} TriggerForm
 * @typedef {import("../core/state-types.js").ConditionRow} ConditionRow
 * @typedef {import("../core/state-types.js").Preview} Preview
 */

import { newRow } from "./trigger-form.js";

/** @type {Record<string, (state: State, action: any) => State>} */
export const TRIGGER_ACTIONS = {
  triggerOpened,
  triggerLoaded,
  triggerFailed,
  formOpened: (state, { form }) => withForm(state, form.key, () => form),
  formClosed: (state, { key }) => {
    const { [key]: _, ...forms } = state.forms;
    return { ...state, forms };
  },
  formEdited,
  rowEdited,
  rowAdded,
  rowRemoved,
  formTold: (state, { key, ...values }) =>
    withForm(state, key, (form) => form && { ...form, ...values }),
  formPreviewed,
};

/** @param {State} state @param {{id: string | null}} action */
function triggerOpened(state, { id }) {
  if (id === null) return { ...state, triggerDetail: null };
  if (state.triggerDetail?.id === id) return state;
  const load = /** @type {const} */ ("loading");
  const trigger = state.triggers[id] ?? null;
  return { ...state, triggerDetail: { id, load, trigger, explanation: null, chain: [], usage: null } };
}

/** @param {State} state @param {{id: string, answer: any}} action @returns {State} */
function triggerLoaded(state, { id, answer }) {
  if (state.triggerDetail?.id !== id) return state;
  const { trigger = null, explanation = null, chain = [], usage = null } = answer;
  return {
    ...state,
    triggerDetail: {
      id,
      load: "ready",
      trigger,
      explanation,
      usage,
      chain,
    },
  };
}

/** @param {State} state @param {{id: string, load: "missing" | "failed"}} action @returns {State} */
function triggerFailed(state, { id, load }) {
  const { triggerDetail: detail } = state;
  return detail?.id === id ? { ...state, triggerDetail: { ...detail, load } } : state;
}

/**
 * @param {State} state
 * @param {string} key
 * @param {(form: TriggerForm | undefined) => TriggerForm | undefined} change
 */
function withForm(state, key, change) {
  const form = change(state.forms[key]);
  if (!form || form === state.forms[key]) return state;
  return { ...state, forms: { ...state.forms, [key]: form } };
}

/** Fields whose errors an edit of anything makes doubtful. */
const WHOLE = ["form", "when"];

/** @param {TriggerForm} form @param {string[]} names  What was said of fields that are typed anew. */
function withoutErrors(form, names) {
  const gone = new Set([...WHOLE, ...names.map((name) => name.replace(/Unit$/, ""))]);
  const kept = Object.entries(form.errors).filter(([name]) => !gone.has(name));
  return Object.fromEntries(kept);
}

/** @param {State} state @param {{key: string, values: Partial<TriggerForm>}} action */
function formEdited(state, { key, values }) {
  return withForm(state, key, (form) => {
    if (!form) return form;
    const next = { ...form, ...values, errors: withoutErrors(form, Object.keys(values)) };
    return values.when ? kindChosen(next) : next;
  });
}

/** @param {TriggerForm} form  Another kind of time or condition; what was typed for others stays. */
function kindChosen(form) {
  const { when } = form;
  if (when === "several") {
    const rows = form.rows.length
      ? form.rows
      : [{ ...form.single, key: "row-0" }, newRow("row-1", { type: "file_exists" })];
    return { ...form, rows };
  }
  const conditions = ["file_changed", "file_exists", "task", "llm_eval", "kept"];
  if (!conditions.includes(when)) return form;
  return { ...form, single: { ...form.single, type: /** @type {any} */ (when) } };
}

/** @param {State} state @param {{key: string, row: string, values: Partial<ConditionRow>}} action */
function rowEdited(state, { key, row, values }) {
  return withForm(state, key, (form) => {
    if (!form) return form;
    const names = Object.keys(values).map((name) => `${row}.${name}`);
    const edit = (/** @type {ConditionRow} */ one) =>
      one.key === row ? { ...one, ...values } : one;
    return {
      ...form,
      single: edit(form.single),
      rows: form.rows.map(edit),
      errors: withoutErrors(form, names),
    };
  });
}

/** @param {State} state @param {{key: string}} action */
function rowAdded(state, { key }) {
  return withForm(state, key, (form) => {
    if (!form) return form;
    const numbers = form.rows.map((row) => Number(row.key.slice("row-".length)));
    const row = newRow(`row-${Math.max(-1, ...numbers) + 1}`, { type: "file_exists" });
    return { ...form, rows: [...form.rows, row], errors: withoutErrors(form, []) };
  });
}

/** @param {State} state @param {{key: string, row: string}} action */
function rowRemoved(state, { key, row }) {
  return withForm(state, key, (form) => {
    if (!form) return form;
    const rows = form.rows.filter((one) => one.key !== row);
    return { ...form, rows, errors: withoutErrors(form, []) };
  });
}

/**
 * The server's word on times and conditions; one that was asked for something else is not heard.
 *
 * @param {State} state
 * @param {{key: string, asked: string} & Partial<Preview>} action
 */
function formPreviewed(state, { key, asked, ...values }) {
  return withForm(state, key, (form) => {
    if (!form) return form;
    const opens = values.state === "asking" || values.state === "idle";
    if (!opens && form.preview.asked !== asked) return form;
    const { state: now = "idle", answer = form.preview.answer, error = null } = values;
    return { ...form, preview: { asked, state: now, answer, error } };
  });
}
