/** The opened trigger and the forms: when each is loaded, and what is sent. */

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

export class TriggerActions {
  /** @param {Store} store @param {Api} api @param {Pick<Actions, "zone" | "go" | "notify" | "signOut" | "focus">} page */
  constructor(store, api, page) {
    this.store = store;
    this.api = api;
    this.page = page;
    this.loadedAt = 0;
    this.opened = new Resource(
      (id) => api.triggerDetail(id),
      (loaded, id) => this.onLoaded(loaded, id),
    );
    this.preview = new Resource(
      ({ body }) => api.previewTrigger(body),
      (loaded, asking) => this.onPreview(loaded, asking),
    );
  }

  // --- when each is loaded

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    this.keepDetail(state, before);
    this.keepForm(state);
  }

  /** @private @param {State} state @param {State} before */
  keepDetail(state, before) {
    const { route } = state;
    const open = route.view === "trigger" || route.view === "triggerEdit";
    const id = state.session === "in" && open ? route.id : "";
    if (id === (state.triggerDetail?.id ?? "")) {
      if (id && this.isOutdated(id, state, before)) this.refresh(id);
      return;
    }
    const trigger = state.triggers[id] ?? null;
    const nothing = { explanation: null, chain: [], usage: null };
    this.store.set({ triggerDetail: id ? { id, load: "loading", trigger, ...nothing } : null });
    if (id) void this.opened.load(id);
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
      if (this.store.state.triggerDetail?.id === id) void this.opened.load(id);
    }, REFRESH_MS);
  }

  /** @private @param {Loaded} loaded @param {string} id */
  onLoaded({ load, data }, id) {
    const { triggerDetail: known, now } = this.store.state;
    this.loadedAt = load === "loading" ? 0 : now; // one at a time
    if (known?.id !== id || load === "loading") return;
    const { job, ...detail } = data ?? {};
    if (job) this.store.patch("jobs", { [job.id]: job });
    this.store.patch("triggerDetail", { ...detail, load });
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
    const zone = this.page.zone();
    const made = isNew ? fields.newForm(newId("trig"), zone, state.status) : this.formOf(state, key);
    if (made) this.store.patch("forms", { [key]: made });
  }

  /** @private @param {State} state @param {string} open  The form that is on the page. */
  closeOver(state, open) {
    for (const { key, over } of Object.values(state.forms)) {
      if (!over || key === open) continue;
      const { [key]: _, ...forms } = this.store.state.forms;
      this.store.set({ forms });
      if (state.triggerDetail?.id === key) this.refresh(key);
    }
  }

  /** @private @param {State} state @param {string} id @returns {TriggerForm | null} */
  formOf({ triggerDetail: detail }, id) {
    if (detail?.id !== id || detail.load !== "ready" || !detail.trigger) return null;
    return fields.formOf(detail.trigger, detail.explanation?.nodes ?? [], this.page.zone());
  }

  /** @private @param {TriggerForm} form */
  keepPreview(form) {
    const { key, preview } = form;
    const body = fields.previewRequest(form, this.page.zone());
    const asked = body ? JSON.stringify(body) : "";
    if (asked === preview.asked) return;
    const now = asked ? { ...preview, asked, state: "asking", error: null } : fields.NO_PREVIEW;
    this.store.patch("forms", { [key]: { ...form, preview: now } });
    if (body) this.preview.rested({ key, asked, body }, REST_MS);
  }

  /** @private @param {Loaded} told @param {{key: string, asked: string}} asking */
  onPreview({ load, data, error }, { key, asked }) {
    const form = this.store.state.forms[key];
    if (load === "loading" || form?.preview.asked !== asked) return; // something else stands there now
    const { status, field } = error ?? {};
    const told = error && REFUSALS.has(status) ? { field, text: words(error) } : null;
    const state = load === "ready" ? load : "failed";
    const preview = { asked, state, answer: data ?? null, error: told };
    this.store.patch("forms", { [key]: { ...form, preview } });
  }

  // --- what the user can do in a form

  /** @param {string} key @param {(form: TriggerForm) => TriggerForm} form */
  change(key, form) {
    const known = this.store.state.forms[key];
    if (known) this.store.patch("forms", { [key]: form(known) });
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
    if (answer?.ok === false) return this.refuse(key, { form: words(answer) });
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
