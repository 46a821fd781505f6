/** What went wrong, in the reader's words: by the code the server tells, and what belongs to it. */

import { has, language, t } from "./i18n.js";

/**
 * @param {any} error a request that failed, or a command of which nothing came
 * @returns {string}
 */
export function errorWords(error) {
  if (error?.status === 0) return t("load.unreachable");
  if (error?.status === 401) return t("send.signedOut");
  const key = `error.${error?.code}`;
  // A newer server, or an error of an engine's: what it says itself.
  if (!error?.code || !has(key)) return error?.message || t("error.unknown");
  const said = Object.entries(error?.words ?? {}).map(([name, words]) => [name, words[language()]]);
  return t(key, { ...error?.params, ...Object.fromEntries(said), message: error?.message ?? "" });
}
