/** Fields of a form: each with its label, what helps to fill it, and what is wrong with it. */

import { html, live, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { typing } from "./parts.js";

const UNITS = ["second", "minute", "hour", "day"];

/** @param {Field} field */
function describedBy({ name, hint, error }) {
  const ids = [hint ? `${name}-hint` : "", error ? `${name}-error` : ""].filter(Boolean);
  return ids.length ? ids.join(" ") : nothing;
}

/** @param {Field} field @param {unknown} control */
function framed({ name, label, hint, error, required }, control) {
  return html`<div class="field ${error ? "is-wrong" : ""}">
    <label for=${name}
      >${label}${
        required ? html`<span class="needed" aria-hidden="true"> *</span>` : nothing
      }</label
    >
    ${control} ${hint ? html`<p class="hint" id="${name}-hint">${hint}</p>` : nothing}
    ${error ? html`<p class="error-text" id="${name}-error">${error}</p>` : nothing}
  </div>`;
}

/** @param {Field} field */
export function inputField(field) {
  return framed(field, inputControl(field));
}

/** @param {Field} field */
function inputControl(field) {
  const { name, value, type = "text", inputmode, list, placeholder, required, mono, error } = field;
  return html`<input
    id=${name}
    name=${name}
    dir="auto"
    type=${type}
    class=${mono ? "mono" : ""}
    inputmode=${inputmode ?? nothing}
    list=${list ? `${name}-list` : nothing}
    autocomplete="off"
    spellcheck=${mono ? "false" : nothing}
    autocapitalize=${mono ? "off" : nothing}
    placeholder=${placeholder ?? nothing}
    aria-required=${required ? "true" : nothing}
    aria-invalid=${error ? "true" : "false"}
    aria-describedby=${describedBy(field)}
    .value=${live(value)}
    @input=${typing(field.change)}
  />
  ${list ? proposals(`${name}-list`, list) : nothing}`;
}

/** @param {string} id @param {string[]} values */
function proposals(id, values) {
  return html`<datalist id=${id}>${values.map((value) => html`<option value=${value}></option>`)}</datalist>`;
}

/** @param {Field} field */
export function textField(field) {
  const { name, value, placeholder, required, change, error } = field;
  return framed(
    field,
    html`<textarea
      id=${name}
      name=${name}
      dir="auto"
      rows="3"
      placeholder=${placeholder ?? nothing}
      aria-required=${required ? "true" : nothing}
      aria-invalid=${error ? "true" : "false"}
      aria-describedby=${describedBy(field)}
      .value=${live(value)}
      @input=${typing(change)}
    ></textarea>`,
  );
}

/** @param {Field} field @param {(Choice | Group)[]} [choices] */
export function selectField(field, choices = field.choices ?? []) {
  return framed(field, selectControl(field, choices));
}

/** @param {Field} field @param {(Choice | Group)[]} choices @param {string} [label]  Where none stands by it. */
function selectControl(field, choices, label) {
  return html`<select
    id=${field.name}
    name=${field.name}
    aria-label=${label ?? nothing}
    aria-invalid=${field.error ? "true" : "false"}
    aria-describedby=${describedBy(field)}
    @change=${typing(field.change)}
  >
    ${choices.map((one) => choiceView(one, field.value))}
  </select>`;
}

/** @param {Choice | Group} one @param {string} chosen @returns {unknown} */
function choiceView(one, chosen) {
  if ("choices" in one) {
    return one.choices.length
      ? html`<optgroup label=${one.label}>
          ${one.choices.map((choice) => choiceView(choice, chosen))}
        </optgroup>`
      : nothing;
  }
  return html`<option value=${one.value} .selected=${live(one.value === chosen)}>
    ${one.label}
  </option>`;
}

/** @param {Field & {unit: string, changeUnit: (unit: any) => void}} field  A number and its unit: every 10 minutes. */
export function spanField({ unit, changeUnit, ...field }) {
  const label = `${field.label} · ${t("form.unit")}`;
  const units = UNITS.map((one) => ({ value: one, label: t(`unit.${one}`) }));
  const unitField = { name: `${field.name}Unit`, label, value: unit, change: changeUnit };
  return framed(
    field,
    html`<div class="span">
      ${inputControl({ ...field, inputmode: "decimal" })} ${selectControl(unitField, units, label)}
    </div>`,
  );
}

/** @param {Field} field */
export function checkField({ name, label, value, change }) {
  return html`<label class="check">
    <input
      type="checkbox"
      id=${name}
      name=${name}
      .checked=${live(value)}
      @change=${(/** @type {any} */ event) => change(event.target.checked)}
    /><span>${label}</span>
  </label>`;
}
