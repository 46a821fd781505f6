/** What a run put out: loaded in pages from both ends, followed while it runs, marked where it lacks. */

import { guard, html, icon, nothing } from "../html.js";
import { language, t } from "../i18n.js";
import { outputParts } from "../output.js";
import { shown } from "../shown.js";
import { fileSize } from "../time.js";
import { word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../state-types.js").TaskDetail} TaskDetail
 * @typedef {import("../state-types.js").OutputBlock} OutputBlock
 * @typedef {import("../actions.js").Actions} Actions
 */

/** @param {TaskDetail} detail @param {State} state @param {Actions} act */
export function outputView({ id, output, task }, state, act) {
  const { pages, load } = output;
  const running = task?.state === "running";
  const has = pages.some((page) => page.blocks.length);
  if (!has && !running && load !== "failed") return nothing;
  return html`<section class="output-section">
    <div class="output-head">
      <h3>${t("task.output")}</h3>
      <div class="output-tools">
        <button
          type="button"
          class="link"
          aria-pressed=${state.wraps ? "true" : "false"}
          @click=${() => act.tasks.wrapOutput(!state.wraps)}
        >
          ${t("output.wrap")}
        </button>
        ${has ? toolsView(id, state, act) : nothing}
      </div>
    </div>
    ${load === "failed" ? html`<p class="error-text">${t("task.outputFailed")}</p>` : nothing}
    <div
      class="output ${state.wraps ? "" : "is-unwrapped"}"
      id="output"
      tabindex="0"
      role="region"
      aria-label=${t("task.output")}
    >
      ${
        has
          ? outputParts(output).map((part) =>
              "page" in part
                ? guard([part.page, running, language()], () => pageView(part.page.blocks, running))
                : unloadedView(id, part, output.busy === part.from, act),
            )
          : html`<span class="muted">${t("task.noOutput")}</span>`
      }
    </div>
  </section>`;
}

/** @param {string} id @param {State} state @param {Actions} act */
function toolsView(id, state, act) {
  const busy = Boolean(state.pending[`output ${id}`]);
  return html`<button
      type="button"
      class="link"
      ?disabled=${busy}
      @click=${() => act.tasks.copyOutput(id)}
    >
      ${icon("copy")}${t("output.copy")}</button
    ><button
      type="button"
      class="link"
      ?disabled=${busy}
      @click=${() => act.tasks.saveOutput(id)}
    >
      ${icon("down")}${t("output.save")}
    </button>`;
}

/** @param {string} id @param {{from: number, to: number}} place @param {boolean} busy @param {Actions} act */
function unloadedView(id, { from, to }, busy, act) {
  return html`<button
    type="button"
    class="output-more"
    ?disabled=${busy}
    @click=${() => act.hands.fillOutput(id, from, to)}
  >
    ${busy ? html`<span class="spinner"></span>` : icon("down")}
    ${t("output.more", { size: fileSize(to - from, language()) })}
  </button>`;
}

/** @param {OutputBlock[]} blocks @param {boolean} running */
function pageView(blocks, running) {
  return blocks.map((block) => blockView(block, running));
}

/** @param {OutputBlock} block @param {boolean} running */
function blockView(block, running) {
  const { type, text } = block;
  if (type === "gap") return gapView(block, running);
  if (type === "started") {
    return html`<span class="out out-gap">${t("output.attempt", { n: block.attempt ?? 0 })}</span>`;
  }
  if (type === "output" || type === "delta") {
    if (block.stream !== "stderr") return html`<span class="out out-flow">${shown(text)}</span>`;
    return html`<span class="out stderr" role="group" aria-label=${t("output.stderr")}
      >${shown(text)}</span
    >`;
  }
  return html`<span class="out out-${type}"
      ><span class="out-tag">${word("output", type)}</span>${shown(text)}</span
    >${block.printed || block.bytes ? printedView(block, running) : nothing}`;
}

/** @param {OutputBlock} block @param {boolean} running  What a command of an agent printed. */
function printedView(block, running) {
  return html`${block.bytes ? gapView(block, running) : nothing}${
    block.printed ? html`<span class="out out-printed">${shown(block.printed)}</span>` : nothing
  }`;
}

/** @param {OutputBlock} block @param {boolean} running */
function gapView({ bytes = 0, open = false }, running) {
  const size = fileSize(bytes, language());
  const words = open && !bytes ? t(running ? "output.gapOpen" : "output.gapUnknown") : t("output.gap", { size });
  return html`<span class="out out-gap">${words}</span>`;
}
