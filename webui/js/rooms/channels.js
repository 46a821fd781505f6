/** What the page of channels needs beside its view. */

import { ChannelActions } from "../channel-actions.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, actions, hands, timers }) {
  actions.channels = new ChannelActions(store, api, {
    ...actions.help,
    focus: hands.focus,
    later: timers.later,
  });
  return (state, before) => actions.channels.onChange(state, before);
}
