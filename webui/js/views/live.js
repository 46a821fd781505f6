/** What goes on right now, in one line. */

import { happening } from "../cards.js";
import { html, nothing } from "../html.js";
import { t, tn } from "../i18n.js";
import { live } from "../select.js";
import { shown } from "../shown.js";
import { elapsed } from "../time.js";
import { stopView } from "./turn.js";

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
export function liveView(state, act) {
  const now = live(state);
  const goesOn = happening(state);
  const parts = goesOn ? partsOf(goesOn) : [];
  return html`<p class="sr-only" role="status">${parts.map((part) => part.name).join(" · ")}</p>
    <div class="live-slot">${now && parts.length ? lineView(state, act, now, parts) : nothing}</div>`;
}

/**
 * @param {import("../cards.js").Happening} goesOn
 * @returns {{name: string, since: number, headline: string, isBeside?: boolean}[]}
 */
function partsOf({ reply, running, planning }) {
  const parts = [];
  if (reply) parts.push({ name: t("live.reply"), since: reply.since, headline: shown(reply.headline) });
  const groups = /** @type {const} */ ([
    [running, reply ? "stop.also" : "stop.running"],
    [planning, "live.planning"],
  ]);
  for (const [jobs, words] of groups) {
    if (!jobs.length) continue;
    const titles = jobs.map((job) => shown(job.title)).join(t("list.and"));
    const since = Date.parse(jobs[0].startedAt ?? jobs[0].createdAt);
    const isBeside = jobs === running && Boolean(reply);
    parts.push({ name: t(words, { titles }), since, headline: shown(jobs[0].headline), isBeside });
  }
  return parts;
}

/**
 * @param {import("../state-types.js").State} state
 * @param {import("../actions.js").Actions} act
 * @param {import("../select.js").Live} now
 * @param {ReturnType<typeof partsOf>} parts
 */
function lineView(state, act, now, parts) {
  const headline = parts.find((part) => part.headline)?.headline ?? "";
  return html`<div class="live" id="live">
    <span class="pulse"></span>
    <span class="live-parts">
      ${parts.map(
        (part) =>
          html`<span class="live-part ${part.isBeside ? "also" : ""}"
            ><span class="live-name" title=${part.name}>${part.name}</span
            ><span class="ticking" aria-hidden="true">${elapsed(state.now - part.since)}</span></span
          >`,
      )}
      ${headline ? html`<span class="headline" title=${headline}>${headline}</span>` : nothing}
    </span>
    ${stopView(state, act, now)}
  </div>`;
}
