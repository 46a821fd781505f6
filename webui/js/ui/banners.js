/** What is wrong with the whole, said loudly on top. */

import { html, icon, nothing } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { clockTime, dayKey, dayTime, duration } from "../core/time.js";
import { button, iconButton } from "./parts.js";

/** @param {State} state @param {Actions} act */
export function bannersView(state, act) {
  const { status, outdated } = state;
  const reload = button(t("banner.reload"), () => location.reload());
  return html`<div class="banners">
    ${outdated ? banner("info", t("banner.outdated"), reload) : nothing}
    ${status ? statusBanners(status, state, act) : nothing}
  </div>`;
}

/** @param {Status} status @param {State} state @param {Actions} act */
function statusBanners(status, state, act) {
  const { byEngine, usage, degraded, paused } = status;
  const resume = html`<code>mimikit resume</code>`;
  return html`${consumerBanner(status)}
  ${Object.values(byEngine).map((engine) => engineBanner(engine, state, act))}
  ${budgetBanner(usage.budget, state)}
  ${degraded ? banner("warn", t("banner.degraded", { why: degraded })) : nothing}
  ${paused ? banner("warn", t("banner.paused"), resume) : nothing}`;
}

/** @param {Status} status */
function consumerBanner(status) {
  if (status.consumer === "down") {
    return banner("danger", t("banner.down"), html`<code>mimikit up</code>`);
  }
  if (status.consumer === "hung") {
    const age = duration((status.beatAgeS ?? 0) * 1000, language());
    return banner("danger", t("banner.hung", { age }), html`<code>mimikit doctor</code>`);
  }
  return nothing;
}

/** @param {EngineStatus} engine @param {State} state @param {Actions} act  One can go on without it. */
function engineBanner(engine, state, act) {
  if (engine.state !== "waiting" || !(engine.messages || engine.tasks)) return nothing;
  const why = engineWhy(engine, state);
  const what = counted(engine);
  const off = Boolean(state.pending.engine);
  return banner(
    "warn",
    t("engine.waits", { why: engine.reason ? `${why} (${engine.reason})` : why, what }),
    html`${button(t("engine.try"), () => act.tryEngine(engine.engine), { off })}
    ${button(t("engine.without"), () => act.useEngine("builtin"), { off })}`,
  );
}

/** @param {EngineStatus} engine @param {State} state  Why an engine is unavailable. */
export function engineWhy(engine, state) {
  const { until: at, want } = engine;
  const known = want === "limited" && at ? Date.parse(at) : 0;
  if (known <= state.now) return wantWords(want ?? "unready", engine.engine);
  const isToday = dayKey(known) === dayKey(state.now);
  const until = isToday ? clockTime(known, language()) : dayTime(known, language());
  return t("engine.until", { engine: engine.engine, until });
}

/** @param {string} want @param {string} engine  What an engine lacks, in a few words. */
export function wantWords(want, engine) {
  const hasKey = !["codex", "opencode", "local", "builtin", "command"].includes(engine);
  return t(`engine.${want === "logged_out" && hasKey ? "no_key" : want}`, { engine });
}

/** @param {BudgetStatus} budget @param {State} state  What waits for tokens, and until when. */
function budgetBanner(budget, state) {
  const waits = budget.messages + budget.tasks > 0;
  const until = budget.until ? Date.parse(budget.until) : 0;
  if (!waits || until <= state.now) return nothing;
  const what = counted(budget);
  const words = t("budget.waits", { what, until: dayTime(until, language()) });
  return banner("warn", words, html`<code>mimikit usage --set-daily</code>`);
}

/** @param {{messages: number, tasks: number}} waiting  How many of each wait. */
function counted({ messages, tasks }) {
  const counts = [messages && tn("engine.messages", messages), tasks && tn("engine.tasks", tasks)];
  return counts.filter(Boolean).join(t("list.and"));
}

/** @param {"info" | "warn" | "danger"} tone @param {string} text @param {unknown} [extra] */
function banner(tone, text, extra = nothing) {
  return html`<div class="banner banner-${tone}" role=${tone === "danger" ? "alert" : "status"}>
    ${icon(tone === "info" ? "info" : "alert")}
    <p>${text} ${extra}</p>
  </div>`;
}

/** @param {State} state @param {Actions} act */
export function noticesView(state, act) {
  return html`<div class="notices" role="status" aria-live="polite">
    ${state.notices.map(
      (notice) =>
        html`<div class="notice notice-${notice.tone}">
          <p>${notice.text}</p>
          ${iconButton("x", t("notice.dismiss"), () => act.dismiss(notice.id))}
        </div>`,
    )}
  </div>`;
}
