/** The side panel: home, tasks, triggers and memory; on a narrow screen a page of its own. */

import { html, icon, nothing } from "../core/html.js";
import { t } from "../core/i18n.js";
import { backlogView } from "../pages/backlog.js";
import { enginesView } from "../pages/engines-view.js";
import { panelEdge } from "./panel-edge.js";
import { homeView } from "../pages/home.js";
import { places } from "./header.js";
import { lifeView } from "../pages/life-view.js";
import { memoryView } from "../pages/memory-view.js";
import { noteFormView, noteView } from "../pages/note.js";
import { taskView } from "../pages/task.js";
import { tasksView } from "../pages/tasks.js";
import { triggerFormView } from "../pages/trigger-fields.js";
import { triggersView, triggerView } from "../pages/triggers.js";
import { usageView } from "../pages/usage.js";

/** Pages that are a form: their buttons stand at the bottom. */
const FORMS = new Set(["triggerNew", "triggerEdit", "noteNew", "noteEdit"]);

/** @param {State} state @param {Actions} act */
export function panelView(state, act) {
  const away = state.wide ? state.panel !== "side" : state.route.view === "chat";
  return html`<div class="panel ${away ? "is-away" : ""}" id="panel" ?inert=${away}>
    ${state.wide ? html`${panelEdge()}<div class="panel-head">${places(state)}${pageButton(act)}</div>` : nothing}
    <div
      class="panel-body ${FORMS.has(state.route.view) ? "is-form" : ""}"
      id="panel-body"
      tabindex="0"
      role="region"
      aria-label=${t("panel.title")}
    >
      ${bodyView(state, act)}
    </div>
  </div>`;
}

/** @param {Actions} act  To have the panel on the whole page, and the chat as a place beside it. */
function pageButton(act) {
  return html`<button
    type="button"
    class="icon-button"
    aria-label=${t("panel.page")}
    title=${t("panel.page")}
    @click=${() => act.layPanel("page")}
  >
    ${icon("expand")}
  </button>`;
}

/** @param {State} state @param {Actions} act */
function bodyView(state, act) {
  switch (state.route.view) {
    case "chat":
    case "home":
      return homeView(state, act);
    case "task":
      return taskView(state, act);
    case "triggers":
      return triggersView(state, act);
    case "trigger":
      return triggerView(state, act);
    case "triggerNew":
    case "triggerEdit":
      return triggerFormView(state, act);
    case "memory":
      return memoryView(state, act);
    case "note":
      return noteView(state, act);
    case "noteNew":
    case "noteEdit":
      return noteFormView(state, act);
    case "backlog":
      return backlogView(state, act);
    case "engines":
      return enginesView(state, act);
    case "life":
      return lifeView(state, act);
    case "usage":
      return usageView(state, act);
    default:
      return tasksView(state, act);
  }
}
