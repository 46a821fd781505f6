/** What the user can do with engines: look, try, set up, say who serves, remove. */

import { earlier, formOf, missingOf, orderOf, requestOf } from "./engines.js";
import { t } from "../core/i18n.js";
import { newId } from "../core/ids.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").EngineForm} EngineForm
 * @typedef {import("../core/state-types.js").EnginesPage} EnginesPage
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../core/api.js").Api} Api
 *
 * @typedef {object} Help what the rest of the page does for it
 * @property {(text: string, tone?: "info" | "error") => void} notify
 * @property {(error: any) => string} words why a request failed
 * @property {() => void} signOut
 * @property {(selector: string) => void} focus
 * @property {(act: () => void, ms: number) => void} later
 */

const SETTLED_MS = [2500, 6000];

export class EngineActions {
  /** @param {Store} store @param {Api} api @param {Help} help */
  constructor(store, api, help) {
    this.store = store;
    this.api = api;
    this.help = help;
  }

  /** @param {State} state @param {State} before  Who serves may have changed: the status says so. */
  onChange(state, before) {
    if (state.session !== "in" || state.route.view !== "engines") return;
    const came = before.route.view !== "engines" || before.session !== "in";
    const one = (/** @type {State} */ { status }) =>
      JSON.stringify([status?.consumer, status?.engines, status?.minds]);
    if (came || one(state) !== one(before)) void this.load();
  }

  async load() {
    if (this.store.state.route.view !== "engines") return;
    if (!this.page.list) this.set({ load: "loading" });
    try {
      this.set({ list: await this.api.engines(), load: "ready" });
    } catch (error) {
      if (!this.page.list) this.set({ load: "failed", error: this.help.words(error) });
      this.leave(error);
    }
  }

  /** @private  Who serves is heard with the consumer's next heartbeats. */
  async settle() {
    for (const ms of SETTLED_MS) this.help.later(() => void this.load(), ms);
    await this.load();
  }

  /** @param {string | null} name  Of the endpoint that is changed; null: a new one. */
  open(name) {
    const base = this.page.list?.engines.find((engine) => engine.name === name) ?? null;
    this.set({ form: formOf(base), removing: "" });
    this.help.focus(base ? "#engine-baseUrl" : "#engine-name");
  }

  close() {
    this.set({ form: null });
    this.help.focus("#engine-add");
  }

  /** @param {Partial<EngineForm>} values */
  edit(values) {
    const { form } = this.page;
    if (!form || form.busy) return;
    const errors = { ...form.errors };
    for (const field of ["form", ...Object.keys(values)]) delete errors[field];
    const other = ["baseUrl", "key", "keyEnv", "keyIs"].some((field) => field in values);
    this.set({ form: { ...form, ...values, errors, trial: other ? null : form.trial } });
  }

  /** Ask the endpoint for its models and, where one is named, for a turn. */
  async tryOut() {
    const form = this.begin("trial", true);
    if (!form) return;
    try {
      const trial = await this.api.engineTrial({ name: form.name, ...requestOf(form) });
      const errors = trial.ok ? {} : { [fieldOf(trial.field)]: told(trial) };
      this.end(form, { trial: trial.ok || trial.models.length ? trial : null, errors });
      if (!trial.ok) this.help.focus("#engine-form [aria-invalid=true], #engine-form-error");
      else if (!form.model) this.help.focus("#engine-model");
    } catch (error) {
      this.refuse(form, error);
    }
  }

  async save() {
    const form = this.begin("save", false);
    if (!form) return;
    try {
      const answer = await this.api.keepEngine(form.name, { ...requestOf(form), id: newId("cmd") });
      if (answer?.ok === false) throw Object.assign(new Error(answer.message), { status: 422 });
      this.set({ form: null });
      this.help.notify(t(answer?.command ? "order.accepted" : "order.edit"));
      this.help.focus("#engine-add");
      await this.settle();
    } catch (error) {
      this.refuse(form, error);
    }
  }

  /** @param {string} name  Ask before it goes; empty: no more. */
  confirm(name) {
    this.set({ removing: name });
    if (name) this.help.focus("#engine-remove-no");
  }

  /** @param {string} name */
  async remove(name) {
    this.set({ removing: "" });
    await this.ordered(name, "order.remove", () => this.api.removeEngine(name, newId("cmd")));
    this.help.focus("#engine-add");
  }

  /** @param {string} name  It serves before all that serves now. */
  async use(name) {
    const order = this.page.list ? orderOf(this.page.list, "all") : [];
    await this.order("all", [name, ...order.filter((one) => one !== name)]);
  }

  /** @param {string} seat  The one whose order is shown. */
  show(seat) {
    this.set({ seat });
  }

  /** @param {string} seat @param {number} at */
  async raise(seat, at) {
    if (this.page.list) await this.order(seat, earlier(orderOf(this.page.list, seat), at));
  }

  /** @param {string} seat @param {string[]} names  Empty: a role or profile is served as the rest. */
  async order(seat, names) {
    const body = { use: (names.length ? names : ["auto"]).join(" "), id: newId("cmd") };
    const act = () => this.api.orderEngines(seat === "all" ? body : { ...body, seat });
    await this.ordered(seat, "order.edit", act);
  }

  /** @private @param {string} what @param {string} said @param {() => Promise<any>} act */
  async ordered(what, said, act) {
    if (this.page.busy) return;
    this.set({ busy: what });
    try {
      const answer = await act();
      if (answer?.ok === false) this.help.notify(answer.message, "error");
      else this.help.notify(t(answer?.command ? "order.accepted" : said));
      await this.settle();
    } catch (error) {
      this.help.notify(this.help.words(error), "error");
      this.leave(error);
    } finally {
      this.set({ busy: "" });
    }
  }

  /** @private @param {"trial" | "save"} busy @param {boolean} toTry @returns {EngineForm | null} */
  begin(busy, toTry) {
    const { form } = this.page;
    if (!form || form.busy) return null;
    const errors = missingOf(form, toTry);
    const wrong = Object.keys(errors).length > 0;
    const begun = { ...form, errors, busy: wrong ? /** @type {""} */ ("") : busy };
    this.set({ form: begun });
    if (wrong) this.help.focus("#engine-form [aria-invalid=true]");
    return wrong ? null : begun;
  }

  /** @private @param {EngineForm} begun @param {Partial<EngineForm>} values  Unless it was left. */
  end(begun, values) {
    if (this.page.form === begun) this.set({ form: { ...begun, busy: "", ...values } });
  }

  /** @private @param {EngineForm} form @param {any} error */
  refuse(form, error) {
    this.end(form, { errors: { [fieldOf(error?.field)]: this.help.words(error) } });
    this.help.focus("#engine-form [aria-invalid=true], #engine-form-error");
    this.leave(error);
  }

  /** @private @param {any} error */
  leave(error) {
    if (error?.status === 401) this.help.signOut();
  }

  /** @private @returns {EnginesPage} */
  get page() {
    return this.store.state.engines;
  }

  /** @private @param {Partial<EnginesPage>} values */
  set(values) {
    this.store.set({ engines: { ...this.page, ...values } });
  }
}

const FIELDS = ["name", "baseUrl", "model", "key", "keyEnv"];

/** @param {string | null | undefined} field  Where an error is told; what is no field is told below. */
function fieldOf(field) {
  return field && FIELDS.includes(field) ? field : "form";
}

/** @param {import("../core/types.js").Trial} trial  What it means, then what was said. */
function told({ field, message }) {
  return `${t(`engines.trouble.${fieldOf(field)}`)} (${message})`;
}
