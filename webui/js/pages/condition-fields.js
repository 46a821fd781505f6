/** One condition as fields, and several of them as a list. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { t } from "../core/i18n.js";
import { CONDITION_KINDS, rowField } from "./trigger-form.js";
import { checkField, inputField, selectField, textField } from "../ui/fields.js";
import { said, taskTitle, triggerTitle } from "../ui/parts.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").TriggerForm} TriggerForm
 * @typedef {import("../core/state-types.js").ConditionRow} ConditionRow
 * @typedef {import("../core/actions.js").Actions} Actions
 * @typedef {(values: Partial<ConditionRow>) => void} Edit
 */

/** So many tasks are offered; another is named by its id. */
const OFFERED = 60;
const BY_ID = "\0by-id";

/**
 * The fields of one condition, whatever its type.
 *
 * @param {ConditionRow} row
 * @param {Record<string, string>} errors by field
 * @param {State} state
 * @param {Edit} edit
 */
export function conditionFields(row, errors, state, edit) {
  switch (row.type) {
    case "file_changed":
    case "file_exists":
      return fileFields(row, errors, edit);
    case "task":
      return taskFields(row, errors, state, edit);
    case "llm_eval":
      return questionField(row, errors, edit);
    default:
      return html`<p class="kept">${said(row.words) || JSON.stringify(row.kept)}</p>
        <p class="hint">${t("form.keptHint")}</p>`;
  }
}

/**
 * One template for both, so that the field someone types in stays when the type changes.
 *
 * @param {ConditionRow} row
 * @param {Record<string, string>} errors
 * @param {Edit} edit
 */
function fileFields(row, errors, edit) {
  const init = (/** @type {boolean} */ fireOnInit) => edit({ fireOnInit });
  const name = rowField(row, "fireOnInit");
  return html`${pathField(row, errors, edit)}
  ${
    row.type === "file_changed"
      ? checkField(name, t("form.fireOnInit"), row.fireOnInit, init)
      : nothing
  }`;
}

/** @param {ConditionRow} row @param {Record<string, string>} errors @param {Edit} edit */
function pathField(row, errors, edit) {
  const name = rowField(row, "path");
  return inputField({
    name,
    label: t("form.path"),
    hint: t(row.type === "file_changed" ? "form.pathGlob" : "form.pathPlain"),
    placeholder: row.type === "file_changed" ? "src/**/*.py" : "out/report.pdf",
    value: row.path,
    error: errors[name],
    mono: true,
    required: true,
    change: (path) => edit({ path }),
  });
}

/** @param {ConditionRow} row @param {Record<string, string>} errors @param {Edit} edit */
function questionField(row, errors, edit) {
  const name = rowField(row, "question");
  return textField({
    name,
    label: t("form.question"),
    hint: t("form.questionHint"),
    placeholder: t("form.questionExample"),
    value: row.question,
    error: errors[name],
    required: true,
    change: (question) => edit({ question }),
  });
}

/**
 * @param {ConditionRow} row
 * @param {Record<string, string>} errors
 * @param {State} state
 * @param {Edit} edit
 */
function taskFields(row, errors, state, edit) {
  const name = rowField(row, "taskId");
  const chosen = row.byId ? BY_ID : row.taskId;
  const choose = (/** @type {string} */ value) =>
    edit(value === BY_ID ? { byId: true } : { byId: false, taskId: value });
  return html`${selectField(
    {
      name: row.byId ? rowField(row, "known") : name,
      label: t("form.task"),
      hint: row.byId ? undefined : t("form.taskHint"),
      value: chosen,
      error: row.byId ? undefined : errors[name],
      required: true,
      change: choose,
    },
    taskChoices(row, state),
  )}
  ${
    row.byId
      ? inputField({
          name,
          label: t("form.taskId"),
          value: row.taskId,
          error: errors[name],
          mono: true,
          required: true,
          change: (taskId) => edit({ taskId }),
        })
      : nothing
  }
  ${selectField(
    {
      name: rowField(row, "outcome"),
      label: t("form.outcome"),
      value: row.outcome,
      change: (outcome) => edit({ outcome: outcome === "failed" ? "failed" : "done" }),
    },
    [
      { value: "done", label: t("form.outcome.done") },
      { value: "failed", label: t("form.outcome.failed") },
    ],
  )}`;
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
    ...(known || row.byId || !row.taskId ? [] : [{ value: row.taskId, label: row.taskId }]),
    { label: t("nav.triggers"), choices: triggers },
    { label: t("nav.tasks"), choices: tasks },
    { value: BY_ID, label: t("form.taskById") },
  ];
}

/** @param {TriggerForm} form @param {Record<string, string>} errors @param {State} state @param {Actions} act */
export function conditionList(form, errors, state, act) {
  return html`${selectField(
      {
        name: "join",
        label: t("form.join"),
        value: form.join,
        change: (join) => act.forms.edit(form.key, { join: join === "or" ? "or" : "and" }),
      },
      [
        { value: "and", label: t("form.join.and") },
        { value: "or", label: t("form.join.or") },
      ],
    )}
    <ol class="conditions">
      ${repeat(
        form.rows,
        (row) => row.key,
        (row, at) => rowView(row, at, form, errors, state, act),
      )}
    </ol>
    <button type="button" class="small" id="add-row" @click=${() => act.forms.addRow(form.key)}>
      ${icon("plus")}${t("form.addRow")}
    </button>`;
}

/**
 * @param {ConditionRow} row
 * @param {number} at
 * @param {TriggerForm} form
 * @param {Record<string, string>} errors
 * @param {State} state
 * @param {Actions} act
 */
function rowView(row, at, form, errors, state, act) {
  /** @type {Edit} */
  const edit = (values) => act.forms.editRow(form.key, row.key, values);
  const title = t("form.rowTitle", { n: at + 1 });
  const kinds = CONDITION_KINDS.map((kind) => ({ value: kind, label: t(`when.${kind}`) }));
  if (row.kept) kinds.push({ value: /** @type {any} */ ("kept"), label: t("when.kept") });
  return html`<li>
    <div class="condition" role="group" aria-label=${title}>
      <div class="condition-head">
        ${selectField(
          {
            name: rowField(row, "type"),
            label: title,
            value: row.type,
            change: (type) => edit({ type: /** @type {ConditionRow["type"]} */ (type) }),
          },
          kinds,
        )}
        <button
          type="button"
          class="icon-button small"
          aria-label=${t("form.removeRow", { n: at + 1 })}
          title=${t("form.removeRow", { n: at + 1 })}
          @click=${() => act.forms.removeRow(form.key, row.key)}
        >
          ${icon("x")}
        </button>
      </div>
      ${conditionFields(row, errors, state, edit)}
    </div>
  </li>`;
}
