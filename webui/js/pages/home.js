/** The home: what needs the reader first, then what runs, what comes, and what the last day was. */

import { html, nothing, svg } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { duration, elapsed } from "../core/time.js";
import { engineWhy } from "../ui/banners.js";
import * as parts from "../ui/parts.js";
import { ago, button, said, since, stateIcon, triggerTitle, word } from "../ui/parts.js";
import { lanes } from "./home-keeper.js";
import { tokensAndCost } from "./usage.js";

/** How high each run stands, its gap with it. */
const LANE = 5;
/** Rows of the table that stands for the bars where they are not seen: the newest. */
const MAX_ROWS = 40;

/** @param {State} state @param {Actions} act */
export function homeView(state, act) {
  const { load, data } = state.home;
  if (load === "failed") return parts.failedView(() => act.keepers.home.page.load());
  if (!data) return parts.loading(t("home.loading"));
  const usage = html`<a href="#/usage">${tokensAndCost(data.usage)}</a>`;
  return html`<div class="home">
    <h2 class="sr-only" tabindex="-1" data-focus>${t("nav.home")}</h2>
    ${needsView(data.needs, state, act)}
    ${group("running", data.running.map((run) => runView(run, state)))}
    ${group("next", data.next.map((trigger) => firingView(trigger, state)))}
    ${timelineView(data, state)}
    ${parts.groupView("usage", t("home.usage"), nothing, html`<p class="group-none">${usage}</p>`)}
  </div>`;
}

/** @param {string} name @param {unknown[]} rows */
function group(name, rows) {
  const title = t(`home.${name}`);
  if (rows.length) return parts.groupView(name, title, rows);
  return parts.groupView(name, title, nothing, html`<p class="group-none">${t(`home.${name}None`)}</p>`);
}

/** @param {Needs} needs @param {State} state @param {Actions} act */
function needsView({ question, failures, triggers, engines }, state, act) {
  const off = (/** @type {string} */ id) => ({ off: Boolean(state.pending[id]) });
  const reply = () => {
    act.go({ view: "chat" });
    act.focus("#question-answer");
  };
  return group("needs", [
    question
      ? row("asking", "#/", question.question, t("home.question"), button(t("home.answer"), reply))
      : nothing,
    ...failures.map((run) =>
      row(
        "failed",
        `#/task/${run.id}`,
        run.title,
        failureView(run, state),
        button(t("task.retry"), () => act.order(run.id, "retry"), off(run.id)),
      ),
    ),
    ...triggers.map((trigger) =>
      row(
        "paused",
        `#/trigger/${trigger.id}`,
        triggerTitle(trigger),
        said(trigger.headline),
        button(t("triggers.resume"), () => act.orderTrigger(trigger.id, "resume"), off(trigger.id)),
      ),
    ),
    ...engines.map((engine) =>
      row(
        "waiting",
        "#/engines",
        engineWhy(engine, state),
        tn("home.waiting", engine.tasks + engine.messages),
        button(t("engine.try"), () => act.tryEngine(engine.engine), off("engine")),
      ),
    ),
  ].filter((one) => one !== nothing));
}

/** @param {Run} run @param {State} state */
function failureView(run, state) {
  const exit = /^exit code (-?\d+)/.exec(run.error ?? "")?.[1];
  const said = run.failureReason === "error" && !exit && run.error;
  const why = said || parts.failureWords(run.failureReason, exit);
  const times = run.count > 1 ? html`<span>${tn("home.times", run.count)}</span>` : nothing;
  return html`<span class="error-text">${why}</span>${times}
    <span>${since(run.completedAt ?? run.createdAt, state.now)}</span>`;
}

/**
 * @param {string} state @param {string} href @param {string} title @param {unknown} meta
 * @param {unknown} [act] the one thing to do with it
 */
function row(state, href, title, meta, act = nothing) {
  return html`<li class="row">
    <a class="row-link" href=${href}>${parts.rowMain(stateIcon(state), title, meta)}</a>
    <span class="row-action">${act}</span>
  </li>`;
}

/** @param {Run} run @param {State} state */
function runView(run, state) {
  const ms = Math.max(0, state.now - Date.parse(run.startedAt ?? run.createdAt));
  const headline = run.headline ? html`<span class="row-headline">${run.headline}</span>` : nothing;
  const meta = html`<span class="ticking">${elapsed(ms)}</span>${headline}`;
  return row("running", `#/task/${run.id}`, run.title, meta);
}

/** @param {Trigger} trigger @param {State} state */
function firingView(trigger, state) {
  const next = (state.triggers[trigger.id] ?? trigger).nextRunAt ?? "";
  const due = Date.parse(next) <= state.now;
  const meta = html`<span>${due ? t("triggers.due") : ago(next, state.now)}</span>
    <span>${parts.triggerWhen(trigger)}</span>`;
  return row("waiting", `#/trigger/${trigger.id}`, triggerTitle(trigger), meta);
}

/** @param {Home} home @param {State} state */
function timelineView({ timeline, moreRuns }, { now }) {
  const lang = language();
  const bars = lanes(timeline, now);
  const high = Math.max(1, ...bars.map((bar) => bar.lane + 1)) * LANE;
  const newest = bars.slice(-MAX_ROWS).reverse();
  const rows = newest.map(({ run, waitMs, runMs }) =>
    html`<tr>
      <td><a href="#/task/${run.id}" tabindex="-1">${run.title}</a></td>
      <td>${word("state", run.state)}</td>
      <td>${since(run.createdAt, now)}</td>
      <td>${duration(waitMs, lang)}</td>
      <td>${duration(runMs, lang)}</td>
    </tr>`);
  const heads = ["task", "state", "queued", "waited", "ran"];
  if (!bars.length) return group("timeline", []);
  const count = moreRuns ? html`<span class="group-count">${tn("home.newest", bars.length)}</span>` : nothing;
  const title = html`${t("home.timeline")} ${count}`;
  return parts.groupView("timeline", title, nothing, html`<figure class="day-bars">
      <svg viewBox="0 0 1000 ${high}" height=${high} preserveAspectRatio="none" aria-hidden="true">
        ${bars.map(barView)}
      </svg>
      <figcaption><span>${t("home.dayAgo")}</span><span>${t("home.legend")}</span><span>${t("home.now")}</span></figcaption>
    </figure>
    <div class="sr-only table-box"><table>
      <caption>${t("home.timeline")}</caption>
      <thead><tr>${heads.map((name) => html`<th scope="col">${t(`home.col.${name}`)}</th>`)}</tr></thead>
      <tbody>${rows}</tbody>
    </table></div>`);
}

/** @param {import("./home-keeper.js").Bar} bar */
function barView({ run, lane, from, began, to, waitMs, runMs }) {
  const [y, lang] = [lane * LANE, language()];
  const words = t("home.bar", {
    title: run.title,
    waited: duration(waitMs, lang),
    ran: duration(runMs, lang),
  });
  return svg`<a href=${`#/task/${run.id}`} tabindex="-1"><title>${words}</title>
    <rect class="bar-wait" x=${from} y=${y + 1} width=${began - from} height="2"></rect>
    <rect class="bar-run is-${run.state}" x=${began} y=${y} width=${to - began} height="4"></rect></a>`;
}
