/** How many tokens were used: today, in the last thirty days, and by what; and what they cost. */

import { html, nothing, svg } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { stateResource } from "../core/resource.js";
import { count } from "../core/time.js";
import { backLink, engineName, factsList, failedView, loading } from "../ui/parts.js";
import { pageView, sectionView, word } from "../ui/parts.js";

const BY = /** @type {const} */ (["day", "engine", "role", "trigger"]);
const REFRESH_MS = 2000;
/** Of the bars, in their own measure. */
const STEP = 10;
const BAR = 7;
const HIGH = 80;

export class UsageKeeper {
  /** @param {Store} store @param {Api} api */
  constructor(store, api) {
    const request = async () => {
      const reports = await Promise.all(BY.map((by) => api.usage(by)));
      return Object.fromEntries(BY.map((by, at) => [by, reports[at]]));
    };
    this.reports = stateResource(store, "usage", request);
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    this.reports.follow(madeOf(state), madeOf(before), REFRESH_MS);
  }
}

/** @param {State} state */
function madeOf({ session, route, status }) {
  return session === "in" && route.view === "usage" ? [status?.usage.runs] : null;
}

/** @param {State} state @param {Actions} act */
export function usageView(state, act) {
  return html`${backLink("#/tasks", t("task.back"))}
  ${pageView("usage-page", t("usage.title"), bodyView(state, act))}`;
}

/** @param {State} state @param {Actions} act */
function bodyView({ usage }, act) {
  if (usage.load === "failed") return failedView(() => act.keepers.usage.reports.load());
  const { day, engine, role, trigger } = usage;
  if (!day || !engine || !role || !trigger) return loading(t("usage.loading"));
  const cap = day.budget.dailyTokens;
  const { estimated } = day.total;
  return html`${factsList([
    ["usage.today", tokensAndCost(day.today)],
    ["usage.cap", cap !== null && t("usage.tokens", { n: number(cap) })],
    ["usage.month", tokensAndCost(day.total)],
    ["usage.estimated", estimated && tn("usage.runs", estimated)],
  ])}
  ${barsView(day)} ${[engine, role, trigger].map(groupView)}`;
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

/** @param {UsageReport} report */
function groupView({ by, rows, total }) {
  if (!rows.length) return nothing;
  const all = Math.max(tokens(total), 1);
  const rowView = (/** @type {UsageRow} */ row) =>
    html`<li>
      <span class="usage-name">${name(by, row)}</span>
      <span class="usage-share" aria-hidden="true"
        ><svg viewBox="0 0 100 4" preserveAspectRatio="none">
          <rect width=${(tokens(row) / all) * 100} height="4"></rect></svg
      ></span>
      <span class="usage-counts">${tokensAndCost(row)}</span>
    </li>`;
  return sectionView(t(`usage.by.${by}`), html`<ul class="usage-rows">${rows.map(rowView)}</ul>`);
}

/** @param {UsageReport["by"]} by @param {UsageRow} row */
function name(by, { key, title }) {
  if (by === "role") return word(key === "teller" || key === "planner" ? "seat" : "profile", key);
  if (by !== "trigger") return engineName(key);
  return key ? html`<a href="#/trigger/${key}">${title || t("task.trigger")}</a>` : t("usage.noTrigger");
}

/** @param {TokenCounts} counts */
export function tokensAndCost(counts) {
  const parts = [t("usage.tokens", { n: number(tokens(counts)) }), tn("usage.runs", counts.runs)];
  return [...parts, ...moneyOf(counts.cost)].join(" · ");
}

/** @param {TokenCounts["cost"]} cost */
export function moneyOf(cost) {
  return Object.entries(cost).map(([currency, amount]) => {
    const money = new Intl.NumberFormat(language(), { style: "currency", currency });
    const least = 10 ** -(money.resolvedOptions().maximumFractionDigits ?? 2);
    return amount > 0 && amount < least ? `<${money.format(least)}` : money.format(amount);
  });
}

/** @param {TokenCounts} counts */
const tokens = ({ inputTokens, outputTokens }) => inputTokens + outputTokens;

/** @param {number} value */
const number = (value) => count(value, language());
