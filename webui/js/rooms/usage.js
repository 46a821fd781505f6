/** What the page of usage needs beside its view. */

import { UsageKeeper } from "../usage-keeper.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, hands, timers }) {
  const keeper = new UsageKeeper(store, api, timers);
  hands.reloadUsage = () => void keeper.load();
  return (state, before) => keeper.onChange(state, before);
}
