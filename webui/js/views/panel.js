/** The side panel: tasks and triggers; on a narrow screen a page of its own. */

import { html, nothing } from "../html.js";
import { t } from "../i18n.js";
import { places } from "./header.js";
import { taskView } from "./task.js";
import { tasksView } from "./tasks.js";
import { triggerFormView } from "./trigger-form.js";
import { triggerView } from "./trigger.js";
import { triggersView } from "./triggers.js";

/**
 * @param {import("../types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
export function panelView(state, act) {
  const away = state.wide ? !state.panelOpen : state.route.view === "chat";
  return html`<div class="panel ${away ? "is-away" : ""}" id="panel" ?inert=${away}>
    ${state.wide ? html`<div class="panel-head">${places(state)}</div>` : nothing}
    <div
      class="panel-body"
      id="panel-body"
      tabindex="0"
      role="region"
      aria-label=${t("panel.title")}
    >
      ${bodyView(state, act)}
    </div>
  </div>`;
}

/**
 * @param {import("../types.js").State} state
 * @param {import("../actions.js").Actions} act
 */
function bodyView(state, act) {
  switch (state.route.view) {
    case "task":
      return taskView(state, act);
    case "triggers":
      return triggersView(state, act);
    case "trigger":
      return triggerView(state, act);
    case "triggerNew":
    case "triggerEdit":
      return triggerFormView(state, act);
    default:
      return tasksView(state, act);
  }
}
