/** The opened trigger and the forms: how their state changes, when each is loaded, what is sent. */

import { words } from "../core/api.js";
import { t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { Resource } from "../core/resource.js";
import * as fields from "./trigger-form.js";

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
  form: (state, { key, form }) => {
    const { [key]: known, ...others } = state.forms;
    const next = typeof form === "function" ? known && form(known) : form;
    return { ...state, forms: next ? { ...others, [key]: next } : others };
  },
};

/** @param {State} state @param {{id: string | null}} action @returns {State} */
function triggerOpened(state, { id }) {
  if (id === null) return { ...state, triggerDetail: null };
  if (state.triggerDetail?.id === id) return state;
  const trigger = state.triggers[id] ?? null;
  const nothing = { explanation: null, chain: [], usage: null };
  return { ...state, triggerDetail: { id, load: "loading", trigger, ...nothing } };
}

/** @param {State} state @param {{id: string, load: TriggerPage["load"], data?: any}} action @returns {State} */
function triggerTold(state, { id, load, data }) {
  const { triggerDetail: known } = state;
  if (known?.id !== id || load === "loading") return state;
  if (load !== "ready") return { ...state, triggerDetail: { ...known, load } };
  const { trigger = null, explanation = null, chain = [], usage = null, job } = data;
  const jobs = job ? { ...state.jobs, [job.id]: job } : state.jobs;
  return { ...state, jobs, triggerDetail: { id, load, trigger, explanation, chain, usage } };
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
      (told, asking) => this.hearPreview(told, asking),
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
    return this.loadedAt > 0 && state.now - this.loadedAt > STALE_MS;
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
    if (form) return form.over ? undefined : this.keepPreview(form);
    const isNew = key === "new";
    const made = isNew ? fields.newForm(newId("trig"), this.zone(), state.status) : this.formOf(state, key);
    if (made) this.store.dispatch({ type: "form", key, form: made });
  }

  /** @private @param {State} state @param {string} open  The form that is on the page. */
  closeOver(state, open) {
    for (const { key, over } of Object.values(state.forms)) {
      if (!over || key === open) continue;
      this.store.dispatch({ type: "form", key, form: null });
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
    const { key, preview } = form;
    const body = fields.previewRequest(form, this.zone());
    const asked = body ? JSON.stringify(body) : "";
    if (asked === preview.asked) return;
    this.preview.wake();
    this.tellPreview(key, asked ? { ...preview, asked, state: "asking", error: null } : fields.NO_PREVIEW);
    if (body) this.preview.rested({ key, asked, body }, REST_MS);
  }

  /** @private @param {Loaded} told @param {{key: string, asked: string}} asking */
  hearPreview({ load, data, error }, { key, asked }) {
    const preview = this.store.state.forms[key]?.preview;
    if (load === "loading" || preview?.asked !== asked) return; // something else stands there now
    const { status, message: text, field } = error ?? {};
    const told = error && REFUSALS.has(status) ? { field, text } : null;
    const state = load === "ready" ? load : "failed";
    this.tellPreview(key, { asked, state, answer: data ?? null, error: told });
  }

  /** @private @param {string} key @param {Preview} preview */
  tellPreview(key, preview) {
    const form = (/** @type {TriggerForm} */ known) => ({ ...known, preview });
    this.store.dispatch({ type: "form", key, form });
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

  /** @param {string} key @param {(form: TriggerForm) => TriggerForm} form */
  change(key, form) {
    this.store.dispatch({ type: "form", key, form });
  }

  /** @param {string} key */
  addRow(key) {
    this.change(key, fields.withRow);
    this.focusRow(this.store.state.forms[key]?.rows.at(-1));
  }

  /** @param {string} key @param {string} row */
  removeRow(key, row) {
    const { rows } = this.store.state.forms[key];
    const at = rows.findIndex((one) => one.key === row);
    this.change(key, (form) => fields.withoutRow(form, row));
    this.focusRow(rows[at + 1] ?? rows[at - 1]);
  }

  /** @private @param {ConditionRow | undefined} row */
  focusRow(row) {
    this.page.focus(row ? `[id="${row.key}.type"]` : "#add-row");
  }

  /** @param {string} key  Leave it; what was typed is gone. */
  cancel(key) {
    this.change(key, (form) => ({ ...form, over: true }));
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
    this.change(key, (sent) => ({ ...sent, busy: true, errors: {} }));
    try {
      await (form.base ? this.save(form, form.base) : this.create(form));
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
  async save(form, base) {
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
    this.change(key, (form) => ({ ...form, over: true }));
    this.page.go({ view: "trigger", id });
    if (text) this.page.notify(text);
  }

  /** @private @param {string} key @param {Record<string, string>} errors */
  refuse(key, errors) {
    this.change(key, (form) => ({ ...form, busy: false, errors }));
    this.page.focus("#trigger-form [aria-invalid=true], #form-error");
  }
}
