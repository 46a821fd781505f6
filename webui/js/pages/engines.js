/** Engines as the page sets them up: what a form holds, what is wrong with it, what is sent. */

import { t } from "../core/i18n.js";

/**
 * @typedef {import("../core/state-types.js").EngineForm} EngineForm
 * @typedef {import("../core/types.js").Engine} Engine
 * @typedef {import("../core/types.js").EngineList} EngineList
 */

/** Whatever may have an order of its own; `all` is for whatever has none. */
export const SEATS = ["all", "teller", "planner", "standard", "specialist", "deferred"];
/** Addresses that many will want, for the field to propose. */
export const known = () => t("engines.known").split(" ");
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const TAKEN = ["auto", "codex", "opencode", "local", "builtin", "command", "scripted"];
const ADDRESS = /^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** @returns {import("../core/state-types.js").EnginesPage} nothing is known, nothing typed */
export function noEngines() {
  return {
    load: "idle",
    error: "",
    list: null,
    form: null,
    removing: "",
    seat: "all",
    busy: "",
  };
}

/** @param {Engine | null} base  What is changed; null: a new one. @returns {EngineForm} */
export function formOf(base) {
  return {
    base,
    name: base?.name ?? "",
    baseUrl: base?.baseUrl ?? "",
    model: base?.model ?? "",
    keyIs: base?.key === "variable" ? "variable" : base?.key === "kept" ? "kept" : "none",
    key: "",
    keyEnv: base?.keyEnv ?? "",
    errors: {},
    busy: "",
    trial: null,
  };
}

/**
 * What is wrong with it, by field, in the reader's words.
 *
 * @param {EngineForm} form
 * @param {boolean} toTry a model is not needed to list what there is
 */
export function missingOf(form, toTry) {
  /** @type {Record<string, string>} */
  const wrong = {};
  if (!NAME.test(form.name)) wrong.name = t("engines.wrongName");
  else if (TAKEN.includes(form.name)) wrong.name = t("engines.takenName");
  if (!ADDRESS.test(form.baseUrl.trim())) wrong.baseUrl = t("engines.wrongUrl");
  if (form.keyIs === "key" && !form.key.trim()) wrong.key = t("engines.wrongKey");
  if (form.keyIs === "variable" && !VARIABLE.test(form.keyEnv.trim()))
    wrong.keyEnv = t("engines.wrongEnv");
  if (!toTry && !form.model.trim()) wrong.model = t("engines.wrongModel");
  return wrong;
}

/** @param {EngineForm} form  As it is sent; a key that is kept stays where it is. */
export function requestOf(form) {
  return {
    baseUrl: form.baseUrl.trim(),
    model: form.model.trim(),
    key: form.keyIs === "key" ? form.key.trim() : "",
    keyEnv: form.keyIs === "variable" ? form.keyEnv.trim() : "",
  };
}

/** @param {EngineList} list @param {string} seat @returns {string[]} empty: as all the rest */
export function orderOf(list, seat) {
  return list.orders[seat] ?? [];
}

/** @param {EngineList} list @param {string[]} order  What else could serve. */
export function othersOf(list, order) {
  return ["auto", ...list.engines.map((engine) => engine.name)].filter(
    (name) => !order.includes(name),
  );
}

/** @param {string[]} order @param {number} at  The one there goes before the one above it. */
export function earlier(order, at) {
  const moved = [...order];
  moved.splice(at - 1, 0, ...moved.splice(at, 1));
  return moved;
}
