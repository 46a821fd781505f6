/** Engines: what there is and how it is, an endpoint's form, who serves what. */

import { known, orderOf, othersOf, SEATS } from "./engines.js";
import { html, icon, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { wantWords } from "../ui/banners.js";
import { inputField, selectField } from "../ui/fields.js";
import * as parts from "../ui/parts.js";
import { button, engineName, iconButton, moment, word } from "../ui/parts.js";

/** @param {State} state @param {Actions} act */
export function enginesView(state, act) {
  const { list, load, error, form } = state.engines;
  if (!list && load === "failed") return parts.failedView(() => act.engines.load(), error);
  const title = html`<h2 tabindex="-1" data-focus>${t("engines.page")}</h2>`;
  if (!list)
    return html`<div class="engines-page">${title}${parts.loading(t("engines.loading"))}</div>`;
  return html`<div class="engines-page">
    ${title}
    <p class="muted">${t("engines.pageHint")}</p>
    ${adviceView(state.status)}
    <ul class="triggers">
      ${list.engines.map((engine) => cardView(engine, list, state, act))}
    </ul>
    ${
      form
        ? formView(form, act)
        : button(t("engines.add"), () => act.engines.open(null), {
            sign: "plus",
            look: "",
            id: "engine-add",
          })
    }
    ${orderView(list, state, act)}
  </div>`;
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
  const { name, state: how, kind } = engine;
  const tone = how === "waiting" ? "warn" : "plain";
  return html`<li class="trigger" data-engine=${name}>
    <div class="trigger-title">
      <strong>${engineName(name)}</strong>
      <span class="badge badge-${tone}">${t(`engines.is.${how}`)}</span>
    </div>
    <p class="row-meta">
      ${
        kind === "endpoint"
          ? html`<span>${engine.model}</span><span class="engine-url">${engine.baseUrl}</span>
              <span>${t(`engines.key.${engine.key}`, { variable: engine.keyEnv })}</span>`
          : html`<span>${t(`engines.kind.${kind}`)}</span>`
      }
    </p>
    ${how === "waiting" ? whyView(engine) : nothing}
    ${
      engine.serves.length
        ? html`<p class="row-meta">
            <span>${t("engines.serves")} ${seatWords(engine.serves)}</span>
          </p>`
        : nothing
    }
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

/** @param {string[]} seats */
function seatWords(seats) {
  return seats.map((seat) => word("seat", seat)).join(t("list.and"));
}

/** @param {Engine} engine @param {EngineList} list @param {State} state @param {Actions} act */
function buttonsView({ name, kind }, list, state, act) {
  const { removing, busy } = state.engines;
  if (removing === name) return removalView(name, act);
  const first = orderOf(list, "all")[0] === name;
  const named = t("engines.useNamed", { name: engineName(name) });
  const use = () => act.engines.use(name);
  return html`<div class="trigger-actions">
    ${first ? nothing : button(t("engines.use"), use, { sign: "play", off: Boolean(busy), named })}
    ${
      kind === "endpoint"
        ? html`<span class="trigger-more"
            >${iconButton("edit", t("engines.editNamed", { name }), () => act.engines.open(name))}
            ${iconButton("trash", t("engines.removeNamed", { name }), () => act.engines.confirm(name))}</span
          >`
        : nothing
    }
  </div>`;
}

/** @param {string} name @param {Actions} act */
function removalView(name, { engines }) {
  const asked = t("engines.confirm", { name });
  return html`<div class="trigger-actions" role="group" aria-label=${asked}>
    <span>${asked}</span>
    ${button(t("triggers.removeYes"), () => engines.remove(name), { look: "small danger" })}
    ${button(t("triggers.removeNo"), () => engines.confirm(""), { id: "engine-remove-no" })}
  </div>`;
}

// --- the form

/** @param {EngineForm} form @param {Actions} act */
function formView(form, act) {
  const { base, busy, errors } = form;
  const submit = parts.onSubmit(() => void act.engines.save());
  const off = Boolean(busy);
  return html`<form class="engine-form" id="engine-form" novalidate @submit=${submit}>
    <h3>${base ? t("engines.editNamed", { name: base.name }) : t("engines.addTitle")}</h3>
    ${
      base
        ? nothing
        : field(form, act, "name", { placeholder: "deepseek", hint: t("engines.nameHint") })
    }
    ${field(form, act, "baseUrl", { list: "engine-known", placeholder: known()[0], hint: t("engines.urlHint") })}
    ${proposals("engine-known", known())} ${keyFields(form, act)}
    ${field(form, act, "model", { list: "engine-models", hint: t("engines.modelHint") })}
    ${proposals("engine-models", form.trial?.models ?? [])}
    <div role="status" class="engine-trial">${trialView(form)}</div>
    ${parts.failureView(errors.form, "engine-form-error")}
    <div class="trigger-actions">
      <button type="submit" class="primary" ?disabled=${off}>
        ${t(busy === "save" ? "engines.saving" : "engines.save")}
      </button>
      ${button(t(form.model ? "engines.try" : "engines.listModels"), () => act.engines.tryOut(), { look: "", off })}
      ${button(t("engines.cancel"), () => act.engines.close(), { look: "" })}
    </div>
  </form>`;
}

/** @param {EngineForm} form @param {Actions} act */
function keyFields(form, act) {
  const kinds = [form.base?.key === "kept" ? "kept" : "none", "key", "variable"];
  return html`${selectField(
    {
      name: "engine-keyIs",
      label: t("engines.keyIs"),
      value: form.keyIs,
      change: (keyIs) => act.engines.edit({ keyIs: /** @type {any} */ (keyIs) }),
    },
    kinds.map((value) => ({ value, label: t(`engines.keyIs.${value}`) })),
  )}
  ${form.keyIs === "key" ? field(form, act, "key", { type: "password", hint: t("engines.keyHint") }) : nothing}
  ${form.keyIs === "variable" ? field(form, act, "keyEnv", { placeholder: "DEEPSEEK_API_KEY", hint: t("engines.envHint") }) : nothing}
  ${
    form.errors.key && form.keyIs !== "key"
      ? html`<p class="error-text" role="alert">${form.errors.key}</p>`
      : nothing
  }`;
}

/**
 * @param {EngineForm} form
 * @param {Actions} act
 * @param {"name" | "baseUrl" | "model" | "key" | "keyEnv"} name
 * @param {{type?: string, list?: string, placeholder?: string, hint?: string}} more
 */
function field(form, act, name, more) {
  return inputField({
    name: `engine-${name}`,
    label: t(`engines.field.${name}`),
    value: form[name],
    error: form.errors[name],
    change: (value) => act.engines.edit({ [name]: value }),
    required: true,
    mono: true,
    ...more,
  });
}

/** @param {string} id @param {string[]} values */
function proposals(id, values) {
  return html`<datalist id=${id}>
    ${values.map((value) => html`<option value=${value}></option>`)}
  </datalist>`;
}

/** @param {EngineForm} form  What came of the trial. */
function trialView({ busy, trial }) {
  if (busy === "trial") return parts.loading(t("engines.trying"));
  if (!trial) return nothing;
  const { models, api } = trial;
  const shown = models.slice(0, 12).join(t("list.and"));
  const more = models.length > 12 ? " …" : "";
  return html`${models.length ? html`<p>${tn("engines.models", models.length)} ${shown}${more}</p>` : nothing}
  ${
    trial.ok && api
      ? html`<p>
          ${icon("check")}${t(`engines.answers.${api}`, { seconds: trial.tookS.toFixed(1) })}
          ${trial.callsTools ? nothing : html`<q>${trial.text.slice(0, 80)}</q>`}
        </p>`
      : nothing
  }
  ${trial.ok && api && !trial.callsTools ? html`<p>${icon("alert")}${t("engines.noTools")}</p>` : nothing}`;
}

// --- who serves

/** @param {EngineList} list @param {State} state @param {Actions} act */
function orderView(list, state, act) {
  const { seat, busy } = state.engines;
  const order = orderOf(list, seat);
  const off = Boolean(busy);
  const own = seat !== "all" && order.length > 0;
  return html`<section class="engine-order" aria-labelledby="engine-order-title">
    <h3 id="engine-order-title">${t("engines.who")}</h3>
    ${selectField(
      {
        name: "engine-seat",
        label: t("engines.whoFor"),
        value: seat,
        hint: t("engines.whoHint"),
        change: (value) => act.engines.show(value),
      },
      SEATS.map((value) => ({
        value,
        label: value === "all" ? t("engines.all") : word("seat", value),
      })),
    )}
    ${
      order.length
        ? html`<ol class="engine-names">
            ${order.map((name, at) => orderRow(name, at, order, state, act))}
          </ol>`
        : html`<p class="muted">${t("engines.asRest")}</p>`
    }
    <div class="trigger-actions">
      ${othersOf(list, order).map((name) =>
        button(engineName(name), () => act.engines.order(seat, [...order, name]), { sign: "plus", off }),
      )}
      ${own ? button(t("engines.toRest"), () => act.engines.order(seat, []), { off }) : nothing}
    </div>
  </section>`;
}

/** @param {string} name @param {number} at @param {string[]} order @param {State} state @param {Actions} act */
function orderRow(name, at, order, state, act) {
  const { seat, busy } = state.engines;
  const off = Boolean(busy);
  const left = order.filter((one) => one !== name);
  const raise = () => act.engines.raise(seat, at);
  const drop = () => act.engines.order(seat, left);
  return html`<li>
    <span
      >${engineName(name)}${name === "auto" ? html` <span class="muted">${t("engines.auto")}</span>` : nothing}</span
    >
    ${at ? iconButton("up", t("engines.raise", { name: engineName(name) }), raise, { off }) : nothing}
    ${left.length ? iconButton("x", t("engines.drop", { name: engineName(name) }), drop, { off }) : nothing}
  </li>`;
}
