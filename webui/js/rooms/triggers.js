/** What the pages of triggers need beside their views. */

import { ownZone } from "../actions.js";
import { FormActions } from "../form-actions.js";
import { addActions } from "../state.js";
import { TRIGGER_ACTIONS } from "../trigger-state.js";
import { TriggerKeeper } from "../trigger-keeper.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, actions, hands, timers }) {
  addActions(TRIGGER_ACTIONS);
  const keeper = new TriggerKeeper(store, api, { ...timers, zone: ownZone });
  hands.reloadTrigger = (id) => void keeper.load(id);
  actions.forms = new FormActions(store, api, {
    ...actions.help,
    zone: ownZone,
    go: (route) => actions.go(route),
    focusError: hands.focusError,
    focusRow: hands.focusRow,
  });
  return (state, before) => keeper.onChange(state, before);
}
