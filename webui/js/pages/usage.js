/** How many tokens were used: today, in the last thirty days, and by what; and what they cost. */

import { html, icon, nothing, svg } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { count } from "../core/time.js";
import { emptyState, loading, word } from "../ui/parts.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/types.js").TokenCounts} TokenCounts
 * @typedef {import("../core/types.js").UsageReport} UsageReport
 * @typedef {import("../core/types.js").UsageRow} UsageRow
 */

const STEP = 10;
const BAR = 7;
const HIGH = 80;

/** @param {State} state @param {import("../core/actions.js").Actions} act */
export function usageView(state, act) {
  return html`<a class="back" href="#/tasks">${icon("back")}${t("task.back")}</a>
    <div class="usage-page">
      <h2 tabindex="-1" data-focus>${t("usage.title")}</h2>
      ${bodyView(state, act)}
    </div>`;
}

/** @param {State} state @param {import("../core/actions.js").Actions} act */
function bodyView({ usage }, act) {
  if (usage.load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.reloadUsage()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), t("load.unreachable"), again);
  }
  if (!usage.day || !usage.engine || !usage.role || !usage.trigger) {
    return loading(t("usage.loading"));
  }
  const { day } = usage;
  const cap = day.budget.dailyTokens;
  return html`<dl class="facts">
      ${fact("usage.today", words(day.today))}
      ${cap === null ? nothing : fact("usage.cap", t("usage.tokens", { n: number(cap) }))}
      ${fact("usage.month", words(day.total))}
      ${day.total.estimated ? fact("usage.estimated", tn("usage.runs", day.total.estimated)) : nothing}
    </dl>
    ${barsView(day)} ${groupView("engine", usage.engine)} ${groupView("role", usage.role)}
    ${groupView("trigger", usage.trigger)}`;
}

/** @param {UsageReport} report  A bar for each day, as high as it used much. */
function barsView({ rows }) {
  const most = Math.max(...rows.map(tokens), 1);
  const wide = rows.length * STEP;
  const peak = t("usage.bars", { most: number(most), n: rows.length });
  return html`<figure class="usage-bars">
    <svg viewBox="0 0 ${wide} ${HIGH}" preserveAspectRatio="none" role="img" aria-label=${peak}>
      ${rows.map((row, at) => {
        const high = tokens(row) ? Math.max(1, (tokens(row) / most) * HIGH) : 0;
        return svg`<rect x=${at * STEP} y=${HIGH - high} width=${BAR} height=${high}>
          <title>${row.key}: ${number(tokens(row))}</title>
        </rect>`;
      })}
    </svg>
    <figcaption><span>${rows[0]?.key}</span><span>${t("usage.todayShort")}</span></figcaption>
  </figure>`;
}

/** @param {"engine" | "role" | "trigger"} by @param {UsageReport} report */
function groupView(by, { rows, total }) {
  if (!rows.length) return nothing;
  const all = Math.max(tokens(total), 1);
  return html`<section>
    <h3>${t(`usage.by.${by}`)}</h3>
    <ul class="usage-rows">
      ${rows.map(
        (row) => html`<li>
          <span class="usage-name">${name(by, row)}</span>
          <span class="usage-share" aria-hidden="true"
            ><svg viewBox="0 0 100 4" preserveAspectRatio="none">
              <rect width=${(tokens(row) / all) * 100} height="4"></rect></svg
          ></span>
          <span class="usage-counts">${words(row)}</span>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** @param {"engine" | "role" | "trigger"} by @param {UsageRow} row */
function name(by, { key, title }) {
  if (by === "role") return word(key === "teller" || key === "planner" ? "seat" : "profile", key);
  if (by === "trigger") {
    return key ? html`<a href="#/trigger/${key}">${title || key}</a>` : t("usage.noTrigger");
  }
  return key;
}

/** @param {TokenCounts} counts */
function words(counts) {
  const cost = Object.entries(counts.cost).map(([currency, amount]) => {
    const money = new Intl.NumberFormat(language(), { style: "currency", currency });
    const least = 10 ** -(money.resolvedOptions().maximumFractionDigits ?? 2);
    return amount > 0 && amount < least ? `<${money.format(least)}` : money.format(amount);
  });
  const parts = [t("usage.tokens", { n: number(tokens(counts)) }), tn("usage.runs", counts.runs)];
  return [...parts, ...cost].join(" · ");
}

/** @param {TokenCounts} counts */
function tokens(counts) {
  return counts.inputTokens + counts.outputTokens;
}

/** @param {number} value */
function number(value) {
  return count(value, language());
}

/** @param {string} key @param {unknown} value */
function fact(key, value) {
  return html`<div>
    <dt>${t(key)}</dt>
    <dd>${value}</dd>
  </div>`;
}
