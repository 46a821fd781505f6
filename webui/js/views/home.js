/** Home: what needs its user first, then what runs, what comes, the last hours, usage, health. */

import { html, icon, nothing, repeat } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { count, elapsed, fileSize, fullTime, nearTime, relativeTime } from "../time.js";
import { needsView } from "./needs.js";
import { emptyState, eventWords, loading, reasonWords, said, since, stateIcon } from "./parts.js";
import { dayView } from "./timeline.js";
import { amounts } from "./usage.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").Home} Home
 * @typedef {import("../actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function homeView(state, act) {
  const { view, load } = state.home;
  const title = html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.home")}</h2>`;
  if (!view && load === "failed") {
    const again = html`<button
      type="button"
      class="small"
      @click=${() => act.store.set({ home: { ...state.home, at: 0, load: "loading" } })}
    >
      ${icon("retry")}${t("load.again")}
    </button>`;
    return html`${title}${emptyState(t("load.failed"), t("load.unreachable"), again)}`;
  }
  if (!view) return html`${title}${loading(t("home.loading"))}`;
  return html`<div class="home">
    ${title}
    ${
      view.needs.length
        ? section("needs", needsView(view.needs, state, act), String(view.needs.length))
        : html`<p class="home-calm">${icon("s-done")}${t("home.calm")}</p>`
    }
    ${section("running", runningView(view, state, act), runningCount(view, state))}
    ${section("next", nextView(view, state))} ${section("day", dayView(state, act))}
    ${section("usage", usageView(view))} ${section("selfAwake", selfAwakeView(view, state, act))}
    ${section("health", healthView(view, state))}
  </div>`;
}

/** @param {string} name @param {unknown} body @param {string} [many] */
function section(name, body, many = "") {
  return html`<section class="home-part" data-part=${name}>
    <h3>
      ${t(`home.${name}`)}${many ? html` <span class="group-count">${many}</span>` : nothing}
    </h3>
    ${body}
  </section>`;
}

/** @param {import("../types.js").Job} job */
function atWork({ state }) {
  return state === "running" || state === "planning";
}

/** @param {Home} view @param {State} state */
function runningCount({ running, health }, state) {
  const known = Object.values(state.jobs);
  const many = (known.length ? known : running).filter(atWork).length;
  const parts = [many ? String(many) : ""];
  if (health.waiting) parts.push(tn("home.waiting", health.waiting));
  return parts.filter(Boolean).join(" · ");
}

/** @param {Home} view @param {State} state @param {Actions} act */
function runningView({ running }, state, act) {
  const known = Object.values(state.jobs);
  const shown = (known.length ? known : running).filter(atWork);
  if (!shown.length) return html`<p class="group-none">${t("home.runningNone")}</p>`;
  return html`<ul class="rows">
    ${repeat(
      shown,
      (job) => job.id,
      (job) =>
        html`<li class="row is-running" data-job=${job.id}>
          <a class="row-link" href="#/task/${job.taskId}">
            ${stateIcon("running")}
            <span class="row-main">
              <span class="row-title">${job.title}</span>
              <span class="row-meta"
                ><span class="ticking"
                  >${elapsed(state.now - Date.parse(job.startedAt ?? job.createdAt))}</span
                >${
                  job.headline
                    ? html`<span class="row-headline">${job.headline}</span>`
                    : nothing
                }</span
              >
            </span>
          </a>
          <button
            type="button"
            class="icon-button small row-action"
            ?disabled=${Boolean(state.pending[job.id])}
            aria-label=${t("task.cancelNamed", { title: job.title })}
            title=${t("task.cancel")}
            @click=${() => act.cancelJob(job.id)}
          >
            ${icon("x")}
          </button>
        </li>`,
    )}
  </ul>`;
}

/** @param {Home} view @param {State} state */
function nextView(view, state) {
  if (!view.next.length) return html`<p class="group-none">${t("home.nextNone")}</p>`;
  const lang = language();
  return html`<ul class="home-next">
      ${view.next.map((one) => {
        const at = Date.parse(one.at);
        return html`<li>
          <a href="#/trigger/${one.triggerId}">
            <time datetime=${one.at} title=${fullTime(at, lang)}
              >${nearTime(at, state.now, lang)}</time
            >
            <span class="home-next-title">${one.title}</span>
            <span class="home-next-in"
              >${at <= state.now ? t("triggers.due") : relativeTime(at, state.now, lang)}</span
            >
            <span class="home-next-words">${said(one.words)}</span>
          </a>
        </li>`;
      })}
    </ul>
    ${
      view.moreNext
        ? html`<p class="home-more"><a href="#/triggers">${tn("home.moreNext", view.moreNext)}</a></p>`
        : nothing
    }`;
}

/** @param {Home} view */
function usageView({ usage }) {
  const cap = usage.budget.dailyTokens;
  const used = usage.inputTokens + usage.outputTokens;
  const share = cap ? Math.min(100, (100 * used) / cap) : 0;
  return html`<p class="home-usage">
      <span>${amounts(usage)}</span>
      <a href="#/usage">${t("usage.open")}</a>
    </p>
    ${
      cap
        ? html`<div class="usage-share ${share >= 100 ? "is-full" : ""}">
              <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                <rect width=${share} height="4"></rect>
              </svg>
            </div>
            <p class="row-meta">
              ${t("home.ofCap", { share: Math.round((100 * used) / cap), cap: count(cap, language()) })}
            </p>`
        : nothing
    }`;
}

/** @param {Home} view @param {State} state @param {Actions} act  Improvements of its own. */
function selfAwakeView({ selfAwake }, state, act) {
  const { enabled, run, past, blocked, left } = selfAwake;
  const busy = Boolean(state.pending["self-awake"]);
  /** @param {"on" | "off" | "run"} what @param {string} label */
  const button = (what, label) =>
    html`<button
      type="button"
      class="small"
      ?disabled=${busy}
      @click=${() => act.home.selfAwake(what)}
    >
      ${label}
    </button>`;
  const onOff = enabled ? button("off", t("awake.off")) : button("on", t("awake.on"));
  return html`<p class="home-awake">
      <span>${enabled ? tn("awake.isOn", selfAwake.idleMinutes) : t("awake.isOff")}</span>
      ${onOff} ${run ? nothing : button("run", t("awake.run"))}
    </p>
    ${
      run
        ? html`<p class="row-meta">
            ${t("awake.now", { what: run.title || t(`awake.kind.${run.kind}`) })}
            ${t(`awake.stage.${run.stage}`)}
          </p>`
        : nothing
    }
    ${blocked && !run ? html`<p class="row-meta">${t("awake.blocked", { why: reasonWords(blocked, selfAwake.blockedWords) })}</p>` : nothing}
    ${left.map((path) => html`<p class="row-meta">${t("awake.left", { path })}</p>`)}
    ${past.length ? html`<ul class="home-awake-past">${past.map((one) => pastView(one, state))}</ul>` : nothing}`;
}

/** @param {Home["selfAwake"]["past"][number]} one @param {State} state */
function pastView(one, state) {
  const title = one.title || t(`awake.kind.${one.kind}`);
  return html`<li>
    ${one.taskId ? html`<a href="#/task/${one.taskId}">${title}</a>` : title}
    <span class="muted">${t(`awake.end.${one.end}`)} · ${since(one.endedAt, state.now)}</span>
    ${one.branch ? html`<code>${one.branch}</code>` : one.why ? html`<span class="row-meta">${reasonWords(one.why, one.whyWords)}</span>` : nothing}
  </li>`;
}

/** @param {Home} view @param {State} state */
function healthView({ health }, state) {
  const lang = language();
  const up = state.status?.consumer ?? health.consumer;
  const error = health.lastError;
  return html`<dl class="home-health">
    ${fact(
      "health.service",
      up === "ok"
        ? html`<span class="health-ok">${icon("s-done")}${t("health.ok")}</span>${
            health.startedAt
              ? html` <span class="muted"
                  >${t("health.started", { ago: relativeTime(health.startedAt, state.now, lang) })}</span
                >`
              : nothing
          }`
        : html`<span class="error-text">${t(`health.${up}`)}</span>`,
    )}
    ${fact("health.work", health.seats ? t("health.busy", { n: health.busy, most: health.seats }) : "–")}
    ${fact("health.queue", health.waiting ? tn("home.waiting", health.waiting) : t("health.queueNone"))}
    ${health.freeBytes === null ? nothing : fact("health.disk", fileSize(health.freeBytes, lang))}
    ${fact(
      "health.error",
      error
        ? html`<a href="#/logs?type=error">${eventWords(error.event)}</a>
            <span class="muted">${since(error.at, state.now)}</span>`
        : t("health.errorNone"),
    )}
  </dl>`;
}

/** @param {string} key @param {unknown} value */
function fact(key, value) {
  return html`<div>
    <dt>${t(key)}</dt>
    <dd>${value}</dd>
  </div>`;
}
