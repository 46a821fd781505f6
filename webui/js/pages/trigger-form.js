/**
 * A trigger as it is typed: from the server's shape into fields, from fields into requests. Pure.
 */

/** @type {[Unit, number][]} seconds, the largest first */
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** Who is told; empty: what is usual for its kind. */
export const NOTIFY = /** @type {const} */ (["", "message", "change", "failure", "none", "teller"]);

export const UNIT_NAMES = /** @type {const} */ (["second", "minute", "hour", "day"]);

export const TIME_KINDS = /** @type {const} */ (["plain", "every", "cron", "at"]);
export const CONDITION_KINDS = /** @type {const} */ ([
  "file_changed",
  "file_exists",
  "task",
  "llm_eval",
]);

/** A model that was asked is not asked again for so long, unless told otherwise. */
const LLM_COOLDOWN_S = 86_400;

/** @param {string} key @param {Partial<ConditionRow>} [values] @returns {ConditionRow} */
export function newRow(key, values = {}) {
  return {
    key,
    type: "file_changed",
    path: "",
    fireOnInit: false,
    outcome: "done",
    taskId: "",
    byId: false,
    question: "",
    kept: null,
    words: null,
    ...values,
  };
}

/**
 * @param {string} id
 * @param {string} zone the reader's
 * @param {Status | null} [status] without a model only a command can be carried out
 * @returns {TriggerForm}
 */
export function newForm(id, zone, status = null) {
  const noModel = status?.engines.standard?.engine === "builtin";
  return {
    key: "new",
    id,
    base: null,
    prompt: "",
    title: "",
    profile: noModel ? "command" : "standard",
    when: "plain",
    plain: "",
    every: "10",
    everyUnit: "minute",
    cron: "",
    timezone: zone,
    at: "",
    single: newRow("single"),
    join: "and",
    rows: [],
    cooldown: "",
    cooldownUnit: "minute",
    once: false,
    overlap: "skip",
    notify: "",
    errors: {},
    preview: { asked: "", state: "idle", answer: null, error: null },
    busy: false,
    over: false,
  };
}

/**
 * A stored trigger, ready to be edited.
 *
 * @param {Trigger} trigger
 * @param {NodeExplanation[]} nodes its condition's, for the words of what the form cannot show
 * @param {string} zone
 * @returns {TriggerForm}
 */
export function formOf(trigger, nodes, zone) {
  const form = {
    ...newForm(trigger.id, zone),
    key: trigger.id,
    base: trigger,
    prompt: trigger.prompt,
    title: ownTitle(trigger),
    profile: trigger.profile,
    once: trigger.once ?? false,
    overlap: trigger.overlap ?? "skip",
    notify: trigger.notifyGiven ? trigger.notify : "",
  };
  if (trigger.schedule) return { ...form, ...scheduleFields(trigger.schedule, zone) };
  if (!trigger.condition) return form;
  const cooldown = trigger.cooldown ?? 0;
  const own = cooldown === usualCooldown(trigger.condition);
  const [count, unit] = inUnits(cooldown);
  return {
    ...form,
    ...conditionFields(trigger.condition, nodes, trigger),
    ...(own ? {} : { cooldown: count, cooldownUnit: unit }),
  };
}

/** @param {Trigger} trigger  One without a title is shown by the beginning of its prompt. */
function ownTitle({ title, prompt }) {
  return prompt.trimStart().startsWith(title.replace(/…$/, "")) ? "" : title;
}

/** @param {Schedule} schedule @param {string} zone @returns {Partial<TriggerForm>} */
function scheduleFields(schedule, zone) {
  if (schedule.interval != null) {
    const [every, everyUnit] = inUnits(schedule.interval);
    return { when: "every", every, everyUnit };
  }
  if (schedule.cron) {
    return { when: "cron", cron: schedule.cron, timezone: schedule.timezone ?? zone };
  }
  return { when: "at", at: localMinute(schedule.runAt ?? "") };
}

/**
 * @param {Condition} condition
 * @param {NodeExplanation[]} nodes
 * @param {Trigger} trigger
 * @returns {Partial<TriggerForm>}
 */
function conditionFields(condition, nodes, trigger) {
  const single = rowOf("single", condition, trigger.words);
  if (condition.type === "and" || condition.type === "or") {
    /** @type {Condition[]} */
    const children = condition.params.conditions ?? [];
    const rows = children.map((child, at) => rowOf(`row-${at}`, child, wordsAt(nodes, `$.${at}`)));
    return { when: "several", join: condition.type, rows };
  }
  return { when: single.type, single };
}

/**
 * A node in words, those below it included: `any of these: a exists, b exists`.
 *
 * @param {NodeExplanation[]} nodes
 * @param {string} path
 * @returns {ConditionRow["words"]}
 */
function wordsAt(nodes, path) {
  const node = nodes.find((one) => one.path === path);
  if (!node) return null;
  const below = nodes
    .filter((one) => one.path.startsWith(`${path}.`) && one.depth === node.depth + 1)
    .map((one) => wordsAt(nodes, one.path) ?? one.words);
  if (!below.length) return node.words;
  return {
    en: `${node.words.en}: ${below.map((one) => one.en).join(", ")}`,
    zh: `${node.words.zh}：${below.map((one) => one.zh).join("、")}`,
  };
}

/** @param {string} key @param {Condition} condition @param {ConditionRow["words"]} words */
function rowOf(key, condition, words) {
  const { type, params } = condition;
  switch (type) {
    case "file_changed":
      return newRow(key, { type, path: params.path, fireOnInit: Boolean(params.fireOnInit) });
    case "file_exists":
      return newRow(key, { type, path: params.path });
    case "task_done":
    case "task_failed": {
      const outcome = type === "task_done" ? "done" : "failed";
      return newRow(key, { type: "task", outcome, taskId: params.taskId });
    }
    case "llm_eval":
      return newRow(key, { type, question: params.prompt });
    default:
      return newRow(key, { type: "kept", kept: condition, words });
  }
}

/** @param {Condition} condition @returns {number} seconds */
function usualCooldown(condition) {
  return asksModel(condition) ? LLM_COOLDOWN_S : 0;
}

/** @param {Condition} condition @returns {boolean} */
function asksModel({ type, params }) {
  if (type === "llm_eval") return true;
  const inner = params?.conditions ?? (params?.condition ? [params.condition] : []);
  return inner.some(asksModel);
}

/** @param {number} seconds @returns {[string, Unit]} in the largest unit that needs no fraction */
export function inUnits(seconds) {
  const [unit, size] = UNITS.find(([, one]) => seconds && seconds % one === 0) ?? ["second", 1];
  return [String(seconds / size), unit];
}

/** @param {string} count @param {Unit} unit @returns {number | null} */
export function inSeconds(count, unit) {
  const size = UNITS.find(([name]) => name === unit)?.[1] ?? 1;
  const number = Number(count);
  return count.trim() && Number.isFinite(number) ? number * size : null;
}

/** @param {string} at an instant @returns {string} as a date-time field of the reader's own zone */
export function localMinute(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

// --- requests

/** @param {TriggerForm} form */
export function isConditional(form) {
  return !(/** @type {readonly string[]} */ (TIME_KINDS).includes(form.when));
}

/** @param {ConditionRow} row @returns {Condition | null} null: something is still missing */
export function conditionOf(row) {
  const path = row.path.trim();
  const taskId = row.taskId.trim();
  const question = row.question.trim();
  switch (row.type) {
    case "file_changed":
      return path ? { type: row.type, params: { path, fireOnInit: row.fireOnInit } } : null;
    case "file_exists":
      return path ? { type: row.type, params: { path } } : null;
    case "task":
      return taskId ? { type: `task_${row.outcome}`, params: { taskId } } : null;
    case "llm_eval":
      return question ? { type: row.type, params: { prompt: question } } : null;
    default:
      return row.kept;
  }
}

/** @param {TriggerForm} form @returns {Condition | null} */
function wholeCondition(form) {
  if (form.when !== "several") return conditionOf(form.single);
  const conditions = form.rows.map(conditionOf);
  if (!conditions.length || conditions.includes(null)) return null;
  if (conditions.length === 1) return conditions[0];
  return { type: form.join, params: { conditions } };
}

/**
 * When it runs, as a request says it; null while something is missing.
 *
 * @param {TriggerForm} form
 * @param {string} zone the reader's
 * @returns {Record<string, any> | null}
 */
export function whenOf(form, zone) {
  switch (form.when) {
    case "plain":
      return form.plain.trim() ? { when: form.plain.trim(), timezone: zone } : null;
    case "every": {
      const interval = inSeconds(form.every, form.everyUnit);
      return interval === null ? null : { schedule: { interval } };
    }
    case "cron": {
      const cron = form.cron.trim().replace(/\s+/g, " ");
      return cron ? { schedule: { cron, timezone: form.timezone.trim() || zone } } : null;
    }
    case "at": {
      const at = new Date(form.at);
      return Number.isNaN(at.getTime()) ? null : { schedule: { runAt: at.toISOString() } };
    }
    default: {
      const condition = wholeCondition(form);
      return condition ? { condition } : null;
    }
  }
}

/** @param {TriggerForm} form @param {string} zone @returns {Record<string, any> | null} */
export function previewRequest(form, zone) {
  const when = whenOf(form, zone);
  if (!when) return null;
  const cooldown = isConditional(form) ? inSeconds(form.cooldown, form.cooldownUnit) : null;
  return cooldown === null ? when : { ...when, cooldown };
}

/** @param {TriggerForm} form @param {string} zone @returns {Record<string, any>} */
function fieldsOf(form, zone) {
  const conditional = isConditional(form);
  return {
    prompt: form.prompt.trim(),
    title: form.title.trim(),
    profile: form.profile,
    ...whenOf(form, zone),
    ...(form.when === "at" ? {} : { overlap: form.overlap }),
    notify: form.notify || null,
    ...(conditional ? { once: form.once } : {}),
    ...(conditional ? { cooldown: inSeconds(form.cooldown, form.cooldownUnit) } : {}),
  };
}

/** @param {TriggerForm} form @param {string} zone @returns {Record<string, any>} */
export function createRequest(form, zone) {
  const { title, cooldown, notify, ...fields } = fieldsOf(form, zone);
  return {
    id: form.id,
    ...fields,
    ...(title ? { title } : {}),
    ...(notify ? { notify } : {}),
    ...(cooldown == null ? {} : { cooldown }),
  };
}

/**
 * What is to be changed of the trigger that is edited; empty when nothing is.
 *
 * What was not touched is not sent: an interval keeps its rhythm, a moment its seconds.
 *
 * @param {TriggerForm} form
 * @param {TriggerForm} before
 * @param {string} zone
 * @returns {Record<string, any>}
 */
export function changesOf(form, before, zone) {
  const was = fieldsOf(before, zone);
  const is = fieldsOf(form, zone);
  const changed = Object.entries(is).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(was[name]),
  );
  return Object.fromEntries(changed);
}

// --- what is wrong

/**
 * What is still missing: by field, the words' key.
 *
 * @param {TriggerForm} form
 * @param {string} zone
 * @returns {Record<string, string>}
 */
export function missingOf(form, zone) {
  /** @type {Record<string, string>} */
  const missing = {};
  if (!form.prompt.trim()) missing.prompt = "form.need.prompt";
  if (form.when === "several") {
    if (!form.rows.length) missing.when = "form.need.rows";
    for (const row of form.rows) Object.assign(missing, missingIn(row));
  } else if (isConditional(form)) {
    Object.assign(missing, missingIn(form.single));
  } else if (!whenOf(form, zone)) {
    missing[form.when] = `form.need.${form.when}`;
  }
  return missing;
}

/** @type {Record<RowType, keyof ConditionRow>} */
const ROW_FIELDS = {
  file_changed: "path",
  file_exists: "path",
  task: "taskId",
  llm_eval: "question",
  kept: "kept",
};

/** @param {ConditionRow} row @returns {Record<string, string>} */
function missingIn(row) {
  if (conditionOf(row)) return {};
  const field = ROW_FIELDS[row.type];
  return { [rowField(row, field)]: `form.need.${field}` };
}

/** @param {ConditionRow} row @param {string} name the name a row's field has among all fields */
export function rowField(row, name) {
  return `${row.key}.${name}`;
}

const TOP = ["prompt", "title", "profile", "overlap", "notify", "once", "cooldown"];

/**
 * The field of the form that a field of the server's is shown in.
 *
 * @param {TriggerForm} form
 * @param {string | null | undefined} name `prompt`, `schedule.cron`, `condition.params.path`,
 *   `condition.params.conditions.1.params.taskId`
 */
export function fieldOf(form, name) {
  if (!name) return "form";
  if (TOP.includes(name)) return name;
  if (/^(id|priority|timeout|maxAttempts)\b/.test(name)) return "form";
  if (!isConditional(form)) {
    return form.when === "cron" && /timezone$/.test(name) ? "timezone" : form.when;
  }
  const at = /conditions\.(\d+)/.exec(name)?.[1];
  const row = form.when === "several" ? form.rows[Number(at ?? 0)] : form.single;
  const alone = form.when !== "several" || form.rows.length === 1;
  if (!row || (!alone && at === undefined) || row.type === "kept") return "when";
  return /(path|taskId|prompt)$/.test(name) ? rowField(row, ROW_FIELDS[row.type]) : "when";
}
