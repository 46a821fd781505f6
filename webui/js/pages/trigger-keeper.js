/** The opened trigger and the forms: how their state changes, when each is loaded, what is sent. */

import { words } from "../core/api.js";
import { t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { Resource } from "../core/resource.js";
import * as fields from "./trigger-form.js";
import { newRow } from "./trigger-form.js";

/** What changed is asked for at most so often. */
export const REFRESH_MS = 400;
/** A condition may move without its trigger: it is looked at anew this often. */
export const STALE_MS = 30_000;
/** The server is asked about what is typed once the typing rests. */
export const REST_MS = 400;

/** Answers that say what is wrong with what was asked, not that it could not be looked at. */
const REFUSALS = new Set([400, 409, 422]);

// --- how the state changes

/** @type {Reducers} */
export const TRIGGER_ACTIONS = {
  triggerOpened,
  triggerTold,
  formOpened: (state, { form }) => ({ ...state, forms: { ...state.forms, [form.key]: form } }),
  formClosed: (state, { key }) => {
    const { [key]: _, ...forms } = state.forms;
    return { ...state, forms };
  },
  formEdited: (state, { key, values }) =>
    withForm(state, key, (form) => {
      const next = { ...form, ...values, errors: withoutErrors(form, Object.keys(values)) };
      return values.when ? kindChosen(next) : next;
    }),
  rowEdited,
  rowAdded: (state, { key }) =>
    withForm(state, key, (form) => {
      const numbers = form.rows.map((row) => Number(row.key.slice("row-".length)));
      const row = newRow(`row-${Math.max(-1, ...numbers) + 1}`, { type: "file_exists" });
      return { ...form, rows: [...form.rows, row], errors: withoutErrors(form, []) };
    }),
  rowRemoved: (state, { key, row }) =>
    withForm(state, key, (form) => {
      const rows = form.rows.filter((one) => one.key !== row);
      return { ...form, rows, errors: withoutErrors(form, []) };
    }),
  formTold: (state, { key, ...values }) => withForm(state, key, (form) => ({ ...form, ...values })),
  formPreviewed,
};

/** @param {State} state @param {{id: string | null}} action @returns {State} */
function triggerOpened(state, { id }) {
  if (id === null) return { ...state, triggerDetail: null };
  if (state.triggerDetail?.id === id) return state;
  const trigger = state.triggers[id] ?? null;
  const nothing = { explanation: null, chain: [], usage: null };
  return { ...state, triggerDetail: { id, load: "loading", trigger, ...nothing } };
}

/**
 * @param {State} state
 * @param {{id: string, load: TriggerPage["load"], data?: any}} action
 * @returns {State}
 */
function triggerTold(state, { id, load, data }) {
  const { triggerDetail: known } = state;
  if (known?.id !== id || load === "loading") return state;
  if (load !== "ready") return { ...state, triggerDetail: { ...known, load } };
  const { trigger = null, explanation = null, chain = [], usage = null } = data;
  return { ...state, triggerDetail: { id, load, trigger, explanation, chain, usage } };
}

/** @param {State} state @param {string} key @param {(form: TriggerForm) => TriggerForm} change */
function withForm(state, key, change) {
  const form = state.forms[key];
  return form ? { ...state, forms: { ...state.forms, [key]: change(form) } } : state;
}

/** Fields whose errors an edit of anything makes doubtful. */
const WHOLE = ["form", "when"];

/** @param {TriggerForm} form @param {string[]} names  What was said of fields that are typed anew. */
function withoutErrors(form, names) {
  const gone = new Set([...WHOLE, ...names.map((name) => name.replace(/Unit$/, ""))]);
  const kept = Object.entries(form.errors).filter(([name]) => !gone.has(name));
  return Object.fromEntries(kept);
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
    const names = Object.keys(values).map((name) => `${row}.${name}`);
    const edit = (/** @type {ConditionRow} */ one) =>
      one.key === row ? { ...one, ...values } : one;
    const [single, rows] = [edit(form.single), form.rows.map(edit)];
    return { ...form, single, rows, errors: withoutErrors(form, names) };
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
    const opens = values.state === "asking" || values.state === "idle";
    if (!opens && form.preview.asked !== asked) return form;
    const { state: now = "idle", answer = form.preview.answer, error = null } = values;
    return { ...form, preview: { asked, state: now, answer, error } };
  });
}

// --- when each is loaded

export class TriggerKeeper {
  /** @param {Store} store @param {Api} api @param {{zone: () => string}} ports */
  constructor(store, api, ports) {
    this.store = store;
    this.zone = ports.zone;
    this.loadedAt = 0;
    this.opened = new Resource(
      (id) => api.triggerDetail(id, ports.zone()),
      (told, id) => this.hear(told, id),
    );
    this.preview = new Resource(
      ({ body }) => api.previewTrigger(body),
      (told, { key, asked }) => this.hearPreview(told, key, asked),
    );
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    this.keepDetail(state, before);
    this.keepForm(state);
  }

  /** @private @param {State} state @param {State} before */
  keepDetail(state, before) {
    const { route } = state;
    const open = route.view === "trigger" || route.view === "triggerEdit";
    const id = state.session === "in" && open ? route.id : null;
    if (id !== (state.triggerDetail?.id ?? null)) {
      this.store.dispatch({ type: "triggerOpened", id });
      if (id) void this.load(id);
      return;
    }
    if (id && this.isOutdated(id, state, before)) this.refresh(id);
  }

  /** @private @param {string} id @param {State} state @param {State} before */
  isOutdated(id, state, before) {
    if (state.triggers[id] !== before.triggers[id]) return true;
    if (state.connection === "online" && before.connection !== "online") return true;
    if (state.tasks !== before.tasks && this.concerns(id, state, before)) return true;
    return this.loadedAt > 0 && state.now - this.loadedAt > STALE_MS;
  }

  /** @private @param {string} id @param {State} state @param {State} before  A run of it, or a step of its chain. */
  concerns(id, state, before) {
    const steps = new Set(state.triggerDetail?.chain.map((step) => step.id));
    return Object.values(state.tasks).some(
      (task) =>
        (task.sourceTriggerId === id || steps.has(task.id)) &&
        task.state !== before.tasks[task.id]?.state,
    );
  }

  /** @private @param {string} id */
  refresh(id) {
    this.opened.soon(() => {
      if (this.store.state.triggerDetail?.id === id) void this.load(id);
    }, REFRESH_MS);
  }

  /** @param {string} id */
  load(id) {
    return this.opened.load(id);
  }

  /** @private @param {Loaded} told @param {string} id */
  hear({ load, data }, id) {
    this.loadedAt = load === "loading" ? 0 : this.store.state.now; // one at a time
    this.store.dispatch({ type: "triggerTold", id, load, data });
  }

  /** @private @param {State} state */
  keepForm(state) {
    const { route } = state;
    const edited = route.view === "triggerEdit" ? route.id : "";
    const key = route.view === "triggerNew" ? "new" : edited;
    this.closeOver(state, key);
    if (!key || state.session !== "in") return;
    const form = state.forms[key];
    if (form?.over) return;
    if (form) return this.keepPreview(form);
    const isNew = key === "new";
    const made = isNew ? fields.newForm(newId("trig"), this.zone(), state.status) : this.formOf(state, key);
    if (made) this.store.dispatch({ type: "formOpened", form: made });
  }

  /** @private @param {State} state @param {string} open  The form that is on the page. */
  closeOver(state, open) {
    for (const { key, over } of Object.values(state.forms)) {
      if (!over || key === open) continue;
      this.store.dispatch({ type: "formClosed", key });
      if (state.triggerDetail?.id === key) this.refresh(key);
    }
  }

  /** @private @param {State} state @param {string} id @returns {TriggerForm | null} */
  formOf({ triggerDetail: detail }, id) {
    if (detail?.id !== id || detail.load !== "ready" || !detail.trigger) return null;
    return fields.formOf(detail.trigger, detail.explanation?.nodes ?? [], this.zone());
  }

  /** @private @param {TriggerForm} form */
  keepPreview(form) {
    const { key } = form;
    const body = fields.previewRequest(form, this.zone());
    const asked = body ? JSON.stringify(body) : "";
    if (asked === form.preview.asked) return;
    this.preview.wake();
    const state = asked ? "asking" : "idle";
    const answer = asked ? form.preview.answer : null;
    this.store.dispatch({ type: "formPreviewed", key, asked, state, answer });
    if (body) this.preview.rested({ key, asked, body }, REST_MS);
  }

  /**
   * @private
   * @param {Loaded} told
   * @param {string} key
   * @param {string} asked
   */
  hearPreview({ load, data: answer = null, error }, key, asked) {
    if (load === "loading") return;
    const { status, message: text, field } = error ?? {};
    const told = error && REFUSALS.has(status) ? { field, text } : null;
    const state = load === "ready" ? load : "failed";
    this.store.dispatch({ type: "formPreviewed", key, asked, state, answer, error: told });
  }
}

// --- what the user can do in a form

export class FormActions {
  /** @param {Store} store @param {Api} api @param {Pick<Actions, "zone" | "go" | "notify" | "signOut" | "focus">} page */
  constructor(store, api, page) {
    this.store = store;
    this.api = api;
    this.page = page;
  }

  /** @param {string} key @param {Partial<TriggerForm>} values */
  edit(key, values) {
    this.store.dispatch({ type: "formEdited", key, values });
  }

  /** @param {string} key @param {string} row @param {Partial<ConditionRow>} values */
  editRow(key, row, values) {
    this.store.dispatch({ type: "rowEdited", key, row, values });
  }

  /** @param {string} key */
  addRow(key) {
    this.store.dispatch({ type: "rowAdded", key });
    this.focusRow(this.rows(key).at(-1));
  }

  /** @param {string} key @param {string} row */
  removeRow(key, row) {
    const rows = this.rows(key);
    const at = rows.findIndex((one) => one.key === row);
    this.store.dispatch({ type: "rowRemoved", key, row });
    this.focusRow(rows[at + 1] ?? rows[at - 1]);
  }

  /** @private @param {string} key */
  rows(key) {
    return this.store.state.forms[key]?.rows ?? [];
  }

  /** @private @param {ConditionRow | undefined} row */
  focusRow(row) {
    this.page.focus(row ? `[id="${row.key}.type"]` : "#add-row");
  }

  /** @param {string} key  Leave it; what was typed is gone. */
  cancel(key) {
    this.store.dispatch({ type: "formTold", key, over: true });
    this.page.go(key === "new" ? { view: "triggers" } : { view: "trigger", id: key });
  }

  /** @param {string} key */
  async send(key) {
    const form = this.store.state.forms[key];
    if (!form || form.busy || form.over) return;
    const missing = Object.entries(fields.missingOf(form, this.page.zone()));
    if (missing.length) {
      return this.refuse(key, Object.fromEntries(missing.map(([field, why]) => [field, t(why)])));
    }
    this.store.dispatch({ type: "formTold", key, busy: true, errors: {} });
    try {
      await (form.base ? this.change(form, form.base) : this.create(form));
    } catch (error) {
      const { field, status } = /** @type {any} */ (error);
      this.refuse(key, { [fields.fieldOf(form, field)]: words(error) });
      if (status === 401) this.page.signOut();
    }
  }

  /** @private @param {TriggerForm} form */
  async create(form) {
    const { id } = await this.api.addTrigger(fields.createRequest(form, this.page.zone()));
    this.done(form.key, id ?? form.id, t("order.create"));
  }

  /** @private @param {TriggerForm} form @param {Trigger} base */
  async change(form, base) {
    const { key } = form;
    const zone = this.page.zone();
    const changes = fields.changesOf(form, fields.formOf(base, [], zone), zone);
    if (!Object.keys(changes).length) return this.done(key, key, "");
    const answer = await this.api.editTrigger(key, changes);
    if (answer?.ok === false) {
      return this.refuse(key, { form: answer.message || t("error.unknown") });
    }
    this.done(key, key, t(answer?.command ? "order.accepted" : "order.edit"));
  }

  /** @private @param {string} key @param {string} id @param {string} text */
  done(key, id, text) {
    this.store.dispatch({ type: "formTold", key, over: true });
    this.page.go({ view: "trigger", id });
    if (text) this.page.notify(text);
  }

  /** @private @param {string} key @param {Record<string, string>} errors */
  refuse(key, errors) {
    this.store.dispatch({ type: "formTold", key, busy: false, errors });
    this.page.focus("#trigger-form [aria-invalid=true], #form-error");
  }
}
