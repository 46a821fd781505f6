/** A chain as an indented list: each step below what it follows. */

import { html, nothing } from "../core/html.js";
import { language, t } from "../core/i18n.js";
import { said, sectionView, stateIcon, word } from "../ui/parts.js";

/** @param {ChainStep[]} chain @param {string} own the step one looks at @param {State} state */
export function chainView(chain, own, state) {
  if (chain.filter(({ id }) => taskOf(id, state)?.seat !== "planner").length < 2) return nothing;
  const title = t("chain.title");
  const steps = chain.map((step, at) => {
    const above = chain.slice(0, at).findLast((one) => one.depth < step.depth);
    const after = step.after.filter((link) => link.id !== above?.id); // its place says it
    return stepView({ ...step, after }, own, state);
  });
  return sectionView(title, html`<ol class="trace" aria-label=${title}>${steps}</ol>`, "chain");
}

/** @param {string} id @param {State} state */
const taskOf = (id, { tasks, detail }) => tasks[id] ?? detail?.trace.find((one) => one.id === id);

/** @param {ChainStep} step @param {string} own @param {State} state  The stream is newer than the list. */
function stepView({ id, kind, title, depth, after, state: was }, own, state) {
  const task = taskOf(id, state);
  const now = task?.state ?? was;
  const what = task?.seat === "planner" ? t("state.planning") : t(`chain.${kind}`);
  const name = title || id;
  const joint = language() === "zh" ? "；" : "; ";
  return html`<li class="depth-${Math.min(depth, 4)}">
    <a href=${`#/${kind}/${id}`} aria-current=${id === own ? "true" : "false"}
      >${stateIcon(now)}<span class="row-title" title=${name}>${name}</span
      ><span class="trace-seat">${what} · ${word("state", now)}</span></a
    >
    ${after.length ? html`<p class="trace-after">${after.map(afterView).join(joint)}</p>` : nothing}
  </li>`;
}

/** @param {ChainLink} link */
function afterView({ id, title, words }) {
  const why = said(words);
  return t(why ? "chain.afterWhy" : "chain.after", { title: title || id, words: why });
}
