/** What the list of work and its pages need beside their views. */

import { DetailKeeper } from "../detail.js";
import { WorkKeeper } from "../work-keeper.js";

/** @type {import("../places.js").Begin} */
export function begin({ store, api, actions, hands, timers }) {
  const detail = new DetailKeeper(store, api);
  const work = new WorkKeeper(store, api, { ...timers, words: actions.help.words });
  hands.reloadTask = (id) => void detail.load(id);
  hands.fillOutput = (id, from, to) => void detail.fillOutput(id, from, to);
  hands.reloadWork = () => void work.load();
  hands.loadWork = () => void work.load(true);
  hands.loadJob = (id) => void work.loadJob(id);
  return (state, before) => {
    detail.onChange(state, before);
    work.onChange(state, before);
  };
}
