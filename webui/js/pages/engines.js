/** Engines as the page sets them up: what a form holds, what is sent, what can be done with them. */

import { words } from "../core/api.js";
import { has, t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { heard, Resource } from "../core/resource.js";

const SETTLED_MS = [2500, 6000];
const WRONG = "#engine-form [aria-invalid=true], #engine-form-error";

/** Whatever may have an order of its own; `all` is for whatever has none. */
export const SEATS = ["all", "teller", "planner", "standard", "specialist", "deferred"];
/** Addresses that many will want, for the field to propose. */
export const known = () => t("engines.known").split(" ");
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const TAKEN = ["auto", "codex", "opencode", "local", "builtin", "command", "scripted"];
const ADDRESS = /^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** @returns {EnginesPage} nothing is known, nothing typed */
export function noEngines() {
  return { load: "idle", error: "", list: null, form: null, removing: "", seat: "all", busy: "" };
}

/** @param {Engine | null} base  What is changed; null: a new one. @returns {EngineForm} */
export function formOf(base) {
  return {
    base,
    name: base?.name ?? "",
    baseUrl: base?.baseUrl ?? "",
    model: base?.model ?? "",
    keyIs: base?.key === "variable" ? "variable" : base?.key === "kept" ? "kept" : "none",
    key: "",
    keyEnv: base?.keyEnv ?? "",
    errors: {},
    busy: "",
    trial: null,
  };
}

/**
 * What is wrong with it, by field, in the reader's words.
 *
 * @param {EngineForm} form
 * @param {boolean} toTry a model is not needed to list what there is
 */
export function missingOf(form, toTry) {
  /** @type {Record<string, string>} */
  const wrong = {};
  if (!NAME.test(form.name)) wrong.name = t("engines.wrongName");
  else if (TAKEN.includes(form.name)) wrong.name = t("engines.takenName");
  if (!ADDRESS.test(form.baseUrl.trim())) wrong.baseUrl = t("engines.wrongUrl");
  if (form.keyIs === "key" && !form.key.trim()) wrong.key = t("engines.wrongKey");
  if (form.keyIs === "variable" && !VARIABLE.test(form.keyEnv.trim()))
    wrong.keyEnv = t("engines.wrongEnv");
  if (!toTry && !form.model.trim()) wrong.model = t("engines.wrongModel");
  return wrong;
}

/** @param {EngineForm} form  As it is sent; a key that is kept stays where it is. */
export function requestOf(form) {
  return {
    baseUrl: form.baseUrl.trim(),
    model: form.model.trim(),
    key: form.keyIs === "key" ? form.key.trim() : "",
    keyEnv: form.keyIs === "variable" ? form.keyEnv.trim() : "",
  };
}

/** @param {EngineList} list @param {string} seat @returns {string[]} empty: as all the rest */
export function orderOf(list, seat) {
  return list.orders[seat] ?? [];
}

/** @param {EngineList} list @param {string[]} order  What else could serve. */
export function othersOf(list, order) {
  return ["auto", ...list.engines.map((engine) => engine.name)].filter(
    (name) => !order.includes(name),
  );
}

/** @param {string[]} order @param {number} at  The one there goes before the one above it. */
export function earlier(order, at) {
  const moved = [...order];
  moved.splice(at - 1, 0, ...moved.splice(at, 1));
  return moved;
}

/** What the user can do with them: look, try, set up, choose the order, remove. */
export class EngineActions {
  /**
   * @param {Store} store
   * @param {Api} api
   * @param {Pick<Actions, "notify" | "signOut" | "focus">} page
   * @param {import("../core/resource.js").Timers} timers
   */
  constructor(store, api, page, timers) {
    this.store = store;
    this.api = api;
    this.page = page;
    this.timers = timers;
    const request = async () => ({ list: await api.engines() });
    this.list = new Resource(timers, request, (told) => {
      this.set({ ...heard(this.now, told), error: told.error ? words(told.error) : "" });
      this.leave(told.error);
    });
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
    if (this.store.state.route.view === "engines") await this.list.load();
  }

  /** @private  Who serves is heard with the consumer's next heartbeats. */
  async settle() {
    for (const ms of SETTLED_MS) this.timers.later(() => void this.load(), ms);
    await this.load();
  }

  /** @param {string | null} name  Of the endpoint that is changed; null: a new one. */
  open(name) {
    const base = this.now.list?.engines.find((engine) => engine.name === name) ?? null;
    this.set({ form: formOf(base), removing: "" });
    this.page.focus(base ? "#engine-baseUrl" : "#engine-name");
  }

  close() {
    this.set({ form: null });
    this.page.focus("#engine-add");
  }

  /** @param {Partial<EngineForm>} values */
  edit(values) {
    const { form } = this.now;
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
      const errors = trial.ok ? {} : { [fieldOf(trial.field)]: told(form, trial) };
      this.end(form, { trial: trial.ok || trial.models.length ? trial : null, errors });
      if (!trial.ok) this.page.focus(WRONG);
      else if (!form.model) this.page.focus("#engine-model");
    } catch (error) {
      this.refuse(form, error);
    }
  }

  async save() {
    const form = this.begin("save", false);
    if (!form) return;
    try {
      const answer = await this.api.keepEngine(form.name, { ...requestOf(form), id: newId("cmd") });
      if (answer?.ok === false) throw Object.assign(new Error(), answer);
      this.set({ form: null });
      this.page.notify(t(answer?.command ? "order.accepted" : "order.edit"));
      this.page.focus("#engine-add");
      await this.settle();
    } catch (error) {
      this.refuse(form, error);
    }
  }

  /** @param {string} name  Ask before it goes; empty: no more. */
  confirm(name) {
    this.set({ removing: name });
    if (name) this.page.focus("#engine-remove-no");
  }

  /** @param {string} name */
  async remove(name) {
    this.set({ removing: "" });
    await this.ordered(name, "order.remove", () => this.api.removeEngine(name, newId("cmd")));
    this.page.focus("#engine-add");
  }

  /** @param {string} name  It serves before all that serves now. */
  async use(name) {
    const order = this.now.list ? orderOf(this.now.list, "all") : [];
    await this.order("all", [name, ...order.filter((one) => one !== name)]);
  }

  /** @param {string} seat  The one whose order is shown. */
  show(seat) {
    this.set({ seat });
  }

  /** @param {string} seat @param {number} at */
  async raise(seat, at) {
    if (this.now.list) await this.order(seat, earlier(orderOf(this.now.list, seat), at));
  }

  /** @param {string} seat @param {string[]} names  Empty: a role or profile is served as the rest. */
  async order(seat, names) {
    const body = { use: (names.length ? names : ["auto"]).join(" "), id: newId("cmd") };
    const act = () => this.api.orderEngines(seat === "all" ? body : { ...body, seat });
    await this.ordered(seat, "order.edit", act);
  }

  /** @private @param {string} what @param {string} said @param {() => Promise<any>} act */
  async ordered(what, said, act) {
    if (this.now.busy) return;
    this.set({ busy: what });
    try {
      const answer = await act();
      if (answer?.ok === false) this.page.notify(words(answer), "error");
      else this.page.notify(t(answer?.command ? "order.accepted" : said));
      await this.settle();
    } catch (error) {
      this.page.notify(words(error), "error");
      this.leave(error);
    } finally {
      this.set({ busy: "" });
    }
  }

  /** @private @param {"trial" | "save"} busy @param {boolean} toTry @returns {EngineForm | null} */
  begin(busy, toTry) {
    const { form } = this.now;
    if (!form || form.busy) return null;
    const errors = missingOf(form, toTry);
    const wrong = Object.keys(errors).length > 0;
    const begun = { ...form, errors, busy: wrong ? /** @type {""} */ ("") : busy };
    this.set({ form: begun });
    if (wrong) this.page.focus(WRONG);
    return wrong ? null : begun;
  }

  /** @private @param {EngineForm} begun @param {Partial<EngineForm>} values  Unless it was left. */
  end(begun, values) {
    if (this.now.form === begun) this.set({ form: { ...begun, busy: "", ...values } });
  }

  /** @private @param {EngineForm} form @param {any} error */
  refuse(form, error) {
    this.end(form, { errors: { [fieldOf(error?.field)]: words(error) } });
    this.page.focus(WRONG);
    this.leave(error);
  }

  /** @private @param {any} error */
  leave(error) {
    if (error?.status === 401) this.page.signOut();
  }

  /** @private @returns {EnginesPage} */
  get now() {
    return this.store.state.engines;
  }

  /** @private @param {Partial<EnginesPage>} values */
  set(values) {
    this.store.set({ engines: { ...this.now, ...values } });
  }
}

const FIELDS = ["name", "baseUrl", "model", "key", "keyEnv"];

/** @param {string | null | undefined} field  Where an error is told; what is no field is told below. */
function fieldOf(field) {
  return field && FIELDS.includes(field) ? field : "form";
}

/** @param {EngineForm} form @param {Trial} trial  What it means, then what was said. */
function told({ name }, { trouble, field, message }) {
  const key = `mind.${trouble === "logged_out" ? "no_key" : trouble}`;
  const said = has(key) ? t(key, { engine: name }) : t(`engines.trouble.${fieldOf(field)}`);
  return `${said} (${message})`;
}
