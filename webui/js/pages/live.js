/** What goes on right now, in one line. */

import { html, icon, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { live } from "../core/select.js";
import { elapsed } from "../core/time.js";

/** @param {State} state @param {Actions} act */
export function liveView(state, act) {
  const now = live(state);
  /** @type {{name: string, since: number | null}[]} */
  const parts = [];
  if (now && now.teller !== null) parts.push({ name: t("live.teller"), since: now.teller });
  if (now && now.planner !== null) parts.push({ name: t("live.planner"), since: now.planner });
  if (now?.workers.count && (now.turnId === null || !now.running.length)) {
    parts.push({ name: tn("live.workers", now.workers.count), since: now.workers.since });
  }
  return html`<p class="sr-only" role="status">${parts.map((part) => part.name).join(" · ")}</p>
    <div class="live-slot">${now ? lineView(state, act, now, parts) : nothing}</div>`;
}

/**
 * @param {State} state
 * @param {Actions} act
 * @param {Live} now
 * @param {{name: string, since: number | null}[]} parts
 */
function lineView(state, act, now, parts) {
  const asked = now.running.find((task) => state.confirming === `stop ${task.id}`);
  if (asked) return confirmView(asked, act);
  return html`<div class="live" id="live">
    <span class="pulse"></span>
    <span class="live-parts">
      ${parts.map(
        (part) =>
          html`<span class="live-part"
            >${part.name}${
              part.since === null
                ? nothing
                : html` <span class="ticking" aria-hidden="true"
                    >${elapsed(state.now - part.since)}</span
                  >`
            }</span
          >`,
      )}
      ${now.headline ? html`<span class="headline" title=${now.headline}>${now.headline}</span>` : nothing}
    </span>
    ${besideView(now, act)}
    ${
      now.turnId
        ? html`<button type="button" class="stop" title=${t("stop.turn")} @click=${() => act.stop()}>
            ${icon("stop")}${t("stop.button")}
          </button>`
        : nothing
    }
  </div>`;
}

/**
 * What runs beside the reply: Stop leaves it alone, and to end it is asked about.
 *
 * @param {Live} now
 * @param {Actions} act
 */
function besideView(now, act) {
  const [task, ...others] = now.running;
  if (!task) return nothing;
  return html`<span class="beside">
    <a href="#/task/${task.id}" title=${task.title}>${t("stop.beside", { title: task.title })}</a>
    ${others.length ? html`<a href="#/tasks">+${others.length}</a>` : nothing}
    <button type="button" class="link" @click=${() => act.store.set({ confirming: `stop ${task.id}` })}>
      ${t("stop.task")}
    </button>
  </span>`;
}

/** @param {{id: string, title: string}} task @param {Actions} act */
function confirmView(task, act) {
  return html`<div class="live" id="live" role="group" aria-label=${t("stop.button")}>
    <span class="headline">${t("stop.ask", { title: task.title })}</span>
    <button type="button" class="stop" @click=${() => act.stopTask(task.id)}>
      ${icon("stop")}${t("stop.button")}
    </button>
    <button type="button" class="link" @click=${() => act.store.set({ confirming: "" })}>${t("stop.keep")}</button>
  </div>`;
}
