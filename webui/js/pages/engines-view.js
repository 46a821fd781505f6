/** Engines: what there is and how it is, an endpoint's form, who serves what. */

import { html, icon, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { wantWords } from "../ui/banners.js";
import { inputField, selectField } from "../ui/fields.js";
import * as parts from "../ui/parts.js";
import { button, engineName, iconButton, moment, word } from "../ui/parts.js";

/** Whatever may have an order of its own; `all` is for whatever has none. */
const SEATS = ["all", "teller", "planner", "standard", "specialist", "deferred"];

/** @param {State} state @param {Actions} act */
export function enginesView(state, act) {
  const { list, load, error } = state.engines;
  if (!list && load === "failed") return parts.failedView(() => act.engines.all.load(), error);
  const body = list ? bodyView(list, state, act) : parts.loading(t("engines.loading"));
  return parts.pageView("engines-page", t("engines.page"), body);
}

/** @param {EngineList} list @param {State} state @param {Actions} act */
function bodyView(list, state, act) {
  const { form } = state.engines;
  const look = { sign: "plus", look: "", id: "engine-add" };
  const add = button(t("engines.add"), () => act.engines.open(null), look);
  return html`<p class="muted">${t("engines.pageHint")}</p>
    ${adviceView(state.status)}
    <ul class="triggers">
      ${list.engines.map((engine) => cardView(engine, list, state, act))}
    </ul>
    ${form ? formView(form, act) : add} ${orderView(list, state, act)}`;
}

/** @param {Status | null} status  What can be done about it. */
function adviceView(status) {
  const advice = { builtin: "engines.hint", local: "engines.basicHint" }[status?.engines.teller?.engine ?? ""];
  const quarantined = status?.quarantined ?? 0;
  return html`${advice ? html`<p>${t(advice)}</p>` : nothing}
    ${quarantined ? html`<p>${tn("engines.quarantined", quarantined)}</p>` : nothing}
    <p class="muted">${t("engines.check")} <code>mimikit doctor</code></p>`;
}

/** @param {Engine} engine @param {EngineList} list @param {State} state @param {Actions} act */
function cardView(engine, list, state, act) {
  const { name, state: how, kind, model, baseUrl, key, keyEnv } = engine;
  const tone = how === "waiting" ? "warn" : "plain";
  const endpoint = html`<span>${model}</span><span class="engine-url">${baseUrl}</span>
    <span>${t(`engines.key.${key}`, { variable: keyEnv })}</span>`;
  const serves = engine.serves.map((seat) => word("seat", seat)).join(t("list.and"));
  return html`<li class="trigger" data-engine=${name}>
    <div class="trigger-title">
      <strong>${engineName(name)}</strong>
      <span class="badge badge-${tone}">${t(`engines.is.${how}`)}</span>
    </div>
    <p class="row-meta">${kind === "endpoint" ? endpoint : html`<span>${t(`engines.kind.${kind}`)}</span>`}</p>
    ${how === "waiting" ? whyView(engine) : nothing}
    ${serves && html`<p class="row-meta"><span>${t("engines.serves")} ${serves}</span></p>`}
    ${buttonsView(engine, list, state, act)}
  </li>`;
}

/** @param {Engine} engine */
function whyView({ name, want, reason, until, tasks }) {
  return html`<p class="verdict">
    ${want ? wantWords(want, name) : t("engines.is.waiting")}${
      until ? html` (${t("engines.until")} ${moment(until)})` : nothing
    }${tasks ? html` · ${tn("engine.tasks", tasks)}` : nothing}
    ${reason ? html`<span class="engine-reason muted">${reason}</span>` : nothing}
  </p>`;
}

/** @param {Engine} engine @param {EngineList} list @param {State} state @param {Actions} act */
function buttonsView(engine, { orders }, state, act) {
  const { name, kind } = engine;
  const { engines } = act;
  if (state.confirming === `engine ${name}`) {
    const asked = t("engines.confirm", { name });
    return parts.confirmView(act, asked, t("triggers.removeYes"), () => engines.remove(name));
  }
  const order = orders.all ?? [];
  const named = t("engines.useNamed", { name: engineName(name) });
  const off = Boolean(state.pending.engine);
  const use = () => engines.order("all", [name, ...order.filter((one) => one !== name)]);
  const more = html`<span class="trigger-more"
    >${iconButton("edit", t("engines.editNamed", { name }), () => engines.open(engine))}
    ${iconButton("trash", t("engines.removeNamed", { name }), () => act.ask(`engine ${name}`))}</span
  >`;
  return html`<div class="trigger-actions">
    ${order[0] === name ? nothing : button(t("engines.use"), use, { sign: "play", off, named })}
    ${kind === "endpoint" ? more : nothing}
  </div>`;
}

// --- the form

/** @param {EngineForm} form @param {Actions} act */
function formView(form, { engines }) {
  const { base, busy, errors, keyIs, model, trial } = form;
  const off = Boolean(busy);
  /** @param {"name" | "baseUrl" | "model" | "key" | "keyEnv"} name @param {Partial<Field>} more */
  const field = (name, more) =>
    inputField({
      name: `engine-${name}`,
      label: t(`engines.field.${name}`),
      value: form[name],
      error: errors[name],
      change: (value) => engines.edit({ [name]: value }),
      required: true,
      mono: true,
      ...more,
    });
  const kinds = [base?.key === "kept" ? "kept" : "none", "key", "variable"];
  const known = t("engines.known").split(" "); // addresses that many will want
  const tries = t(model ? "engines.try" : "engines.listModels");
  const submit = parts.onSubmit(() => void engines.save());
  const variable = { placeholder: "DEEPSEEK_API_KEY", hint: t("engines.envHint") };
  return html`<form class="engine-form" id="engine-form" novalidate @submit=${submit}>
    <h3>${base ? t("engines.editNamed", { name: base.name }) : t("engines.addTitle")}</h3>
    ${base ? nothing : field("name", { placeholder: "deepseek", hint: t("engines.nameHint") })}
    ${field("baseUrl", { list: known, placeholder: known[0], hint: t("engines.urlHint") })}
    ${selectField(
      {
        name: "engine-keyIs",
        label: t("engines.keyIs"),
        value: keyIs,
        error: keyIs === "key" ? "" : errors.key,
        change: (value) => engines.edit({ keyIs: /** @type {EngineForm["keyIs"]} */ (value) }),
      },
      kinds.map((value) => ({ value, label: t(`engines.keyIs.${value}`) })),
    )}
    ${keyIs === "key" ? field("key", { type: "password", hint: t("engines.keyHint") }) : nothing}
    ${keyIs === "variable" ? field("keyEnv", variable) : nothing}
    ${field("model", { list: trial?.models ?? [], hint: t("engines.modelHint") })}
    <div role="status" class="engine-trial">${trialView(form)}</div>
    ${parts.failureView(errors.form, "engine-form-error")}
    <div class="trigger-actions">
      <button type="submit" class="primary" ?disabled=${off}>
        ${t(busy === "save" ? "engines.saving" : "engines.save")}
      </button>
      ${button(tries, () => engines.tryOut(), { look: "", off })}
      ${button(t("engines.cancel"), () => engines.close(), { look: "" })}
    </div>
  </form>`;
}

/** @param {EngineForm} form  What came of the trial. */
function trialView({ busy, trial }) {
  if (busy === "trial") return parts.loading(t("engines.trying"));
  if (!trial) return nothing;
  const { models, api, callsTools, text, tookS } = trial;
  const shown = models.slice(0, 12).join(t("list.and"));
  const more = models.length > 12 ? " …" : "";
  const list = html`<p>${tn("engines.models", models.length)} ${shown}${more}</p>`;
  const answered = html`<p>
      ${icon("check")}${t(`engines.answers.${api}`, { seconds: tookS.toFixed(1) })}
      ${callsTools ? nothing : html`<q>${text.slice(0, 80)}</q>`}
    </p>
    ${callsTools ? nothing : html`<p>${icon("alert")}${t("engines.noTools")}</p>`}`;
  return html`${models.length ? list : nothing} ${trial.ok && api ? answered : nothing}`;
}

// --- who serves

/** @param {EngineList} list @param {State} state @param {Actions} act */
function orderView({ engines, orders }, state, act) {
  const { seat } = state.engines;
  const order = orders[seat] ?? []; // empty: as all the rest
  const others = ["auto", ...engines.map(({ name }) => name)].filter(
    (name) => !order.includes(name),
  );
  const off = Boolean(state.pending.engine);
  const change = (/** @type {string[]} */ names) => act.engines.order(seat, names);
  const names = html`<ol class="engine-names">${order.map((_, at) => orderRow(order, at, off, change))}</ol>`;
  const own = seat !== "all" && order.length;
  return html`<section class="engine-order" aria-labelledby="engine-order-title">
    <h3 id="engine-order-title">${t("engines.who")}</h3>
    ${selectField(
      {
        name: "engine-seat",
        label: t("engines.whoFor"),
        value: seat,
        hint: t("engines.whoHint"),
        change: (value) => act.engines.set({ seat: value }),
      },
      SEATS.map((value) => ({ value, label: value === "all" ? t("engines.all") : word("seat", value) })),
    )}
    ${order.length ? names : html`<p class="muted">${t("engines.asRest")}</p>`}
    <div class="trigger-actions">
      ${others.map((name) => button(engineName(name), () => change([...order, name]), { sign: "plus", off }))}
      ${own ? button(t("engines.toRest"), () => change([]), { off }) : nothing}
    </div>
  </section>`;
}

/** @param {string[]} order @param {number} at @param {boolean} off @param {(names: string[]) => void} change */
function orderRow(order, at, off, change) {
  const name = order[at];
  const named = engineName(name);
  const raise = () => change(order.toSpliced(at - 1, 2, name, order[at - 1]));
  const drop = () => change(order.toSpliced(at, 1));
  const auto = name === "auto" ? html` <span class="muted">${t("engines.auto")}</span>` : nothing;
  return html`<li>
    <span>${named}${auto}</span>
    ${at ? iconButton("up", t("engines.raise", { name: named }), raise, { off }) : nothing}
    ${order.length > 1 ? iconButton("x", t("engines.drop", { name: named }), drop, { off }) : nothing}
  </li>`;
}
