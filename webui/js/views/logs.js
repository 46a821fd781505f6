/** What happened, line by line: live, by kind, text or task; and what was before. */

import { html, icon, nothing, repeat } from "../html.js";
import { has, t, tn } from "../i18n.js";
import { emptyState, eventWords, loading, reasonWords, stamped, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").LogLine} LogLine
 * @typedef {import("../actions.js").Actions} Actions
 */

const TYPES = ["", "task", "audit", "error"];
/** Facts that name something one can open. */
const LEADS = /** @type {Record<string, string>} */ ({ taskId: "task", triggerId: "trigger" });
/** Said before all others, without their name. */
const FIRST = ["title", "error", "reason", "said"];
/** Facts whose values are names of ours: where their words are. */
const NAMED = /** @type {Record<string, string>} */ ({
  author: "logs.author",
  engine: "engine",
  failureReason: "reason",
  profile: "profile",
  role: "seat",
  seat: "seat",
  status: "state",
});

/** @param {State} state @param {Actions} act */
export function logsView(state, act) {
  const { logs } = state;
  return html`<a class="back" href="#/settings">${icon("back")}${t("settings.title")}</a>
    <div class="logs-page">
      <h2 tabindex="-1" data-focus>${t("logs.title")}</h2>
      ${filtersView(logs, act)} ${bodyView(logs, act)}
    </div>`;
}

/** @param {State["logs"]} logs @param {Actions} act */
function filtersView(logs, act) {
  const label = t(logs.paused ? "logs.resume" : "logs.pause");
  return html`<div class="logs-filters">
    <input
      type="search"
      class="logs-search"
      maxlength="200"
      aria-label=${t("logs.search")}
      placeholder=${t("logs.search")}
      .value=${logs.q}
      @input=${(/** @type {any} */ event) => act.home.setLogs({ q: event.target.value })}
    />
    <div class="choice" role="group" aria-label=${t("logs.kind")}>
      ${TYPES.map(
        (type) =>
          html`<button
            type="button"
            aria-pressed=${logs.type === type ? "true" : "false"}
            @click=${() => act.home.setLogs({ type })}
          >
            ${t(`logs.type.${type || "all"}`)}
          </button>`,
      )}
    </div>
    <div class="logs-acts">
      ${
        logs.id
          ? html`<button type="button" class="small" @click=${() => act.home.setLogs({ id: "" })}>
              ${icon("x")}<span class="logs-only">${t("logs.only", { id: logs.id })}</span>
            </button>`
          : nothing
      }
      <button
        type="button"
        class="small"
        aria-pressed=${logs.paused ? "true" : "false"}
        @click=${() => act.home.setLogs({ paused: !logs.paused, held: 0 })}
      >
        ${icon(logs.paused ? "play" : "pause")}${label}
      </button>
      <button type="button" class="small" ?disabled=${!logs.lines.length} @click=${() => act.home.saveLogs()}>
        ${icon("download")}${t("logs.save")}
      </button>
    </div>
  </div>`;
}

/** @param {State["logs"]} logs @param {Actions} act */
function bodyView(logs, act) {
  if (logs.load === "failed") return emptyState(t("load.failed"), t("load.unreachable"));
  if (logs.load === "loading") return loading(t("logs.loading"));
  const newestFirst = logs.lines.toReversed();
  const older = logs.before
    ? html`<button
        type="button"
        class="small"
        ?disabled=${logs.older === "loading"}
        @click=${() => act.home.olderLogs()}
      >
        ${t(logs.older === "loading" ? "logs.loading" : "logs.older")}
      </button>`
    : html`<p class="group-none">${t("logs.beginning")}</p>`;
  return html`${
      logs.paused
        ? html`<p class="row-meta" role="status">
            ${logs.held ? tn("logs.held", logs.held) : t("logs.isPaused")}
          </p>`
        : nothing
    }
    ${
      newestFirst.length
        ? html`<ol class="logs" reversed>
            ${repeat(
              newestFirst,
              (line) => line.id,
              (line) => lineView(line, act),
            )}
          </ol>`
        : emptyState(t(logs.before ? "logs.noneYet" : "logs.none"))
    }
    <div class="logs-older">${older}</div>`;
}

/** @param {LogLine} line @param {Actions} act */
function lineView(line, act) {
  const first = FIRST.map((key) => reasonWords(line.facts[key], line.words[key])).filter(Boolean);
  const facts = Object.entries(line.facts).filter(([key]) => !FIRST.includes(key));
  const lead = facts.find(([key, value]) => LEADS[key] && value);
  const kind = has(`logs.type.${line.type}`) ? t(`logs.type.${line.type}`) : line.type;
  return html`<li class="log is-${line.type}">
    <span class="log-head"
      >${stamped(line.at)}<span class="log-type">${kind}</span
      ><span class="log-event" title=${line.event}>${eventWords(line.event)}</span>${
        lead
          ? html`<span class="log-leads"
              ><a href="#/${LEADS[lead[0]]}/${lead[1]}">${t("logs.open")}</a
              ><button type="button" class="link" @click=${() => act.home.setLogs({ id: lead[1] })}>
                ${t("logs.onlyThis")}
              </button></span
            >`
          : nothing
      }</span
    >
    ${first.map((text) => html`<span class="log-said">${text}</span>`)}
    ${
      facts.length
        ? html`<span class="log-facts"
            >${facts.map(([key, value]) => html`<span><b>${word("logs.fact", key)}</b> ${factWords(key, value)}</span> `)}</span
          >`
        : nothing
    }
  </li>`;
}

/** @param {string} key @param {string} value  A fact as the page says it elsewhere. */
function factWords(key, value) {
  if (NAMED[key]) return word(NAMED[key], value);
  if (value === "true" || value === "false") return t(`logs.${value}`);
  if (/^\[.*\]$/s.test(value)) return value.slice(1, -1).replace(/["']/g, "");
  return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? stamped(value) : value;
}
