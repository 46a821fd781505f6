/** The last hours as bars: waiting apart from running, failures red; the same as a table. */

import { guard, html, icon, nothing, svg } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { barOf, layout, step } from "../timeline.js";
import { clockTime, count, duration, fullTime, nearTime } from "../time.js";
import { emptyState, loading, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").TimelineBar} Bar
 * @typedef {import("../types.js").TimelineRow} Row
 * @typedef {import("../timeline.js").Layout} Layout
 * @typedef {import("../actions.js").Actions} Actions
 */

const BAR = 10;
const LANE = 14;
const PAD = 4;
/** The bars that go on grow so often. */
const MOVES_MS = 20_000;
const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
const MOST_LISTED = 200;

/** @type {{view: unknown, at: number, shown: Layout | null}} */
let last = { view: null, at: 0, shown: null };

/** @param {State} state @returns {Layout} */
function placed({ day, now }) {
  const at = Math.floor(now / MOVES_MS);
  if (last.view !== day.view || last.at !== at || !last.shown) {
    const offset = -new Date(now).getTimezoneOffset() * 60_000;
    const view = /** @type {import("../types.js").Timeline} */ (day.view);
    last = { view, at, shown: layout(view, now, offset) };
  }
  return /** @type {Layout} */ (last.shown);
}

/** @param {State} state @param {Actions} act */
export function dayView(state, act) {
  const { day } = state;
  if (!day.view) {
    if (day.load === "failed") return emptyState(t("load.failed"), t("load.unreachable"));
    return loading(t("home.loading"));
  }
  const shown = placed(state);
  if (!shown.rows.length) return html`<p class="group-none">${t("day.none")}</p>`;
  const label = t(day.listed ? "day.picture" : "day.list");
  return html`<figure class="day-figure">
    <div class="day-head">
      <p class="row-meta">${sumWords(day.view)}</p>
      <button
        type="button"
        class="icon-button small"
        aria-pressed=${day.listed ? "true" : "false"}
        aria-label=${label}
        title=${label}
        @click=${() => act.home.list(!day.listed)}
      >
        ${icon("list")}
      </button>
    </div>
    ${day.listed ? tableView(shown, state.now) : chartView(shown, state, act)}
    ${day.view.moreRows ? html`<p class="row-meta">${tn("day.moreRows", day.view.moreRows)}</p>` : nothing}
    ${day.view.whole ? nothing : html`<p class="row-meta">${t("day.cut")}</p>`}
  </figure>`;
}

/** @param {import("../types.js").Timeline} view */
function sumWords({ runs, failed }) {
  const failures = failed
    ? html`<span class="error-text">${tn("day.failed", failed)}</span>`
    : nothing;
  return html`<span>${tn("usage.runs", runs)}</span>${failures}`;
}

/** @param {Layout} shown @param {State} state @param {Actions} act */
function chartView(shown, state, act) {
  const pointed = barOf(shown, state.day.pointed) ? state.day.pointed : "";
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const bar = barOf(shown, pointed)?.bar;
    if (event.key === "Enter" && bar) return act.openTask(bar.taskId);
    if (!KEYS.includes(event.key)) return undefined;
    event.preventDefault();
    return act.home.point(step(shown, pointed, event.key) ?? pointed);
  };
  const keyAt = (/** @type {Event} */ event) =>
    event.target instanceof Element
      ? (event.target.closest("[data-bar]")?.getAttribute("data-bar") ?? "")
      : "";
  const onClick = (/** @type {PointerEvent} */ event) => {
    const key = keyAt(event);
    const touched = event.pointerType !== "mouse" && key !== pointed;
    const bar = barOf(shown, key)?.bar;
    if (touched) return act.home.point(key); // a finger points first, and opens then
    return bar ? act.openTask(bar.taskId) : undefined;
  };
  return html`<div
      class="day-chart"
      role="listbox"
      tabindex="0"
      aria-label=${t("day.label")}
      aria-activedescendant=${pointed ? `bar-${pointed}` : nothing}
      @keydown=${onKey}
      @focus=${() => pointed || act.home.point(step(shown, "", "End") ?? "")}
      @pointerover=${(/** @type {PointerEvent} */ event) => {
        const key = keyAt(event);
        if (key && event.pointerType === "mouse") act.home.point(key);
      }}
      @click=${onClick}
    >
      ${guard([shown, pointed, language()], () => shown.rows.map((row) => rowView(row, shown, pointed)))}
    </div>
    ${axisView(shown)}
    <p class="day-told" aria-hidden="true">${toldView(shown, pointed, state.now)}</p>
    <p class="day-legend row-meta" aria-hidden="true">
      ${["waiting", "running", "failed"].map(
        (name) => html`<span><span class="day-key is-${name}"></span>${t(name === "failed" ? "day.failedKey" : `day.${name}`)}</span>`,
      )}
    </p>`;
}

/** @param {import("../timeline.js").PlacedRow} placedRow @param {Layout} shown @param {string} pointed */
function rowView({ row, bars, lanes }, shown, pointed) {
  const high = lanes * LANE + 2 * PAD - (LANE - BAR);
  const name = rowName(row);
  return html`<div class="day-row" role="group" aria-label=${name}>
    <span class="day-name" aria-hidden="true" title=${name}
      >${name}<span class="day-count">${count(row.runs, language())}</span></span
    >
    <svg class="day-bars" role="presentation" width="100%" height=${high}>
      ${shown.ticks.map(({ x }) => svg`<line class="day-tick" x1="${x}%" x2="${x}%" y1="0" y2=${high}></line>`)}
      ${bars.map((bar) => barView(bar, row, pointed))}
      <line class="day-now" x1="100%" x2="100%" y1="0" y2=${high}></line>
    </svg>
  </div>`;
}

/** @param {import("../timeline.js").PlacedBar} placedBar @param {Row} row @param {string} pointed */
function barView({ key, bar, x, width, waitX, waitWidth, lane }, row, pointed) {
  const y = PAD + lane * LANE;
  const many = bar.count > 1 ? "is-many" : "";
  const mark = key === pointed ? "is-pointed" : "";
  return svg`<g
    id="bar-${key}"
    role="option"
    aria-selected=${key === pointed ? "true" : "false"}
    aria-label=${barWords(bar, row)}
    data-bar=${key}
    class="day-bar is-${bar.state} ${many} ${mark}"
  >
    ${waitWidth ? svg`<rect class="day-wait" x="${waitX}%" y=${y + 3} width="${waitWidth}%" height=${BAR - 6}></rect>` : nothing}
    ${width ? svg`<rect class="day-run" x="${x}%" y=${y} width="${width}%" height=${BAR} rx="2"></rect>` : nothing}
    <rect class="day-hit" x="${waitWidth ? waitX : x}%" y=${y - 2} width="${width + waitWidth}%" height=${LANE}></rect>
  </g>`;
}

/** @param {Layout} shown */
function axisView({ ticks }) {
  return html`<svg class="day-axis" width="100%" height="16" aria-hidden="true">
    ${ticks
      .filter(({ x }) => x > 4 && x < 87)
      .map(
        ({ x, at }) =>
          svg`<text x="${x}%" y="12" text-anchor="middle">${clockTime(at, language())}</text>`,
      )}
    <text x="100%" y="12" text-anchor="end" class="day-now-word">${t("day.now")}</text>
  </svg>`;
}

/** @param {Layout} shown @param {string} pointed @param {number} now */
function toldView(shown, pointed, now) {
  const found = barOf(shown, pointed);
  if (!found) return html`<span class="muted">${t("day.hint")}</span>`;
  const { bar, row } = found;
  return html`<span class="day-told-title">${barTitle(bar, row)}</span>
    <span class="row-meta">${timesWords(bar, now)}</span>`;
}

/** @param {Row} row */
function rowName(row) {
  return row.kind === "trigger" ? row.title : t(`day.${row.kind}`);
}

/** @param {Bar} bar @param {Row} row */
function barTitle(bar, row) {
  if (bar.count > 1) return tn("day.runsOf", bar.count, { title: rowName(row) });
  // What it does for itself goes by names of its own.
  return (row.kind !== "internal" && bar.title) || rowName(row);
}

/** @param {Bar} bar @param {number} [now]  When, how long it waited and ran, and what came of it. */
function timesWords(bar, now = 0) {
  const lang = language();
  const from = bar.startedAt ?? bar.createdAt ?? bar.endedAt ?? "";
  const until = bar.endedAt ? clockTime(bar.endedAt, lang) : t("day.now");
  const goes = !bar.endedAt && bar.startedAt ? now - Date.parse(bar.startedAt) : null;
  const ran = bar.runMs ?? (goes !== null && goes > 0 ? goes : null);
  const waits = !bar.startedAt && !bar.endedAt && bar.createdAt && now;
  const waited = waits ? now - Date.parse(bar.createdAt ?? "") : bar.waitMs;
  const begun = from ? clockTime(from, lang) : "";
  return [
    begun === until ? begun : `${begun}–${until}`,
    waited !== null && waited >= 1000 ? t("day.waited", { span: duration(waited, lang) }) : "",
    ran !== null ? t("day.ran", { span: duration(ran, lang) }) : "",
    bar.failed > 1 ? tn("day.failed", bar.failed) : word("state", bar.state),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** @param {Bar} bar @param {Row} row */
function barWords(bar, row) {
  return `${barTitle(bar, row)} · ${timesWords(bar)}`;
}

/** @param {Layout} shown @param {number} now */
function tableView(shown, now) {
  const lang = language();
  const all = shown.rows.flatMap(({ row, bars }) => bars.map(({ bar }) => ({ row, bar })));
  const at = (/** @type {Bar} */ bar) => bar.startedAt ?? bar.createdAt ?? bar.endedAt ?? "";
  all.sort((a, b) => at(b.bar).localeCompare(at(a.bar)));
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("day.label")}>
    <table class="day-table">
      <thead>
        <tr>
          ${["when", "what", "waitedHead", "ranHead", "came"].map((key) => html`<th scope="col">${t(`day.${key}`)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${all.slice(0, MOST_LISTED).map(
          ({ row, bar }) =>
            html`<tr>
              <td title=${at(bar) ? fullTime(at(bar), lang) : ""}>
                ${at(bar) ? nearTime(at(bar), now, lang) : "–"}
              </td>
              <td><a href="#/task/${bar.taskId}"><span>${barTitle(bar, row)}</span></a></td>
              <td>${bar.waitMs === null ? "–" : duration(bar.waitMs, lang)}</td>
              <td>${spanOf(bar, now)}</td>
              <td class=${bar.failed ? "error-text" : ""}>${word("state", bar.state)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** @param {Bar} bar @param {number} now */
function spanOf(bar, now) {
  if (bar.runMs !== null) return duration(bar.runMs, language());
  return bar.startedAt ? duration(Math.max(0, now - Date.parse(bar.startedAt)), language()) : "–";
}
