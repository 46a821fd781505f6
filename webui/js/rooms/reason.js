/** What the page that says why a reply is as it is needs beside its view. */

import { ReasonKeeper } from "../reason-keeper.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, hands }) {
  const keeper = new ReasonKeeper(store, api);
  hands.reloadReason = () => keeper.again();
  return (state) => keeper.onChange(state);
}
