/** Engines as the page sets them up: what a form holds, what is sent, what can be done with them. */

import { ApiError } from "../core/api.js";
import { has, t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { SettingsPage } from "../core/resource.js";

const WRONG = "#engine-form [aria-invalid=true], #engine-form-error";
const FIELDS = ["name", "baseUrl", "model", "key", "keyEnv"];
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const TAKEN = ["auto", "codex", "opencode", "local", "builtin", "command", "scripted"];
const ADDRESS = /^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** @returns {EnginesPage} nothing is known, nothing typed */
export function noEngines() {
  return { load: "idle", error: "", list: null, form: null, seat: "all" };
}

/** @param {EngineForm} form @param {boolean} toTry  What is wrong, by field; a trial needs no model. */
function wrongIn(form, toTry) {
  /** @type {Record<string, string>} */
  const wrong = {};
  if (!NAME.test(form.name)) wrong.name = t("engines.wrongName");
  else if (TAKEN.includes(form.name)) wrong.name = t("engines.takenName");
  if (!ADDRESS.test(form.baseUrl.trim())) wrong.baseUrl = t("engines.wrongUrl");
  if (form.keyIs === "key" && !form.key.trim()) wrong.key = t("engines.wrongKey");
  const variable = form.keyIs === "variable";
  if (variable && !VARIABLE.test(form.keyEnv.trim())) wrong.keyEnv = t("engines.wrongEnv");
  if (!toTry && !form.model.trim()) wrong.model = t("engines.wrongModel");
  return wrong;
}

/** @param {EngineForm} form  As it is sent; a key that is kept stays where it is. */
function requestOf(form) {
  return {
    baseUrl: form.baseUrl.trim(),
    model: form.model.trim(),
    key: form.keyIs === "key" ? form.key.trim() : "",
    keyEnv: form.keyIs === "variable" ? form.keyEnv.trim() : "",
  };
}

/** @param {string | null | undefined} field  Where an error is told; what is no field is told below. */
function fieldOf(field) {
  return field && FIELDS.includes(field) ? field : "form";
}

/** What the user can do with them: look, try, set up, choose the order, remove. */
export class EngineActions extends SettingsPage {
  /** @param {Store} store @param {Api} api @param {Actions} page */
  constructor(store, api, page) {
    super(store, api, page, "engines", async () => ({ list: await api.engines() }));
  }

  /** @param {Partial<EnginesPage>} values */
  set(values) {
    this.store.patch("engines", values);
  }

  /** @param {Engine | null} base  The endpoint that is changed; null: a new one. */
  open(base) {
    const { name = "", baseUrl = "", model = "", key: keyIs = "none", keyEnv = "" } = base ?? {};
    const given = { base, name, baseUrl, model, keyIs, key: "", keyEnv };
    this.set({ form: { ...given, errors: {}, busy: "", trial: null } });
    this.page.focus(base ? "#engine-baseUrl" : "#engine-name");
  }

  close() {
    this.set({ form: null });
    this.page.focus("#engine-add");
  }

  /** @param {Partial<EngineForm>} values */
  edit(values) {
    const { form } = this.store.state.engines;
    if (!form || form.busy) return;
    const errors = { ...form.errors };
    for (const field of ["form", ...Object.keys(values)]) delete errors[field];
    const other = ["baseUrl", "key", "keyEnv", "keyIs"].some((field) => field in values);
    this.set({ form: { ...form, ...values, errors, trial: other ? null : form.trial } });
  }

  /** Ask the endpoint for its models and, where one is named, for a turn. */
  async tryOut() {
    await this.send("trial", async (form) => {
      const trial = await this.api.engineTrial({ name: form.name, ...requestOf(form) });
      const errors = trial.ok ? {} : { [fieldOf(trial.field)]: whyNot(form, trial) };
      this.end(form, { trial: trial.ok || trial.models.length ? trial : null, errors });
      if (trial.ok && !form.model) this.page.focus("#engine-model");
    });
  }

  async save() {
    await this.send("save", async (form) => {
      const answer = await this.api.keepEngine(form.name, { ...requestOf(form), id: newId("cmd") });
      if (answer?.ok === false) throw new ApiError(422, answer.message, null, { error: answer });
      this.page.notify(t(answer?.command ? "order.accepted" : "order.edit"));
      this.close();
      this.settle();
    });
  }

  /** @private @param {"trial" | "save"} busy @param {(form: EngineForm) => Promise<void>} act */
  async send(busy, act) {
    const { form } = this.store.state.engines;
    if (!form || form.busy) return;
    const wrong = wrongIn(form, busy === "trial");
    if (Object.keys(wrong).length) return this.end(form, { errors: wrong });
    const sent = { ...form, errors: {}, busy };
    this.set({ form: sent });
    try {
      await act(sent);
    } catch (error) {
      const field = fieldOf(/** @type {any} */ (error)?.field);
      this.end(sent, { errors: { [field]: this.page.why(error) } });
    }
  }

  /** @private @param {EngineForm} sent @param {Partial<EngineForm>} values  Unless it was left. */
  end(sent, values) {
    if (this.store.state.engines.form !== sent) return;
    this.set({ form: { ...sent, busy: "", ...values } });
    if (Object.keys(values.errors ?? {}).length) this.page.focus(WRONG);
  }

  /** @param {string} name */
  async remove(name) {
    await this.ordered("engine", "remove", () => this.api.removeEngine(name, newId("cmd")));
    this.page.focus("#engine-add");
  }

  /** @param {string} seat @param {string[]} names  Empty: a role or profile is served as the rest. */
  async order(seat, names) {
    const body = { use: (names.length ? names : ["auto"]).join(" "), id: newId("cmd") };
    const act = () => this.api.orderEngines(seat === "all" ? body : { ...body, seat });
    await this.ordered("engine", "edit", act);
  }
}

/** @param {EngineForm} form @param {Trial} trial  What it means, then what was said. */
function whyNot({ name }, { trouble, field, message }) {
  const key = `mind.${trouble === "logged_out" ? "no_key" : trouble}`;
  const said = has(key) ? t(key, { engine: name }) : t(`engines.trouble.${fieldOf(field)}`);
  return `${said} (${message})`;
}
