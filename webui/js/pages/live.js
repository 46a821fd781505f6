/** What goes on right now, in one line. */

import { html, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { live } from "../core/select.js";
import { elapsed } from "../core/time.js";
import { button } from "../ui/parts.js";

const STOP = { sign: "stop", look: "stop" };

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
      ${parts.map(({ name, since }) => partView(name, since === null ? "" : elapsed(state.now - since)))}
      ${now.headline ? html`<span class="headline" title=${now.headline}>${now.headline}</span>` : nothing}
    </span>
    ${besideView(now, act)}
    ${now.turnId ? button(t("stop.button"), () => act.stop(), { ...STOP, title: t("stop.turn") }) : nothing}
  </div>`;
}

/** @param {string} name @param {string} time  Who is at it, and for how long. */
function partView(name, time) {
  return html`<span class="live-part"
    >${name} ${time && html`<span class="ticking" aria-hidden="true">${time}</span>`}</span
  >`;
}

/** @param {Live} now @param {Actions} act  What runs beside the reply: Stop leaves it alone. */
function besideView(now, act) {
  const [task, ...others] = now.running;
  if (!task) return nothing;
  return html`<span class="beside">
    <a href="#/task/${task.id}" title=${task.title}>${t("stop.beside", { title: task.title })}</a>
    ${others.length ? html`<a href="#/tasks">+${others.length}</a>` : nothing}
    ${button(t("stop.task"), () => act.ask(`stop ${task.id}`), { look: "link" })}
  </span>`;
}

/** @param {{id: string, title: string}} task @param {Actions} act */
function confirmView(task, act) {
  return html`<div class="live" id="live" role="group" aria-label=${t("stop.button")}>
    <span class="headline">${t("stop.ask", { title: task.title })}</span>
    ${button(t("stop.button"), () => act.stopTask(task.id), STOP)}
    ${button(t("stop.keep"), () => act.keep(), { look: "link", id: "keep" })}
  </div>`;
}
