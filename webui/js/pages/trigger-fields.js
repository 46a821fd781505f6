/** The form in which a trigger is made or edited. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { duration } from "../core/time.js";
import { checkField, inputField, selectField, spanField, textField } from "../ui/fields.js";
import * as parts from "../ui/parts.js";
import { ago, button, moment, said, triggerTitle, word } from "../ui/parts.js";
import { CONDITION_KINDS, NOTIFY, rowField, TIME_KINDS } from "./trigger-form.js";
import { fieldOf, isConditional } from "./trigger-form.js";
import { noTriggerView } from "./triggers.js";

/**
 * @typedef {Record<string, string>} Errors by field
 * @typedef {(values: Partial<TriggerForm>) => void} Edit
 * @typedef {(values: Partial<ConditionRow>) => void} EditRow
 */

const PROFILES = ["standard", "specialist", "deferred", "command", "reminder"];
/** Those whose text is no prompt: what it is and how it is used is said in words of their own. */
const OWN_WORDS = ["command", "reminder"];
const ROLES = ["teller", "planner"];
/** So many tasks are offered; another is named by its id. */
const OFFERED = 60;
const BY_ID = "\0by-id";

/** @param {State} state @param {Actions} act */
export function triggerFormView(state, act) {
  const { route } = state;
  const key = route.view === "triggerEdit" ? route.id : "new";
  const form = state.forms[key];
  const base = form?.base ?? state.triggers[key];
  const title = base ? t("form.editTitle", { title: triggerTitle(base) }) : t("form.newTitle");
  return html`${
      key === "new"
        ? parts.backLink("#/triggers", t("trigger.back"))
        : parts.backLink(`#/trigger/${key}`, t("form.back"))
    }
    <div class="form-page">
      <h2 tabindex="-1" data-focus>${title}</h2>
      ${form ? formView(form, state, act) : noTriggerView(state, act)}
    </div>`;
}

/** @param {TriggerForm} form @param {State} state @param {Actions} act */
function formView(form, state, act) {
  const { key, preview, busy } = form;
  const wrong = preview.error ? { [fieldOf(form, preview.error.field)]: preview.error.text } : {};
  const errors = { ...wrong, ...form.errors };
  /** @type {Edit} */
  const edit = (values) => act.forms.edit(key, values);
  const submit = parts.onSubmit(() => void act.forms.send(key));
  return html`<form class="trigger-form" id="trigger-form" novalidate @submit=${submit}>
    ${whatFields(form, errors, state, edit)}
    <fieldset>
      <legend>${t("form.when")}</legend>
      ${kindField(form, errors, edit)} ${whenFields(form, errors, state, act)}
      ${previewView(form, state)}
    </fieldset>
    ${form.when === "at" ? nothing : rulesFields(form, errors, edit)}
    ${parts.failureView(errors.form, "form-error")}
    <div class="form-actions">
      <button type="submit" class="primary" ?disabled=${busy}>
        ${busy ? html`<span class="spinner"></span>` : nothing}
        ${t(form.base ? "form.save" : "form.create")}
      </button>
      ${button(t("form.cancel"), () => act.forms.cancel(key), { look: "" })}
    </div>
  </form>`;
}

/** @param {TriggerForm} form @param {Errors} errors @param {State} state @param {Edit} edit */
function whatFields(form, errors, state, edit) {
  const { profile } = form;
  const kind = OWN_WORDS.includes(profile) ? profile : "prompt";
  const served = Object.keys(state.status?.engines ?? {}).filter((name) => !ROLES.includes(name));
  const profiles = [...new Set([...PROFILES, ...served, profile])];
  return html`${textField({
    name: "prompt",
    label: t(`form.${kind}`),
    placeholder: t(`form.${kind}Example`),
    value: form.prompt,
    error: errors.prompt,
    required: true,
    change: (prompt) => edit({ prompt }),
  })}
  ${selectField(
    {
      name: "profile",
      label: t("form.profile"),
      hint: t(`form.hint.${kind}`),
      value: profile,
      error: errors.profile,
      change: (chosen) => edit({ profile: chosen }),
    },
    profiles.map((name) => ({ value: name, label: word("profile", name) })),
  )}
  ${inputField({
    name: "title",
    label: t("form.title"),
    placeholder: t("form.titleExample"),
    value: form.title,
    error: errors.title,
    change: (title) => edit({ title }),
  })}`;
}

// --- when

/** @param {TriggerForm} form @param {Errors} errors @param {Edit} edit */
function kindField(form, errors, edit) {
  const named = (/** @type {string} */ name) => ({ value: name, label: t(`when.${name}`) });
  const kept = form.single.kept ? ["kept"] : [];
  return selectField(
    {
      name: "when",
      label: t("form.kind"),
      value: form.when,
      error: errors.when,
      change: (when) => edit({ when: /** @type {When} */ (when) }),
    },
    [
      { label: t("form.times"), choices: TIME_KINDS.map(named) },
      { label: t("form.events"), choices: [...CONDITION_KINDS, "several", ...kept].map(named) },
    ],
  );
}

/** @param {TriggerForm} form @param {Errors} errors @param {State} state @param {Actions} act */
function whenFields(form, errors, state, act) {
  if (form.when === "several") return conditionList(form, errors, state, act);
  if (!isConditional(form)) {
    return timeFields(form, errors, (values) => act.forms.edit(form.key, values));
  }
  /** @type {EditRow} */
  const edit = (values) => act.forms.editRow(form.key, "single", values);
  return conditionFields(form.single, errors, state, edit);
}

/** @param {TriggerForm} form @param {Errors} errors @param {Edit} edit */
function timeFields(form, errors, edit) {
  const field = (/** @type {"plain" | "every" | "at" | "cron" | "timezone"} */ name) => ({
    name,
    label: t(`form.${name}`),
    value: form[name],
    error: errors[name],
    required: name !== "timezone",
    change: (/** @type {string} */ value) => edit({ [name]: value }),
  });
  switch (form.when) {
    case "plain": {
      const more = { hint: t("form.plainHint"), placeholder: t("form.plainExample") };
      return inputField({ ...field("plain"), ...more });
    }
    case "every":
      return spanField(field("every"), form.everyUnit, (everyUnit) => edit({ everyUnit }));
    case "at":
      return inputField({ ...field("at"), type: "datetime-local" });
    default: {
      const more = { hint: t("form.cronHint"), placeholder: "0 9 * * 1-5", mono: true };
      return html`${inputField({ ...field("cron"), ...more })}
        ${inputField({ ...field("timezone"), list: "zones" })}
        <datalist id="zones">
          ${Intl.supportedValuesOf("timeZone").map((zone) => html`<option value=${zone}></option>`)}
        </datalist>`;
    }
  }
}

/** @param {ConditionRow} row @param {Errors} errors @param {State} state @param {EditRow} edit */
function conditionFields(row, errors, state, edit) {
  const field = (/** @type {"path" | "question" | "taskId"} */ part) => ({
    name: rowField(row, part),
    value: row[part],
    error: errors[rowField(row, part)],
    required: true,
    change: (/** @type {string} */ value) => edit({ [part]: value }),
  });
  switch (row.type) {
    case "file_changed":
    case "file_exists":
      return fileFields(row, field("path"), edit);
    case "task":
      return taskFields(row, field("taskId"), state, edit);
    case "llm_eval":
      return textField({
        ...field("question"),
        label: t("form.question"),
        hint: t("form.questionHint"),
        placeholder: t("form.questionExample"),
      });
    default:
      return html`<p class="kept">${said(row.words) || JSON.stringify(row.kept)}</p>
        <p class="hint">${t("form.keptHint")}</p>`;
  }
}

/**
 * One template for both, so that the field someone types in stays when the type changes.
 *
 * @param {ConditionRow} row
 * @param {Omit<Field, "label">} field
 * @param {EditRow} edit
 */
function fileFields(row, field, edit) {
  const watches = row.type === "file_changed";
  const init = (/** @type {boolean} */ fireOnInit) => edit({ fireOnInit });
  return html`${inputField({
    ...field,
    label: t("form.path"),
    hint: t(watches ? "form.pathGlob" : "form.pathPlain"),
    placeholder: watches ? "src/**/*.py" : "out/report.pdf",
    mono: true,
  })}
  ${
    watches
      ? checkField(rowField(row, "fireOnInit"), t("form.fireOnInit"), row.fireOnInit, init)
      : nothing
  }`;
}

/**
 * @param {ConditionRow} row
 * @param {Omit<Field, "label">} field
 * @param {State} state
 * @param {EditRow} edit
 */
function taskFields(row, field, state, edit) {
  const { byId } = row;
  return html`${selectField(
    {
      ...field,
      name: byId ? rowField(row, "known") : field.name,
      label: t("form.task"),
      hint: byId ? undefined : t("form.taskHint"),
      value: byId ? BY_ID : row.taskId,
      error: byId ? undefined : field.error,
      change: (taskId) => edit(taskId === BY_ID ? { byId: true } : { byId: false, taskId }),
    },
    taskChoices(row, state),
  )}
  ${byId ? inputField({ ...field, label: t("form.taskId"), mono: true }) : nothing}
  ${selectField(
    {
      name: rowField(row, "outcome"),
      label: t("form.outcome"),
      value: row.outcome,
      change: (outcome) => edit({ outcome: outcome === "failed" ? "failed" : "done" }),
    },
    ["done", "failed"].map((value) => ({ value, label: t(`form.outcome.${value}`) })),
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

/** @param {TriggerForm} form @param {Errors} errors @param {State} state @param {Actions} act */
function conditionList(form, errors, state, act) {
  const { key, rows } = form;
  return html`${selectField(
      {
        name: "join",
        label: t("form.join"),
        value: form.join,
        change: (join) => act.forms.edit(key, { join: join === "or" ? "or" : "and" }),
      },
      ["and", "or"].map((value) => ({ value, label: t(`form.join.${value}`) })),
    )}
    <ol class="conditions">
      ${repeat(
        rows,
        (/** @type {ConditionRow} */ row) => row.key,
        (/** @type {ConditionRow} */ row, /** @type {number} */ at) =>
          rowView(row, at, key, errors, state, act),
      )}
    </ol>
    ${button(t("form.addRow"), () => act.forms.addRow(key), { sign: "plus", id: "add-row" })}`;
}

/**
 * @param {ConditionRow} row
 * @param {number} at
 * @param {string} key of the form
 * @param {Errors} errors
 * @param {State} state
 * @param {Actions} act
 */
function rowView(row, at, key, errors, state, act) {
  /** @type {EditRow} */
  const edit = (values) => act.forms.editRow(key, row.key, values);
  const title = t("form.rowTitle", { n: at + 1 });
  const kinds = [...CONDITION_KINDS, ...(row.kept ? ["kept"] : [])];
  return html`<li>
    <div class="condition" role="group" aria-label=${title}>
      <div class="condition-head">
        ${selectField(
          {
            name: rowField(row, "type"),
            label: title,
            value: row.type,
            change: (type) => edit({ type: /** @type {RowType} */ (type) }),
          },
          kinds.map((kind) => ({ value: kind, label: t(`when.${kind}`) })),
        )}
        ${parts.iconButton("x", t("form.removeRow", { n: at + 1 }), () => act.forms.removeRow(key, row.key))}
      </div>
      ${conditionFields(row, errors, state, edit)}
    </div>
  </li>`;
}

// --- what holds once it is due

/** @param {TriggerForm} form @param {Errors} errors @param {Edit} edit */
function rulesFields(form, errors, edit) {
  return html`<fieldset>
    <legend>${t("form.rules")}</legend>
    ${isConditional(form) ? conditionRules(form, errors, edit) : nothing}
    ${selectField(
      {
        name: "overlap",
        label: t("form.overlap"),
        value: form.overlap,
        error: errors.overlap,
        change: (overlap) => edit({ overlap: overlap === "queue" ? "queue" : "skip" }),
      },
      ["skip", "queue"].map((value) => ({ value, label: t(`form.overlap.${value}`) })),
    )}
    ${
      form.profile === "reminder"
        ? nothing
        : selectField(
            {
              name: "notify",
              label: t("form.notify"),
              value: form.notify,
              error: errors.notify,
              change: (notify) => edit({ notify }),
            },
            NOTIFY.map((value) => ({ value, label: t(`form.notify.${value || "usual"}`) })),
          )
    }
  </fieldset>`;
}

/** @param {TriggerForm} form @param {Errors} errors @param {Edit} edit */
function conditionRules(form, errors, edit) {
  const usual = form.cooldown.trim() ? 0 : form.preview.answer?.cooldown;
  return html`${spanField(
    {
      name: "cooldown",
      label: t("form.cooldown"),
      hint: usual
        ? t("form.cooldownUsual", { span: duration(usual * 1000, language()) })
        : t("form.cooldownHint"),
      placeholder: t("form.cooldownNone"),
      value: form.cooldown,
      error: errors.cooldown,
      change: (cooldown) => edit({ cooldown }),
    },
    form.cooldownUnit,
    (cooldownUnit) => edit({ cooldownUnit }),
  )}
  ${checkField("once", t("form.once"), form.once, (once) => edit({ once }))}`;
}

// --- what the server makes of it

/** @param {TriggerForm} form @param {State} state */
function previewView({ preview, when }, state) {
  const { answer, asked } = preview;
  const busy = preview.state === "asking";
  const failed = preview.state === "failed" && !preview.error; // else its field says why
  const many = ["plain", "every", "cron"].includes(when);
  const look = `${asked ? "" : "is-empty"} ${many ? "is-times" : ""} ${busy ? "is-busy" : ""}`;
  return html`<div
    class="preview ${look}"
    id="preview"
    role="status"
    aria-busy=${busy ? "true" : "false"}
  >
    ${answer ? answerView(answer, state) : nothing}
    ${failed ? html`<p class="muted">${t("form.previewFailed")}</p>` : nothing}
    ${answer || failed ? nothing : html`<p class="muted">${t("form.previewWait")}</p>`}
  </div>`;
}

/** @param {TriggerPreview} answer @param {State} state */
function answerView({ words, next, notes }, { now }) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return html`<p class="preview-words">${icon("trigger")}${said(words)}</p>
    ${
      next.length
        ? html`<p class="hint">${t("form.next", { zone })}</p>
            <ol class="preview-times">
              ${next.map(
                (at) => html`<li>${moment(at)} <span class="muted">${ago(at, now)}</span></li>`,
              )}
            </ol>`
        : nothing
    }
    ${
      notes?.length
        ? html`<ul class="preview-notes">
            ${notes.map((note) => html`<li>${icon("info")}<span>${said(note)}</span></li>`)}
          </ul>`
        : nothing
    }`;
}
