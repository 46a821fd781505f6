/** A trigger as it is typed: from the server's shape into fields, from fields into requests. Pure. */

/** @type {Record<Unit, number>}  Seconds, the largest first. */
const UNITS = { day: 86_400, hour: 3600, minute: 60, second: 1 };

/** Who is told; empty: what is usual for its kind. */
export const NOTIFY = ["", "message", "change", "failure", "none", "teller"];
export const TIME_KINDS = /** @type {const} */ (["plain", "every", "cron", "at"]);

/** @type {Record<string, (keyof ConditionRow)[]>}  Fields of each type; the first must be filled. */
const CONDITIONS = {
  file_changed: ["path", "fireOnInit"],
  file_exists: ["path"],
  task_done: ["taskId"],
  task_failed: ["taskId"],
  llm_eval: ["question"],
};
export const CONDITION_KINDS = /** @type {Exclude<RowType, "kept">[]} */ (Object.keys(CONDITIONS));
/** @type {Record<string, string>}  Fields that the server calls otherwise. */
const PARAMS = { question: "prompt" };
/** Instead of a task that is chosen: it is named by its id. */
export const BY_ID = "\0by-id";

/** A model that was asked is not asked again for so long, unless told otherwise. */
const LLM_COOLDOWN_S = 86_400;

/** @param {string} key @param {Partial<ConditionRow>} [values] @returns {ConditionRow} */
export function newRow(key, values = {}) {
  const fields = { path: "", fireOnInit: false, taskId: "", typedId: "", question: "" };
  return { key, type: "file_changed", ...fields, kept: null, words: null, ...values };
}

/** @type {Preview} */
export const NO_PREVIEW = { asked: "", state: "idle", answer: null, error: null };

/** @param {string} id @param {string} zone the reader's @param {Status | null} [status] @returns {TriggerForm} */
export function newForm(id, zone, status = null) {
  const noModel = status?.engines.standard?.engine === "builtin"; // it can carry out commands only
  return {
    ...{ key: "new", id, base: null, errors: {}, preview: NO_PREVIEW, busy: false, over: false },
    ...{ prompt: "", title: "", profile: noModel ? "command" : "standard" },
    ...{ when: "plain", plain: "", cron: "", timezone: zone, at: "", every: "10", everyUnit: "minute" },
    ...{ join: "and", rows: [newRow("row-0")], cooldown: "", cooldownUnit: "minute", once: false },
    ...{ overlap: "skip", notify: "" },
  };
}

/**
 * @param {Trigger} trigger @param {NodeExplanation[]} nodes for the words of what the form cannot show
 * @param {string} zone @returns {TriggerForm}
 */
export function formOf(trigger, nodes, zone) {
  const { id, prompt, title, profile, once, overlap, schedule, condition, cooldown = 0 } = trigger;
  const isOwn = !prompt.trimStart().startsWith(title.replace(/…$/, "")); // else the prompt's beginning
  const asUsual = !condition || cooldown === (asksModel(condition) ? LLM_COOLDOWN_S : 0);
  const [count, cooldownUnit] = inUnits(cooldown);
  return {
    ...newForm(id, zone),
    ...{ key: id, base: trigger, prompt, profile, title: isOwn ? title : "" },
    ...{ once: once ?? false, overlap: overlap ?? "skip" },
    notify: trigger.notifyGiven ? trigger.notify : "",
    ...(schedule ? scheduleFields(schedule, zone) : {}),
    ...(condition ? conditionFields(condition, nodes, trigger.words) : {}),
    ...(asUsual ? {} : { cooldown: count, cooldownUnit }),
  };
}

/** @param {Schedule} schedule @param {string} zone @returns {Partial<TriggerForm>} */
function scheduleFields({ interval, cron, timezone, runAt }, zone) {
  if (cron) return { when: "cron", cron, timezone: timezone ?? zone };
  if (interval == null) return { when: "at", at: localMinute(runAt ?? "") };
  const [every, everyUnit] = inUnits(interval);
  return { when: "every", every, everyUnit };
}

/** @param {Condition} whole @param {NodeExplanation[]} nodes @param {Words} words @returns {Partial<TriggerForm>} */
function conditionFields(whole, nodes, words) {
  const { type, params } = whole;
  if (type !== "and" && type !== "or") {
    const row = rowOf(whole, 0, words);
    return { when: row.type, rows: [row] };
  }
  /** @type {Condition[]} */
  const inner = params.conditions ?? [];
  const rows = inner.map((one, at) => rowOf(one, at, wordsAt(nodes, `$.${at}`)));
  return { when: "several", join: type, rows };
}

/** @param {NodeExplanation[]} nodes @param {string} path  With those below: `not this: b exists`. */
function wordsAt(nodes, path) {
  const [own, ...below] = nodes.filter((one) => `${one.path}.`.startsWith(`${path}.`));
  if (!below.length) return own?.words ?? null;
  const joined = (/** @type {string} */ language, /** @type {string} */ between) =>
    below.map(({ words }) => words[language]).join(between);
  return { en: `${own.words.en}: ${joined("en", ", ")}`, zh: `${own.words.zh}：${joined("zh", "、")}` };
}

/** @param {Condition} condition @param {number} at @param {Words | null} words */
function rowOf(condition, at, words) {
  const { type, params } = condition;
  const key = `row-${at}`;
  if (!CONDITIONS[type]) return newRow(key, { type: "kept", kept: condition, words });
  const given = CONDITIONS[type].map((name) => [name, params[PARAMS[name] ?? name] ?? false]);
  return newRow(key, { type: /** @type {RowType} */ (type), ...Object.fromEntries(given) });
}

/** @param {Condition} condition @returns {boolean} */
function asksModel({ type, params }) {
  const inner = params?.conditions ?? (params?.condition ? [params.condition] : []);
  return type === "llm_eval" || inner.some(asksModel);
}

/** @param {number} seconds @returns {[string, Unit]} in the largest unit that needs no fraction */
export function inUnits(seconds) {
  const units = /** @type {[Unit, number][]} */ (Object.entries(UNITS));
  const [unit, size] = units.find(([, one]) => seconds && seconds % one === 0) ?? ["second", 1];
  return [String(seconds / size), unit];
}

/** @param {string} count @param {Unit} unit @returns {number | null} */
export function inSeconds(count, unit) {
  const number = Number(count);
  return count.trim() && Number.isFinite(number) ? number * UNITS[unit] : null;
}

/** @param {string} at an instant @returns {string} as a date-time field of the reader's own zone */
export function localMinute(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const own = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return own.toISOString().slice(0, 16);
}

// --- requests

/** @param {TriggerForm} form */
export function isConditional({ when }) {
  return !(/** @type {readonly string[]} */ (TIME_KINDS).includes(when));
}

/** @param {TriggerForm} form  The conditions that count. */
export function rowsOf(form) {
  if (!isConditional(form)) return [];
  return form.when === "several" ? form.rows : form.rows.slice(0, 1);
}

/** @param {ConditionRow} row @returns {Condition | null} null: something is still missing */
function conditionOf(row) {
  const names = CONDITIONS[row.type];
  if (!names) return row.kept;
  const given = names.map((name) => {
    const value = row[name] === BY_ID ? row.typedId : row[name];
    return [PARAMS[name] ?? name, typeof value === "string" ? value.trim() : value];
  });
  return given[0][1] ? { type: row.type, params: Object.fromEntries(given) } : null;
}

/** @type {Record<string, (form: TriggerForm, zone: string) => Record<string, any> | null>} */
const TIMES = {
  plain: ({ plain }, zone) => (plain.trim() ? { when: plain.trim(), timezone: zone } : null),
  every: ({ every, everyUnit }) => {
    const interval = inSeconds(every, everyUnit);
    return interval === null ? null : { schedule: { interval } };
  },
  cron: ({ cron, timezone }, zone) =>
    cron.trim()
      ? { schedule: { cron: cron.trim().replace(/\s+/g, " "), timezone: timezone.trim() || zone } }
      : null,
  at: ({ at }) =>
    Number.isNaN(Date.parse(at)) ? null : { schedule: { runAt: new Date(at).toISOString() } },
};

/** @param {TriggerForm} form @param {string} zone  As a request says it; null while something is missing. */
export function whenOf(form, zone) {
  if (!isConditional(form)) return TIMES[form.when](form, zone);
  const conditions = rowsOf(form).map(conditionOf);
  if (!conditions.length || conditions.includes(null)) return null;
  const [only] = conditions;
  return { condition: conditions.length > 1 ? { type: form.join, params: { conditions } } : only };
}

/** @param {TriggerForm} form @param {string} zone @returns {Record<string, any> | null} */
export function previewRequest(form, zone) {
  const when = whenOf(form, zone);
  const cooldown = isConditional(form) ? inSeconds(form.cooldown, form.cooldownUnit) : null;
  return when && (cooldown === null ? when : { ...when, cooldown });
}

/** @param {TriggerForm} form @param {string} zone @returns {Record<string, any>} */
function fieldsOf(form, zone) {
  const { profile, overlap, once, notify, cooldown, cooldownUnit } = form;
  return {
    prompt: form.prompt.trim(),
    title: form.title.trim(),
    profile,
    ...whenOf(form, zone),
    ...(form.when === "at" ? {} : { overlap }),
    notify: notify || null,
    ...(isConditional(form) ? { once, cooldown: inSeconds(cooldown, cooldownUnit) } : {}),
  };
}

/** @param {TriggerForm} form @param {string} zone @returns {Record<string, any>} */
export function createRequest(form, zone) {
  const said = Object.entries(fieldsOf(form, zone)).filter(([, value]) => value != null && value !== "");
  return { id: form.id, ...Object.fromEntries(said) };
}

/**
 * What was not touched is not sent: an interval keeps its rhythm, a moment its seconds.
 *
 * @param {TriggerForm} form @param {TriggerForm} before @param {string} zone
 */
export function changesOf(form, before, zone) {
  const was = fieldsOf(before, zone);
  const isNew = (/** @type {[string, any]} */ [name, value]) =>
    JSON.stringify(value) !== JSON.stringify(was[name]);
  return Object.fromEntries(Object.entries(fieldsOf(form, zone)).filter(isNew));
}

// --- as it is typed

/** @param {TriggerForm} form @param {Partial<TriggerForm>} values @returns {TriggerForm} */
export function edited(form, values) {
  const next = { ...form, ...values, errors: withoutErrors(form, Object.keys(values)) };
  if (!values.when || !isConditional(next)) return next;
  const [first = newRow("row-0"), ...others] = form.rows; // what was typed for another kind stays
  const type = /** @type {RowType} */ (next.when);
  if (next.when !== "several") return { ...next, rows: [{ ...first, type }, ...others] };
  return others.length ? next : withRow({ ...next, rows: [first] });
}

/** @param {TriggerForm} form @param {string} key @param {Partial<ConditionRow>} values @returns {TriggerForm} */
export function rowEdited(form, key, values) {
  const rows = form.rows.map((row) => (row.key === key ? { ...row, ...values } : row));
  const names = Object.keys(values).map((name) => `${key}.${name}`);
  return { ...form, rows, errors: withoutErrors(form, names) };
}

/** @param {TriggerForm} form @returns {TriggerForm} with one condition more */
export function withRow(form) {
  const last = Math.max(-1, ...form.rows.map((row) => Number(row.key.slice("row-".length))));
  const rows = [...form.rows, newRow(`row-${last + 1}`, { type: "file_exists" })];
  return { ...form, rows, errors: withoutErrors(form, []) };
}

/** @param {TriggerForm} form @param {string} key @returns {TriggerForm} */
export function withoutRow(form, key) {
  const rows = form.rows.filter((row) => row.key !== key);
  return { ...form, rows, errors: withoutErrors(form, []) };
}

/** @param {TriggerForm} form @param {string[]} names of fields that are typed anew */
function withoutErrors({ errors }, names) {
  const gone = ["form", "when", ...names.map((name) => name.replace(/Unit$/, ""))]; // and of the whole
  return Object.fromEntries(Object.entries(errors).filter(([name]) => !gone.includes(name)));
}

// --- what is wrong

/** @param {ConditionRow} row @param {string} name the name a row's field has among all fields */
export function rowField(row, name) {
  return `${row.key}.${name}`;
}

/** @param {TriggerForm} form @param {string} zone  What is still missing: by field, the words' key. */
export function missingOf(form, zone) {
  /** @type {Record<string, string>} */
  const missing = form.prompt.trim() ? {} : { prompt: "form.need.prompt" };
  const rows = rowsOf(form);
  if (!isConditional(form)) {
    if (!whenOf(form, zone)) missing[form.when] = `form.need.${form.when}`;
  } else if (!rows.length) missing.when = "form.need.rows";
  for (const row of rows.filter((one) => !conditionOf(one))) {
    const [field] = CONDITIONS[row.type];
    missing[rowField(row, field)] = `form.need.${field}`;
  }
  return missing;
}

const TOP = ["prompt", "title", "profile", "overlap", "notify", "once", "cooldown"];

/**
 * Where an error is shown: the field of the form that is one of the server's.
 *
 * @param {TriggerForm} form
 * @param {string | null} [name] `prompt`, `schedule.cron`, `condition.params.conditions.1.params.taskId`
 */
export function fieldOf(form, name) {
  if (!name || /^(id|priority|timeout|maxAttempts)\b/.test(name)) return "form";
  if (TOP.includes(name)) return name;
  if (!isConditional(form)) {
    return form.when === "cron" && /timezone$/.test(name) ? "timezone" : form.when;
  }
  const rows = rowsOf(form);
  const row = rows.length === 1 ? rows[0] : rows[Number(/conditions\.(\d+)/.exec(name)?.[1])];
  const field = row && /(path|taskId|prompt)$/.test(name) ? CONDITIONS[row.type]?.[0] : "";
  return field ? rowField(row, field) : "when";
}
