/** What the page of engines needs beside its view. */

import { EngineActions } from "../engine-actions.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, actions, hands, timers }) {
  actions.engines = new EngineActions(store, api, {
    ...actions.help,
    focus: hands.focus,
    later: timers.later,
  });
  return (state, before) => actions.engines.onChange(state, before);
}
