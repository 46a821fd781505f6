/** The list of triggers: what makes work by itself, and when; what needs its user comes first. */

import { html, icon, live, nothing, repeat } from "../html.js";
import { t, tn } from "../i18n.js";
import { TRIGGER_GROUPS, TRIGGER_ORDERS, listHash, triggerGroups } from "../lists.js";
import { ago, emptyState, loading, said, since, triggerTitle, triggerWhen, word } from "./parts.js";
import { brokenWords, triggerBadges, triggerButtons } from "./trigger-buttons.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../state-types.js").ListFilter} ListFilter
 * @typedef {import("../types.js").Trigger} Trigger
 * @typedef {import("../actions.js").Actions} Actions
 */

/** So many triggers are seen at a glance: below it there is nothing to search for. */
const MANY = 8;

/** @param {State} state @param {Actions} act */
export function triggersView(state, act) {
  if (state.load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.session.load()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), state.loadError, again);
  }
  if (state.load === "loading") return loading(t("triggers.loading"));
  const all = Object.values(state.triggers);
  const filter = state.route.view === "triggers" ? state.route : {};
  const head = html`<div class="list-head">
    <h2 class="sr-only" tabindex="-1" data-focus>${t("nav.triggers")}</h2>
    ${all.length ? orderView(filter, act) : nothing}
    <a class="button small" href="#/triggers/new">${icon("plus")}${t("triggers.new")}</a>
  </div>`;
  if (!all.length) return html`${head}${emptyState(t("triggers.empty"), t("triggers.emptyText"))}`;
  const { counts, groups } = triggerGroups(all, filter);
  return html`${head}${filtersView(filter, counts)}
  ${all.length > MANY || filter.q ? searchView(filter, act) : nothing}
  ${groups.map((group) => groupView(group, filter, state, act))}
  ${groups.length ? nothing : noneView()}`;
}

function noneView() {
  const all = html`<a class="button small" href="#/triggers">${t("triggers.showAll")}</a>`;
  return emptyState(t("triggers.none"), "", all);
}

/** @param {ListFilter} filter @param {Actions} act */
function orderView({ sort = "next", ...filter }, act) {
  const choose = (/** @type {any} */ event) =>
    act.narrow("triggers", { ...filter, sort: event.target.value });
  return html`<label class="list-order">
    <span class="muted">${t("triggers.order")}</span>
    <select @change=${choose}>
      ${TRIGGER_ORDERS.map(
        (order) =>
          html`<option value=${order} ?selected=${order === sort}>
            ${t(`triggers.order.${order}`)}
          </option>`,
      )}
    </select>
  </label>`;
}

/** @param {ListFilter} filter @param {Record<string, number>} counts */
function filtersView({ show = "", ...filter }, counts) {
  const shown = ["", ...TRIGGER_GROUPS].filter((name) => !name || counts[name] || name === show);
  if (shown.length < 3) return nothing;
  return html`<nav class="kinds" aria-label=${t("triggers.filter")}>
    ${shown.map(
      (name) =>
        html`<a
          href=${listHash("triggers", { ...filter, show: name })}
          aria-current=${name === show ? "true" : "false"}
          >${t(`triggers.group.${name || "all"}`)}
          <span class="group-count">${counts[name || "all"]}</span></a
        >`,
    )}
  </nav>`;
}

/** @param {ListFilter} filter @param {Actions} act */
function searchView(filter, act) {
  return html`<label class="list-search">
    <span class="sr-only">${t("triggers.search")}</span>${icon("search")}<input
      type="search"
      placeholder=${t("triggers.search")}
      .value=${live(filter.q ?? "")}
      @input=${(/** @type {any} */ event) =>
        act.narrow("triggers", { ...filter, q: event.target.value })}
    />
  </label>`;
}

/**
 * @param {{name: string, triggers: Trigger[]}} group
 * @param {ListFilter} filter
 * @param {State} state
 * @param {Actions} act
 */
function groupView({ name, triggers }, filter, state, act) {
  const title = html`${t(`triggers.group.${name}`)} <span class="group-count">${triggers.length}</span>`;
  const list = html`<ul class="triggers">
    ${repeat(
      triggers,
      (trigger) => trigger.id,
      (trigger) => cardView(trigger, state, act),
    )}
  </ul>`;
  if (name === "step") {
    // What a chain still has before it is looked at when one looks for it.
    return html`<details class="group trigger-steps" ?open=${filter.show === "step"} data-group=${name}>
      <summary><h3>${title}</h3></summary>
      <p class="group-none">${t("triggers.stepsText")}</p>
      ${list}
    </details>`;
  }
  return html`<section class="group is-${name}" data-group=${name}>
    <h3>${title}</h3>
    ${list}
  </section>`;
}

/** @param {Trigger} trigger @param {State} state @param {Actions} act */
function cardView(trigger, state, act) {
  return html`<li class="trigger ${trigger.enabled ? "" : "is-paused"}" data-trigger=${trigger.id}>
    <div class="trigger-title">
      <a href="#/trigger/${trigger.id}">${triggerTitle(trigger)}</a>
      <span class="badges">${triggerBadges(trigger)}</span>
    </div>
    ${trigger.type === "broken" ? nothing : html`<p class="trigger-words">${icon("trigger")}${triggerWhen(trigger)}</p>`}
    ${trigger.needs ? needsView(trigger) : headlineView(trigger)}
    <p class="row-meta">${timesView(trigger, state)}</p>
    ${triggerButtons(trigger, state, act)}
  </li>`;
}

/** @param {Trigger} trigger  What is to be seen to, and what holds meanwhile. */
function needsView(trigger) {
  return html`<div class="needs">
    <p>${said(trigger.needs)}</p>
    ${trigger.broken ? html`<p>${brokenWords(trigger)}</p>` : nothing}
  </div>`;
}

/** @param {Trigger} trigger  Why it waits, unless it only waits for its time: that stands below. */
function headlineView(trigger) {
  const headline = trigger.nextRunAt || !trigger.enabled ? "" : said(trigger.headline);
  if (headline) return html`<p class="verdict">${headline}</p>`;
  const verdict = trigger.lastVerdict;
  if (!verdict || verdict === "ran") return nothing;
  return html`<p class="verdict">${word("verdict", verdict)}</p>`;
}

/** @param {string} next @param {number} now */
function nextView(next, now) {
  if (Date.parse(next) <= now) return html`<span>${t("triggers.due")}</span>`;
  return html`<span>${t("triggers.next")} ${ago(next, now)}</span>`;
}

/** @param {Trigger} trigger @param {State} state */
function timesView(trigger, state) {
  const { now } = state;
  const next = trigger.enabled && trigger.nextRunAt ? trigger.nextRunAt : null;
  const last = trigger.lastRunAt;
  return html`${next ? nextView(next, now) : nothing}
    ${last ? html`<span>${t("triggers.last")} ${since(last, now)}</span>` : nothing}
    ${last || trigger.lastTaskId || trigger.broken ? nothing : html`<span>${t("triggers.never")}</span>`}
    ${
      trigger.fireCount
        ? html`<a href=${listHash("tasks", { trigger: trigger.id })}
            >${tn("triggers.fired", trigger.fireCount)}</a
          >`
        : nothing
    }
    ${
      trigger.lastTaskId
        ? html`<a href="#/task/${trigger.lastTaskId}">${t("triggers.lastTask")}</a>`
        : nothing
    }`;
}
