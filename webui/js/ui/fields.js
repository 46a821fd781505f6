/** Fields of a form: each with its label, what helps to fill it, and what is wrong with it. */

import { html, live, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { UNIT_NAMES } from "../pages/trigger-form.js";

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
  const { name, value, type = "text", list, placeholder, required, mono, change, error } = field;
  return framed(
    field,
    html`<input
      id=${name}
      name=${name}
      dir="auto"
      type=${type}
      class=${mono ? "mono" : ""}
      list=${list ?? nothing}
      autocomplete="off"
      spellcheck=${mono ? "false" : nothing}
      autocapitalize=${mono ? "off" : nothing}
      placeholder=${placeholder ?? nothing}
      aria-required=${required ? "true" : nothing}
      aria-invalid=${error ? "true" : "false"}
      aria-describedby=${describedBy(field)}
      .value=${live(value)}
      @input=${(/** @type {any} */ event) => change(event.target.value)}
    />`,
  );
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

/** @param {Field} field @param {(Choice | Group)[]} choices */
export function selectField(field, choices) {
  const { name, change, error } = field;
  return framed(
    field,
    html`<select
      id=${name}
      name=${name}
      aria-invalid=${error ? "true" : "false"}
      aria-describedby=${describedBy(field)}
      @change=${(/** @type {any} */ event) => change(event.target.value)}
    >
      ${choices.map((one) => choiceView(one, field.value))}
    </select>`,
  );
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

/**
 * A number and its unit: every 10 minutes.
 *
 * @param {Field} field
 * @param {Unit} unit
 * @param {(unit: Unit) => void} changeUnit
 */
export function spanField(field, unit, changeUnit) {
  const { name, value, placeholder, change, error, label } = field;
  return framed(
    field,
    html`<div class="span">
      <input
        id=${name}
        name=${name}
        inputmode="decimal"
        autocomplete="off"
        placeholder=${placeholder ?? nothing}
        aria-invalid=${error ? "true" : "false"}
        aria-describedby=${describedBy(field)}
        .value=${live(value)}
        @input=${(/** @type {any} */ event) => change(event.target.value)}
      />
      <select
        id="${name}Unit"
        name="${name}Unit"
        aria-label="${label} · ${t("form.unit")}"
        @change=${(/** @type {any} */ event) => changeUnit(event.target.value)}
      >
        ${UNIT_NAMES.map((one) => choiceView({ value: one, label: t(`unit.${one}`) }, unit))}
      </select>
    </div>`,
  );
}

/**
 * @param {string} name
 * @param {string} label
 * @param {boolean} checked
 * @param {(checked: boolean) => void} change
 */
export function checkField(name, label, checked, change) {
  return html`<label class="check">
    <input
      type="checkbox"
      id=${name}
      name=${name}
      .checked=${live(checked)}
      @change=${(/** @type {any} */ event) => change(event.target.checked)}
    /><span>${label}</span>
  </label>`;
}
