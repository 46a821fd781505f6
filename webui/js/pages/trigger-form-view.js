/** The form in which a trigger is made or edited. */

import { html, icon, nothing } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { CONDITION_KINDS, NOTIFY, TIME_KINDS, fieldOf, isConditional } from "./trigger-form.js";
import { duration } from "../core/time.js";
import { conditionFields, conditionList } from "./condition-fields.js";
import { checkField, inputField, selectField, spanField, textField } from "../ui/fields.js";
import { ago, emptyState, loading, moment, said, triggerTitle, word } from "../ui/parts.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").TriggerForm} TriggerForm
 * @typedef {import("../core/state-types.js").When} When
 * @typedef {import("../core/actions.js").Actions} Actions
 * @typedef {Record<string, string>} Errors
 */

const PROFILES = ["standard", "specialist", "deferred", "command", "reminder"];
/** Those whose text is no prompt: what it is and how it is used is said in words of their own. */
const OWN_WORDS = ["command", "reminder"];
const ROLES = ["teller", "planner"];

/** @param {State} state @param {Actions} act */
export function triggerFormView(state, act) {
  const { route } = state;
  const key = route.view === "triggerEdit" ? route.id : "new";
  const up = key === "new" ? "#/triggers" : `#/trigger/${key}`;
  const label = t(key === "new" ? "trigger.back" : "form.back");
  const back = html`<a class="back" href=${up}>${icon("back")}${label}</a>`;
  const form = state.forms[key];
  return html`${back}
    <div class="form-page">
      <h2 tabindex="-1" data-focus>${titleOf(key, state)}</h2>
      ${form ? formView(form, state, act) : waitingView(state, act)}
    </div>`;
}

/** @param {string} key @param {State} state */
function titleOf(key, state) {
  const base = state.forms[key]?.base ?? state.triggers[key];
  return base ? t("form.editTitle", { title: triggerTitle(base) }) : t("form.newTitle");
}

/** @param {State} state @param {Actions} act  Nothing can be edited yet, or at all. */
function waitingView(state, act) {
  const load = state.triggerDetail?.load;
  if (load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.reloadTrigger()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), t("load.unreachable"), again);
  }
  const gone = load === "missing" || (load === "ready" && !state.triggerDetail?.trigger);
  return gone
    ? emptyState(t("trigger.missing"), t("trigger.missingText"))
    : loading(t("trigger.loading"));
}

/** @param {TriggerForm} form @param {State} state @param {Actions} act */
function formView(form, state, act) {
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void act.forms.send(form.key);
  };
  const errors = shownErrors(form);
  return html`<form class="trigger-form" id="trigger-form" novalidate @submit=${submit}>
    ${whatFields(form, errors, state, act)}
    <fieldset>
      <legend>${t("form.when")}</legend>
      ${whenField(form, errors, act)} ${whenFields(form, errors, state, act)}
      ${previewView(form, state)}
    </fieldset>
    ${rulesFields(form, errors, act)} ${errorView(errors)} ${buttonsView(form, act)}
  </form>`;
}

/** @param {TriggerForm} form @returns {Errors} what was said on sending, and of what stands there now */
function shownErrors(form) {
  const { error } = form.preview;
  return error ? { [fieldOf(form, error.field)]: error.text, ...form.errors } : form.errors;
}

/** @param {TriggerForm} form @param {Errors} errors @param {State} state @param {Actions} act */
function whatFields(form, errors, state, act) {
  const kind = OWN_WORDS.includes(form.profile) ? form.profile : "prompt";
  return html`${textField({
    name: "prompt",
    label: t(`form.${kind}`),
    placeholder: t(`form.${kind}Example`),
    value: form.prompt,
    error: errors.prompt,
    required: true,
    change: (prompt) => act.forms.edit(form.key, { prompt }),
  })}
  ${selectField(
    {
      name: "profile",
      label: t("form.profile"),
      hint: t(`form.hint.${kind}`),
      value: form.profile,
      error: errors.profile,
      change: (profile) => act.forms.edit(form.key, { profile }),
    },
    profiles(form, state).map((name) => ({ value: name, label: word("profile", name) })),
  )}
  ${inputField({
    name: "title",
    label: t("form.title"),
    placeholder: t("form.titleExample"),
    value: form.title,
    error: errors.title,
    change: (title) => act.forms.edit(form.key, { title }),
  })}`;
}

/** @param {TriggerForm} form @param {State} state */
function profiles(form, state) {
  const served = Object.keys(state.status?.engines ?? {}).filter((name) => !ROLES.includes(name));
  return [...new Set([...PROFILES, ...served, form.profile])];
}

/** @param {TriggerForm} form @param {Errors} errors @param {Actions} act */
function whenField(form, errors, act) {
  const named = (/** @type {string} */ name) => ({ value: name, label: t(`when.${name}`) });
  const kept = form.single.kept ? ["kept"] : [];
  return selectField(
    {
      name: "when",
      label: t("form.kind"),
      value: form.when,
      error: errors.when,
      change: (when) => act.forms.edit(form.key, { when: /** @type {When} */ (when) }),
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
  if (isConditional(form)) {
    return conditionFields(form.single, errors, state, (values) =>
      act.forms.editRow(form.key, "single", values),
    );
  }
  return timeFields(form, errors, act);
}

/** @param {TriggerForm} form @param {Errors} errors @param {Actions} act */
function timeFields(form, errors, act) {
  const edit = (/** @type {Partial<TriggerForm>} */ values) => act.forms.edit(form.key, values);
  switch (form.when) {
    case "plain":
      return inputField({
        name: "plain",
        label: t("form.plain"),
        hint: t("form.plainHint"),
        placeholder: t("form.plainExample"),
        value: form.plain,
        error: errors.plain,
        required: true,
        change: (plain) => edit({ plain }),
      });
    case "every":
      return spanField(
        {
          name: "every",
          label: t("form.every"),
          value: form.every,
          error: errors.every,
          required: true,
          change: (every) => edit({ every }),
        },
        form.everyUnit,
        (everyUnit) => edit({ everyUnit }),
      );
    case "at":
      return inputField({
        name: "at",
        label: t("form.at"),
        type: "datetime-local",
        value: form.at,
        error: errors.at,
        required: true,
        change: (at) => edit({ at }),
      });
    default:
      return cronFields(form, errors, edit);
  }
}

/** @param {TriggerForm} form @param {Errors} errors @param {(values: Partial<TriggerForm>) => void} edit */
function cronFields(form, errors, edit) {
  return html`${inputField({
      name: "cron",
      label: t("form.cron"),
      hint: t("form.cronHint"),
      placeholder: "0 9 * * 1-5",
      value: form.cron,
      error: errors.cron,
      mono: true,
      required: true,
      change: (cron) => edit({ cron }),
    })}
    ${inputField({
      name: "timezone",
      label: t("form.timezone"),
      list: "zones",
      value: form.timezone,
      error: errors.timezone,
      change: (timezone) => edit({ timezone }),
    })}
    <datalist id="zones">
      ${Intl.supportedValuesOf("timeZone").map((zone) => html`<option value=${zone}></option>`)}
    </datalist>`;
}

/** @param {TriggerForm} form @param {Errors} errors @param {Actions} act  What holds once it is due. */
function rulesFields(form, errors, act) {
  if (form.when === "at") return nothing;
  const edit = (/** @type {Partial<TriggerForm>} */ values) => act.forms.edit(form.key, values);
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
      [
        { value: "skip", label: t("form.overlap.skip") },
        { value: "queue", label: t("form.overlap.queue") },
      ],
    )}
    ${form.profile === "reminder" ? nothing : notifyField(form, errors, edit)}
  </fieldset>`;
}

/** @param {TriggerForm} form @param {Errors} errors @param {(values: Partial<TriggerForm>) => void} edit */
function notifyField(form, errors, edit) {
  return selectField(
    {
      name: "notify",
      label: t("form.notify"),
      value: form.notify,
      error: errors.notify,
      change: (notify) => edit({ notify }),
    },
    NOTIFY.map((value) => ({ value, label: t(`form.notify.${value || "usual"}`) })),
  );
}

/** @param {TriggerForm} form @param {Errors} errors @param {(values: Partial<TriggerForm>) => void} edit */
function conditionRules(form, errors, edit) {
  const usual = form.preview.answer?.cooldown;
  return html`${spanField(
    {
      name: "cooldown",
      label: t("form.cooldown"),
      hint:
        usual && !form.cooldown.trim()
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

/** @param {TriggerForm} form @param {State} state  What the server makes of it. */
function previewView(form, state) {
  const { preview } = form;
  const { answer } = preview;
  const busy = preview.state === "asking";
  const failed = preview.state === "failed" && !preview.error; // else its field says why
  const many = form.when === "plain" || form.when === "every" || form.when === "cron";
  const look = `${preview.asked ? "" : "is-empty"} ${many ? "is-times" : ""} ${busy ? "is-busy" : ""}`;
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

/** @param {import("../core/types.js").TriggerPreview} answer @param {State} state */
function answerView(answer, state) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return html`<p class="preview-words">${icon("trigger")}${said(answer.words)}</p>
    ${
      answer.next.length
        ? html`<p class="hint">${t("form.next", { zone })}</p>
            <ol class="preview-times">
              ${answer.next.map(
                (at) =>
                  html`<li>${moment(at)} <span class="muted">${ago(at, state.now)}</span></li>`,
              )}
            </ol>`
        : nothing
    }
    ${notesView(answer.notes)}`;
}

/** @param {import("../core/state-types.js").Words[]} notes */
function notesView(notes) {
  if (!notes?.length) return nothing;
  return html`<ul class="preview-notes">
    ${notes.map((note) => html`<li>${icon("info")}<span>${said(note)}</span></li>`)}
  </ul>`;
}

/** @param {Errors} errors */
function errorView(errors) {
  return html`<div role="alert">
    ${
      errors.form
        ? html`<div class="failure" id="form-error" tabindex="-1">${errors.form}</div>`
        : nothing
    }
  </div>`;
}

/** @param {TriggerForm} form @param {Actions} act */
function buttonsView(form, act) {
  return html`<div class="form-actions">
    <button type="submit" class="primary" ?disabled=${form.busy}>
      ${form.busy ? html`<span class="spinner"></span>` : nothing}
      ${t(form.base ? "form.save" : "form.create")}
    </button>
    <button type="button" @click=${() => act.forms.cancel(form.key)}>${t("form.cancel")}</button>
  </div>`;
}
