/** The form in which a trigger is made or edited. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { has, language, t } from "../core/i18n.js";
import { duration, ownZone } from "../core/time.js";
import { checkField, inputField, selectField, spanField, textField } from "../ui/fields.js";
import * as parts from "../ui/parts.js";
import { ago, button, moment, said, triggerTitle, word } from "../ui/parts.js";
import { BY_ID, CONDITION_KINDS, edited, fieldOf, isConditional } from "./trigger-form.js";
import { NOTIFY, rowEdited, rowField, rowsOf, TIME_KINDS } from "./trigger-form.js";
import { noTriggerView } from "./triggers.js";

/**
 * @typedef {Partial<Field> & {name: string, as?: (field: any) => unknown}} Asked a field and how it is
 *   shown; label, hint and example by words' keys
 * @typedef {{form: TriggerForm, errors: Record<string, string>, state: State, act: Actions}} Form
 */

const PROFILES = ["standard", "specialist", "deferred", "command", "reminder"];
/** Those whose text is no prompt: what it is and how it is used is said in words of their own. */
const OWN_WORDS = ["command", "reminder"];
const ROLES = ["teller", "planner"];
/** So many tasks are offered; another is named by its id. */
const OFFERED = 60;

/** @type {Record<string, Asked[]>}  What is asked of each kind of time and condition. */
const FIELDS = {
  plain: [{ name: "plain", hint: "form.plainHint", placeholder: "form.plainExample" }],
  every: [{ name: "every", as: spanField }],
  cron: [
    { name: "cron", hint: "form.cronHint", placeholder: "0 9 * * 1-5", mono: true },
    { name: "timezone", list: Intl.supportedValuesOf("timeZone"), required: false },
  ],
  at: [{ name: "at", type: "datetime-local" }],
  file_changed: [
    { name: "path", hint: "form.pathGlob", placeholder: "src/**/*.py", mono: true },
    { name: "fireOnInit", as: checkField },
  ],
  file_exists: [{ name: "path", hint: "form.pathPlain", placeholder: "out/report.pdf", mono: true }],
  llm_eval: [
    { name: "question", as: textField, hint: "form.questionHint", placeholder: "form.questionExample" },
  ],
};

/** @param {State} state @param {Actions} act */
export function triggerFormView(state, act) {
  const { route } = state;
  const key = route.view === "triggerEdit" ? route.id : "new";
  const form = state.forms[key];
  const base = form?.base ?? state.triggers[key];
  const title = base ? t("form.editTitle", { title: triggerTitle(base) }) : t("form.newTitle");
  const isNew = key === "new";
  const back = isNew ? "#/triggers" : `#/trigger/${key}`;
  return html`${parts.backLink(back, t(isNew ? "trigger.back" : "form.back"))}
  ${parts.pageView("form-page", title, form ? formView(form, state, act) : noTriggerView(state, act))}`;
}

/** @param {TriggerForm} form @param {State} state @param {Actions} act */
function formView(form, state, act) {
  const { key, preview, busy } = form;
  const wrong = preview.error ? { [fieldOf(form, preview.error.field)]: preview.error.text } : {};
  const errors = { ...wrong, ...form.errors };
  const here = { form, errors, state, act };
  const submit = parts.onSubmit(() => void act.triggers.send(key));
  return html`<form class="trigger-form" id="trigger-form" novalidate @submit=${submit}>
    ${whatFields(here)}
    <fieldset>
      <legend>${t("form.when")}</legend>
      ${kindField(here)} ${form.when === "several" ? conditionList(here) : whenFields(here)}
      ${previewView(form, state)}
    </fieldset>
    ${form.when === "at" ? nothing : rulesFields(here)}
    ${parts.failureView(errors.form, "form-error")}
    <div class="form-actions">
      ${parts.submitButton(t(form.base ? "form.save" : "form.create"), busy)}
      ${button(t("form.cancel"), () => act.triggers.cancel(key), { look: "" })}
    </div>
  </form>`;
}

/** @param {Asked} asked @param {Form} here @param {ConditionRow} [row] it belongs to */
function fieldView({ name, as = inputField, label, hint, placeholder, ...look }, here, row) {
  const { form, errors, act } = here;
  /** @type {Record<string, any>} */
  const values = row ?? form;
  const id = row ? rowField(row, name) : name;
  const edit = (/** @type {Record<string, any>} */ typed) =>
    act.triggers.change(form.key, (known) => (row ? rowEdited(known, row.key, typed) : edited(known, typed)));
  const words = (/** @type {string} */ key = "") => (has(key) ? t(key) : key || undefined);
  return as({
    ...look,
    name: id,
    label: words(label ?? `form.${name}`),
    hint: words(hint),
    placeholder: words(placeholder),
    value: values[name],
    error: errors[id],
    change: (/** @type {any} */ value) => edit({ [name]: value }),
    unit: values[`${name}Unit`],
    changeUnit: (/** @type {string} */ unit) => edit({ [`${name}Unit`]: unit }),
  });
}

/** @param {readonly string[]} values @param {(value: string) => string} words */
function choicesOf(values, words) {
  return values.map((value) => ({ value, label: words(value) }));
}

/** @param {string} kind */
const whenWords = (kind) => t(`when.${kind}`);

/** @param {Form} here */
function whatFields(here) {
  const { profile } = here.form;
  const kind = OWN_WORDS.includes(profile) ? profile : "prompt";
  const engines = Object.keys(here.state.status?.engines ?? {});
  const served = engines.filter((name) => !ROLES.includes(name));
  const profiles = [...new Set([...PROFILES, ...served, profile])];
  const choices = choicesOf(profiles, (name) => word("profile", name));
  const what = { label: `form.${kind}`, placeholder: `form.${kind}Example`, required: true };
  return html`${fieldView({ name: "prompt", as: textField, ...what }, here)}
  ${fieldView({ name: "profile", as: selectField, hint: `form.hint.${kind}`, choices }, here)}
  ${fieldView({ name: "title", placeholder: "form.titleExample" }, here)}`;
}

// --- when

/** @param {Form} here */
function kindField(here) {
  const { rows } = here.form;
  const kept = rows.length === 1 && rows[0].kept ? ["kept"] : [];
  const events = choicesOf([...CONDITION_KINDS, "several", ...kept], whenWords);
  const times = choicesOf(TIME_KINDS, whenWords);
  const choices = [{ label: t("form.times"), choices: times }, { label: t("form.events"), choices: events }];
  return fieldView({ name: "when", as: selectField, label: "form.kind", choices }, here);
}

/** @param {Form} here */
function whenFields(here) {
  const { form } = here;
  if (isConditional(form)) return rowsOf(form).map((row) => conditionFields(row, here));
  return FIELDS[form.when].map((one) => fieldView({ required: true, ...one }, here));
}

/** @param {ConditionRow} row @param {Form} here */
function conditionFields(row, here) {
  const fields = FIELDS[row.type];
  if (fields) return fields.map((one) => fieldView({ required: true, ...one }, here, row));
  if (row.type !== "kept") return taskFields(row, here);
  return html`<p class="kept">${said(row.words) || JSON.stringify(row.kept)}</p>
    <p class="hint">${t("form.keptHint")}</p>`;
}

/** @param {ConditionRow} row @param {Form} here  Chosen from those that are known, or named by its id. */
function taskFields(row, here) {
  const choices = taskChoices(row, here.state);
  const known = { label: "form.task", hint: "form.taskHint", as: selectField, choices, required: true };
  const byId = { label: "form.taskId", mono: true, required: true };
  return html`${fieldView({ name: "taskId", ...known }, here, row)}
  ${row.taskId === BY_ID ? fieldView({ name: "typedId", ...byId }, here, row) : nothing}`;
}

/** @param {ConditionRow} row @param {State} state */
function taskChoices(row, state) {
  const editing = state.route.view === "triggerEdit" ? state.route.id : "";
  const triggers = Object.values(state.triggers)
    .filter((trigger) => trigger.id !== editing)
    .map((trigger) => ({ value: trigger.id, label: triggerTitle(trigger) }));
  const tasks = Object.values(state.jobs)
    .toSorted((a, b) => b.askedAt.localeCompare(a.askedAt))
    .filter((job) => job.kind === "request")
    .slice(0, OFFERED)
    .map((job) => ({ value: job.taskId, label: `${job.title} · ${t(`state.${job.state}`)}` }));
  const known = [...triggers, ...tasks].some((one) => one.value === row.taskId);
  return [
    { value: "", label: t("form.taskChoose") },
    ...(known || ["", BY_ID].includes(row.taskId) ? [] : [{ value: row.taskId, label: row.taskId }]),
    { label: t("nav.triggers"), choices: triggers },
    { label: t("nav.tasks"), choices: tasks },
    { value: BY_ID, label: t("form.taskById") },
  ];
}

/** @param {Form} here */
function conditionList(here) {
  const { form, act } = here;
  const choices = choicesOf(["and", "or"], (join) => t(`form.join.${join}`));
  return html`${fieldView({ name: "join", as: selectField, choices }, here)}
    <ol class="conditions">
      ${repeat(form.rows, (row) => row.key, (row, at) => rowView(row, at, here))}
    </ol>
    ${button(t("form.addRow"), () => act.triggers.addRow(form.key), { sign: "plus", id: "add-row" })}`;
}

/** @param {ConditionRow} row @param {number} at @param {Form} here */
function rowView(row, at, here) {
  const label = t("form.rowTitle", { n: at + 1 });
  const choices = choicesOf([...CONDITION_KINDS, ...(row.kept ? ["kept"] : [])], whenWords);
  const remove = () => here.act.triggers.removeRow(here.form.key, row.key);
  return html`<li>
    <div class="condition" role="group" aria-label=${label}>
      <div class="condition-head">
        ${fieldView({ name: "type", as: selectField, label, choices }, here, row)}
        ${parts.iconButton("x", t("form.removeRow", { n: at + 1 }), remove)}
      </div>
      ${conditionFields(row, here)}
    </div>
  </li>`;
}

// --- what holds once it is due

/** @param {Form} here */
function rulesFields(here) {
  const { form } = here;
  const overlap = choicesOf(["skip", "queue"], (way) => t(`form.overlap.${way}`));
  const notify = choicesOf(NOTIFY, (whom) => t(`form.notify.${whom || "usual"}`));
  const told = form.profile !== "reminder";
  return html`<fieldset>
    <legend>${t("form.rules")}</legend>
    ${isConditional(form) ? conditionRules(here) : nothing}
    ${fieldView({ name: "overlap", as: selectField, choices: overlap }, here)}
    ${told ? fieldView({ name: "notify", as: selectField, choices: notify }, here) : nothing}
  </fieldset>`;
}

/** @param {Form} here */
function conditionRules(here) {
  const { cooldown, preview } = here.form;
  const usual = cooldown.trim() ? 0 : preview.answer?.cooldown;
  const span = usual ? duration(usual * 1000, language()) : "";
  const hint = span ? t("form.cooldownUsual", { span }) : "form.cooldownHint";
  const placeholder = "form.cooldownNone";
  return html`${fieldView({ name: "cooldown", as: spanField, hint, placeholder }, here)}
  ${fieldView({ name: "once", as: checkField }, here)}`;
}

// --- what the server makes of it

/** @param {TriggerForm} form @param {State} state */
function previewView({ preview, when }, { now }) {
  const { answer, asked } = preview;
  const busy = preview.state === "asking";
  const failed = preview.state === "failed" && !preview.error; // else its field says why
  const many = ["plain", "every", "cron"].includes(when);
  const look = `${asked ? "" : "is-empty"} ${many ? "is-times" : ""} ${busy ? "is-busy" : ""}`;
  const none = t(failed ? "form.previewFailed" : "form.previewWait");
  return html`<div class="preview ${look}" id="preview" role="status" aria-busy=${busy}>
    ${answer ? answerView(answer, now) : nothing}
    ${answer && !failed ? nothing : html`<p class="muted">${none}</p>`}
  </div>`;
}

/** @param {TriggerPreview} answer @param {number} now */
function answerView({ words, next, notes = [] }, now) {
  const zone = ownZone();
  const times = next.map((at) => html`<li>${moment(at)} <span class="muted">${ago(at, now)}</span></li>`);
  const coming = html`<p class="hint">${t("form.next", { zone })}</p>
    <ol class="preview-times">${times}</ol>`;
  return html`<p class="preview-words">${icon("trigger")}${said(words)}</p>
    ${times.length ? coming : nothing}
    <ul class="preview-notes">
      ${notes.map((note) => html`<li>${icon("info")}<span>${said(note)}</span></li>`)}
    </ul>`;
}
