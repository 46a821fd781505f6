/** Words: one flat dictionary per language, all with the same keys. */

/** @typedef {"en" | "zh"} Language */

/** @type {Record<string, string>} */
let words = {};
/** @type {Language} */
let current = "en";
let plural = new Intl.PluralRules("en");

/** @param {readonly string[]} wanted @returns {Language} the first of ours among them */
export function pickLanguage(wanted) {
  const ours = wanted.find((tag) => /^(zh|en)\b/i.test(tag)) ?? "en";
  return /^zh/i.test(ours) ? "zh" : "en";
}

/** @param {Language} language @param {Record<string, string>} dictionary */
export function useDictionary(language, dictionary) {
  current = language;
  words = dictionary;
  plural = new Intl.PluralRules(language);
}

/** @param {Language} language  Fetch a language's words and speak it from now on. */
export async function loadLanguage(language) {
  const address = new URL(`../i18n/${language}.json`, import.meta.url);
  const answer = await fetch(address, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`${address.pathname}: ${answer.status}`);
  useDictionary(language, await answer.json());
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
}

/** @returns {Language} */
export function language() {
  return current;
}

/**
 * The words for a key, with `{name}` filled in; a key that is missing shows itself.
 *
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 * @returns {string}
 */
export function t(key, values) {
  return fill(words[key] ?? key, values);
}

/**
 * The words for a number of things: `key.one` or `key.other`, with `{n}` filled in.
 *
 * @param {string} key
 * @param {number} n
 * @param {Record<string, string | number>} [values]
 * @returns {string}
 */
export function tn(key, n, values) {
  const form = `${key}.${plural.select(n) === "one" ? "one" : "other"}`;
  return fill(words[form] ?? form, { n, ...values });
}

/** @param {string} key */
export function has(key) {
  return key in words;
}

/** @param {string} text @param {Record<string, string | number>} [values] */
function fill(text, values) {
  if (!values) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}
