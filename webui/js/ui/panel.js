/** The side panel: home, tasks, triggers and memory; on a narrow screen a page of its own. */

import { html, nothing } from "../core/html.js";
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
import { iconButton } from "./parts.js";

/** @type {Record<Route["view"], (state: State, act: Actions) => unknown>} */
const BODIES = {
  chat: homeView,
  home: homeView,
  tasks: tasksView,
  task: taskView,
  triggers: triggersView,
  trigger: triggerView,
  triggerNew: triggerFormView,
  triggerEdit: triggerFormView,
  memory: memoryView,
  note: noteView,
  noteNew: noteFormView,
  noteEdit: noteFormView,
  backlog: backlogView,
  engines: enginesView,
  life: lifeView,
  usage: usageView,
};
/** Pages that are a form: their buttons stand at the bottom. */
const FORMS = new Set(["triggerNew", "triggerEdit", "noteNew", "noteEdit"]);

/** @param {State} state @param {Actions} act */
export function panelView(state, act) {
  const toPage = () => act.layPanel("page"); // the chat is a place beside it then
  const away = state.wide ? state.panel !== "side" : state.route.view === "chat";
  return html`<div class="panel ${away ? "is-away" : ""}" id="panel" ?inert=${away}>
    ${
      state.wide
        ? html`${panelEdge()}
            <div class="panel-head">
              ${places(state)}${iconButton("expand", t("panel.page"), toPage, { look: "icon-button" })}
            </div>`
        : nothing
    }
    <div
      class="panel-body ${FORMS.has(state.route.view) ? "is-form" : ""}"
      id="panel-body"
      tabindex="0"
      role="region"
      aria-label=${t("panel.title")}
    >
      ${BODIES[state.route.view](state, act)}
    </div>
  </div>`;
}
