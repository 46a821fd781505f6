/** What the page of search needs beside its view. */

import { SearchKeeper } from "../search-keeper.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, actions, hands, timers }) {
  const keeper = new SearchKeeper(store, api, {
    ...timers,
    words: actions.help.words,
    replace: (hash) => history.replaceState(history.state, "", hash),
  });
  hands.settleSearch = () => keeper.settle();
  return (state, before) => keeper.onChange(state, before);
}
