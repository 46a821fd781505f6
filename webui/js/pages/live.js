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
  if (now?.workers.count) {
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
  const titles = now.stoppable.map((one) => one.title || t("stop.turn")).join("\n");
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
    ${
      now.stoppable.length
        ? html`<button type="button" class="stop" title=${titles} @click=${() => act.stop()}>
            ${icon("stop")}${t("stop.button")}
          </button>`
        : nothing
    }
  </div>`;
}
