/** The login screen. */

import { html, icon, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { settingsRows } from "../pages/settings.js";
import { onSubmit } from "./parts.js";

/** @param {State} state @param {Actions} act */
export function loginView(state, act) {
  const { busy, error } = state.login;
  const submit = onSubmit(({ currentTarget: form }) => {
    const token = form.token.value.trim();
    if (token && !busy) void act.session.login({ token });
  });
  return html`<main class="login">
    <form class="login-card" @submit=${submit}>
      <span class="login-mark">${icon("mark")}</span>
      <h1>${t("login.title")}</h1>
      <p class="muted">${t("login.text")}</p>
      <label for="token">${t("login.token")}</label>
      <input
        id="token"
        name="token"
        type="password"
        autocomplete="current-password"
        spellcheck="false"
        autocapitalize="off"
        required
        autofocus
        aria-describedby="token-hint ${error ? "token-error" : ""}"
        aria-invalid=${error ? "true" : "false"}
      />
      ${error ? html`<p class="error-text" id="token-error" role="alert">${error}</p>` : nothing}
      <button class="primary" type="submit" ?disabled=${busy}>
        ${busy ? t("login.busy") : t("login.submit")}
      </button>
      <p class="hint" id="token-hint">${t("login.hint")} <code>mimikit token</code></p>
    </form>
    <div class="login-settings">${settingsRows(state, act)}</div>
  </main>`;
}
