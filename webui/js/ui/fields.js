/** Fields of a form: each with its label, what helps to fill it, and what is wrong with it. */

import { html, live, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";

/**
 * @typedef {{value: string, label: string}} Choice
 * @typedef {{label: string, choices: Choice[]}} Group
 * @typedef {{name: string, label: string, value: any, change: (value: any) => void, error?: string,
 *   hint?: string, placeholder?: string, type?: string, list?: string, required?: boolean,
 *   mono?: boolean, choices?: (Choice | Group)[], unit?: string, changeUnit?: (unit: any) => void}}
 *   Field its name is also its id; `list`: the id of what is proposed; `mono`: code, not prose
 */

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
      >${label}${required ? html`<span class="needed" aria-hidden="true"> *</span>` : nothing}</label
    >
    ${control} ${hint ? html`<p class="hint" id="${name}-hint">${hint}</p>` : nothing}
    ${error ? html`<p class="error-text" id="${name}-error">${error}</p>` : nothing}
  </div>`;
}

/** @param {Field} field @param {string} [inputmode] */
function input(field, inputmode) {
  const { name, value, type = "text", list, placeholder, required, mono, change, error } = field;
  return html`<input
    id=${name}
    name=${name}
    dir="auto"
    type=${type}
    class=${mono ? "mono" : ""}
    list=${list ?? nothing}
    inputmode=${inputmode ?? nothing}
    autocomplete="off"
    spellcheck=${mono ? "false" : nothing}
    autocapitalize=${mono ? "off" : nothing}
    placeholder=${placeholder ?? nothing}
    aria-required=${required ? "true" : nothing}
    aria-invalid=${error ? "true" : "false"}
    aria-describedby=${describedBy(field)}
    .value=${live(value)}
    @input=${(/** @type {any} */ event) => change(event.target.value)}
  />`;
}

/** @param {Field} field */
export function inputField(field) {
  return framed(field, input(field));
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
      @input=${(/** @type {any} */ event) => change(event.target.value)}
    ></textarea>`,
  );
}

/** @param {Field} field @param {Field["choices"]} [choices] */
export function selectField(field, choices = field.choices) {
  const { name, change, error, value } = field;
  return framed(
    field,
    html`<select
      id=${name}
      name=${name}
      aria-invalid=${error ? "true" : "false"}
      aria-describedby=${describedBy(field)}
      @change=${(/** @type {any} */ event) => change(event.target.value)}
    >
      ${choices?.map((one) => choiceView(one, value))}
    </select>`,
  );
}

/** @param {Choice | Group} one @param {string} chosen @returns {unknown} */
function choiceView(one, chosen) {
  if (!("choices" in one)) {
    return html`<option value=${one.value} .selected=${live(one.value === chosen)}>
      ${one.label}
    </option>`;
  }
  if (!one.choices.length) return nothing;
  return html`<optgroup label=${one.label}>
    ${one.choices.map((choice) => choiceView(choice, chosen))}
  </optgroup>`;
}

/** @param {Field} field  A number and its unit: every 10 minutes. */
export function spanField(field) {
  const { name, label, unit = "", changeUnit } = field;
  return framed(
    field,
    html`<div class="span">
      ${input(field, "decimal")}
      <select
        id="${name}Unit"
        name="${name}Unit"
        aria-label="${label} · ${t("form.unit")}"
        @change=${(/** @type {any} */ event) => changeUnit?.(event.target.value)}
      >
        ${UNITS.map((one) => choiceView({ value: one, label: t(`unit.${one}`) }, unit))}
      </select>
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
