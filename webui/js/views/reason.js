/** Why a reply says what it says: what was asked, of whom, with what at hand, at what cost. */

import { html, icon, nothing, svg } from "../html.js";
import { has, language, t, tn } from "../i18n.js";
import { LONG_TERM, placeOfHit } from "../memory.js";
import { hashOf } from "../route.js";
import { shown } from "../shown.js";
import { count, duration } from "../time.js";
import { dayWords } from "./memory.js";
import { emptyState, loading, moment, usageWords, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../types.js").TurnPrompt} Told
 */

/** @param {State} state @param {Actions} act */
export function reasonView(state, act) {
  const { reason } = state;
  const message = state.messages.findLast((one) => one.role !== "user" && one.turnId === reason?.id);
  const { told } = reason ?? {};
  const back = told && told.role !== "teller" ? hashOf({ view: "task", id: told.id }) : "#/";
  return html`<a class="back" href=${back}
      >${icon("back")}${t(back === "#/" ? "nav.chat" : "reason.work")}</a
    >
    <article class="reason">
      <header class="task-head">
        <h2 tabindex="-1" data-focus>${t(`reason.title.${titleOf(told)}`)}</h2>
        ${
          message
            ? html`<div class="task-actions">
                <button type="button" class="small" @click=${() => act.hands.showMessage(message.id)}>
                  ${icon("chat")}${t("task.inChat")}
                </button>
              </div>`
            : nothing
        }
      </header>
      ${bodyView(state, act)}
    </article>`;
}

/** @param {Told | null | undefined} told */
function titleOf(told) {
  return told && told.role !== "teller" ? told.role : "teller";
}

/** @param {State} state @param {Actions} act */
function bodyView(state, act) {
  const { reason } = state;
  if (reason?.load === "missing") return emptyState(t("reason.missing"), t("reason.missingText"));
  if (reason?.load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.hands.reloadReason()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), t("load.unreachable"), again);
  }
  const told = reason?.told;
  if (!told) return loading(t("reason.loading"));
  return html`${factsView(told)} ${told.byCode || told.isKept ? nothing : goneView()}
  ${hitsView(told, state)} ${callsView(told)} ${promptView(told)}`;
}

const goneView = () => html`<p class="reason-note">${icon("info")}${t("reason.gone")}</p>`;

/** @param {Told} told */
function factsView(told) {
  const lang = language();
  if (told.byCode) {
    return html`<p class="reason-note">${icon("info")}${t(told.role === "teller" ? "reason.byCode" : "reason.byCode.work")}</p>
      <dl class="facts">${fact("reason.at", moment(told.at))}</dl>`;
  }
  const tookMs = told.startedAt ? Date.parse(told.at) - Date.parse(told.startedAt) : null;
  const cost = Object.entries(told.cost).map(([currency, amount]) =>
    new Intl.NumberFormat(lang, { style: "currency", currency, maximumSignificantDigits: 3 }).format(amount),
  );
  const used = told.usage.inputTokens + told.usage.outputTokens > 0;
  return html`<dl class="facts">
    ${fact("reason.engine", [word("engine", told.engine), told.model].filter(Boolean).join(" · "))}
    ${fact("reason.at", moment(told.at))}
    ${tookMs === null ? nothing : fact("reason.took", duration(tookMs, lang))}
    ${used ? fact("reason.tokens", usageWords(/** @type {any} */ (told.usage))) : nothing}
    ${told.requests == null ? nothing : fact("reason.requests", count(told.requests, lang))}
    ${cost.length ? fact("reason.cost", cost.join(", ")) : nothing}
    ${told.attempt > 1 ? fact("reason.attempt", told.attempt) : nothing}
    ${told.status === "done" ? nothing : fact("reason.ended", word("state", told.status))}
  </dl>`;
}

/** @param {string} name @param {unknown} value */
function fact(name, value) {
  return html`<div>
    <dt>${t(name)}</dt>
    <dd>${value}</dd>
  </div>`;
}

// --- what it had at hand

/** @param {Told} told @param {State} state */
function hitsView({ hits }, state) {
  if (!hits.length) return nothing;
  return html`<h3>${t("hits.title")}</h3>
    <ul class="hits" aria-label=${t("hits.title")}>
      ${hits.map((hit) => hitView(hit, state))}
    </ul>`;
}

/** @param {import("../types.js").TurnHit} hit @param {State} state */
function hitView({ source, text, line, day, kind }, state) {
  const of = /** @type {import("../state-types.js").HitKind} */ (kind ?? "memory");
  const place = placeOfHit({ source, kind: of, line: line ?? 0 });
  const name = source === LONG_TERM ? t("memory.longTerm") : source;
  const plain = text?.trim();
  return html`<li>
    <p class="hits-head">
      ${place && "view" in place ? html`<a href=${hashOf(place)}>${name}</a>` : name}
      ${day ? html`<span class="muted">${dayWords(day, state)}</span>` : nothing}
    </p>
    ${plain ? html`<p class="hits-text">${plain}</p>` : nothing}
  </li>`;
}

/** @param {Told} told */
function callsView({ calls, tools, isKept }) {
  if (!isKept) return nothing;
  const unused = tools.filter((name) => !calls.some((call) => call.name === name));
  return html`<h3>${t("reason.calls")}</h3>
    ${
      calls.length
        ? html`<ol class="reason-calls">
            ${calls.map(callView)}
          </ol>`
        : html`<p class="muted">${t("reason.noCalls")}</p>`
    }
    ${
      unused.length
        ? html`<p class="muted reason-offered">
            ${t("reason.offered")} ${unused.map((name) => html`<code>${name}</code> `)}
          </p>`
        : nothing
    }`;
}

/** @param {import("../types.js").ToolUse} call */
function callView({ name, ok, arguments: given, reply }) {
  return html`<li>
    <details>
      <summary>
        <span class="state ${ok ? "state-done" : "state-failed"}">${icon(ok ? "s-done" : "s-failed")}</span>
        <code>${name}</code>
        <span class="muted">${t(ok ? "reason.call.ok" : "reason.call.refused")}</span>
      </summary>
      ${given ? html`<p class="muted">${t("reason.given")}</p><pre class="prompt" tabindex="0">${shown(pretty(given))}</pre>` : nothing}
      ${reply ? html`<p class="muted">${t("reason.reply")}</p><pre class="prompt" tabindex="0">${shown(reply)}</pre>` : nothing}
    </details>
  </li>`;
}

/** @param {string} json  Cut, it is shown as it is. */
function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

// --- what it was told

/** @param {Told} told */
function promptView({ isKept, instructions, instructionsTokens, sections }) {
  if (!isKept) return nothing;
  const parts = [
    ...(instructions ? [{ label: "instructions", text: instructions, tokens: instructionsTokens }] : []),
    ...sections,
  ];
  const most = Math.max(...parts.map((part) => part.tokens), 1);
  const all = parts.reduce((sum, part) => sum + part.tokens, 0);
  return html`<h3>${t("reason.told")}</h3>
    <p class="muted reason-sum">${tn("reason.sum", all)}</p>
    <div class="reason-parts">${parts.map((part) => partView(part, most))}</div>`;
}

/** @param {import("../types.js").PromptSection} part @param {number} most */
function partView({ label, text, tokens }, most) {
  const key = `reason.part.${label}`;
  const name = label ? (has(key) ? t(key) : label) : t("reason.part.rest");
  const width = `${Math.max(1, (tokens / most) * 100)}%`;
  return html`<details>
    <summary>
      <span class="part-name">${name}</span>
      <svg class="part-bar" aria-hidden="true">${svg`<rect width=${width} height="100%" rx="2"></rect>`}</svg>
      <span class="part-tokens">${tn("reason.tokensOf", tokens)}</span>
    </summary>
    <pre class="prompt" tabindex="0">${shown(text)}</pre>
  </details>`;
}
