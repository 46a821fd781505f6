/** A chain as an indented list: each step below what it follows. */

import { html, nothing } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { said, stateIcon, word } from "../ui/parts.js";

/** @param {ChainStep[]} chain @param {string} own the step one looks at @param {State} state */
export function chainView(chain, own, state) {
  if (chain.length < 2) return nothing;
  return html`<section class="chain">
    <h3>${t("chain.title")}</h3>
    <ol class="trace" aria-label=${t("chain.title")}>
      ${chain.map((step) => stepView(step, own, state))}
    </ol>
  </section>`;
}

/** @param {ChainStep} step @param {string} own @param {State} state */
function stepView(step, own, state) {
  const task = step.kind === "task" ? taskOf(step.id, state) : undefined;
  const now = task?.state ?? step.state; // the stream is newer than the list
  const kind = task?.seat === "planner" ? t("state.planning") : t(`chain.${step.kind}`);
  const title = step.title || step.id;
  return html`<li class="depth-${Math.min(step.depth, 4)}">
    <a
      href=${step.kind === "trigger" ? `#/trigger/${step.id}` : `#/task/${step.id}`}
      aria-current=${step.id === own ? "true" : "false"}
      >${stateIcon(now)}<span class="row-title" title=${title}>${title}</span
      ><span class="trace-seat">${kind} · ${word("state", now)}</span></a
    >
    ${step.after.length ? html`<p class="trace-after">${step.after.map(afterView).join(joint())}</p>` : nothing}
  </li>`;
}

/** @param {string} id @param {State} state */
function taskOf(id, state) {
  return state.tasks[id] ?? state.detail?.trace.find((task) => task.id === id);
}

const joint = () => (language() === "zh" ? "；" : "; ");

/** @param {ChainLink} link */
function afterView(link) {
  const title = link.title || link.id;
  const words = said(link.words);
  return words ? t("chain.afterWhy", { title, words }) : t("chain.after", { title });
}
