/** What the user can do in a trigger's form. */

import { t } from "../core/i18n.js";
import { changesOf, createRequest, fieldOf, formOf, missingOf } from "../pages/trigger-form.js";

/**
 * @typedef {import("../core/state-types.js").TriggerForm} TriggerForm
 * @typedef {import("../core/state-types.js").ConditionRow} ConditionRow
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../core/api.js").Api} Api
 *
 * @typedef {object} Help what the rest of the page does for a form
 * @property {() => string} zone the reader's time zone
 * @property {(route: import("../core/state-types.js").Route) => void} go
 * @property {(text: string) => void} notify
 * @property {(error: any) => string} words why a request failed
 * @property {() => void} signOut
 * @property {() => void} focusError
 * @property {(row: string) => void} focusRow
 */

export class FormActions {
  /** @param {Store} store @param {Api} api @param {Help} help */
  constructor(store, api, help) {
    this.store = store;
    this.api = api;
    this.help = help;
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
    const row = this.store.state.forms[key]?.rows.at(-1);
    if (row) this.help.focusRow(row.key);
  }

  /** @param {string} key @param {string} row */
  removeRow(key, row) {
    const rows = this.store.state.forms[key]?.rows ?? [];
    const at = rows.findIndex((one) => one.key === row);
    const neighbour = rows[at + 1] ?? rows[at - 1];
    this.store.dispatch({ type: "rowRemoved", key, row });
    this.help.focusRow(neighbour?.key ?? "");
  }

  /** @param {string} key  Leave it; what was typed is gone. */
  cancel(key) {
    this.store.dispatch({ type: "formTold", key, over: true });
    this.help.go(key === "new" ? { view: "triggers" } : { view: "trigger", id: key });
  }

  /** @param {string} key */
  async send(key) {
    const form = this.store.state.forms[key];
    if (!form || form.busy || form.over) return;
    const missing = missingOf(form, this.help.zone());
    if (Object.keys(missing).length) return this.refuse(key, told(missing));
    this.store.dispatch({ type: "formTold", key, busy: true, errors: {} });
    try {
      await (form.base ? this.change(form, form.base) : this.create(form));
    } catch (error) {
      this.onError(form, error);
    }
  }

  /** @private @param {TriggerForm} form */
  async create(form) {
    const { id } = await this.api.addTrigger(createRequest(form, this.help.zone()));
    this.done(form.key, id ?? form.id, t("order.create"));
  }

  /** @private @param {TriggerForm} form @param {import("../core/types.js").Trigger} base */
  async change(form, base) {
    const zone = this.help.zone();
    const changes = changesOf(form, formOf(base, [], zone), zone);
    if (!Object.keys(changes).length) return this.done(form.key, form.key, "");
    const answer = await this.api.editTrigger(form.key, changes);
    if (answer?.ok === false) {
      return this.refuse(form.key, { form: answer.message || t("error.unknown") });
    }
    this.done(form.key, form.key, t(answer?.command ? "order.accepted" : "order.edit"));
  }

  /** @private @param {string} key @param {string} id @param {string} text */
  done(key, id, text) {
    this.store.dispatch({ type: "formTold", key, over: true });
    this.help.go({ view: "trigger", id });
    if (text) this.help.notify(text);
  }

  /** @private @param {TriggerForm} form @param {any} error */
  onError(form, error) {
    this.refuse(form.key, { [fieldOf(form, error?.field)]: this.help.words(error) });
    if (error?.status === 401) this.help.signOut();
  }

  /** @private @param {string} key @param {Record<string, string>} errors */
  refuse(key, errors) {
    this.store.dispatch({ type: "formTold", key, busy: false, errors });
    this.help.focusError();
  }
}

/** @param {Record<string, string>} missing words' keys, by field */
function told(missing) {
  return Object.fromEntries(Object.entries(missing).map(([field, key]) => [field, t(key)]));
}
