/** Improvements while idle, notification channels, limits: what is known of them and can be done. */

import { t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { Resource, withLoaded } from "../core/resource.js";

/** What was ordered shows with the consumer's next heartbeats. */
const SETTLED_MS = [1500, 6000];
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/\S+$/i;
/** Settings that are numbers; the others are text. */
export const NUMBERS = ["budget.daily_tokens", "budget.per_task_tokens", "retention.days"];
export const QUIET = "notify.quiet";

/** @returns {LifePage} nothing is known, nothing typed */
export function noLife() {
  const channel = { name: "", url: "", errors: {} };
  const known = { selfAwake: null, notify: null, values: {} };
  return { load: "idle", error: "", ...known, typed: {}, errors: {}, channel, shown: null };
}

/** @param {string} url @param {string[]} taken  A name for its channel: that of the service. */
export function nameOf(url, taken) {
  const kind = url.split("://")[0].toLowerCase().replace(/[^a-z0-9]/g, "").slice(0, 20) || "channel";
  let name = kind;
  for (let number = 2; taken.includes(name); number++) name = `${kind}-${number}`;
  return name;
}

/** @param {LifePage["channel"]} channel @param {string[]} taken  What is wrong, by field. */
export function wrongChannel({ name, url }, taken) {
  /** @type {Record<string, string>} */
  const wrong = {};
  if (!ADDRESS.test(url.trim())) wrong.url = t("notify.wrongUrl");
  if (name && !NAME.test(name)) wrong.name = t("notify.wrongName");
  if (taken.includes(name)) wrong.name = t("notify.takenName");
  return wrong;
}

/** @param {string} key @param {string} text  As it is sent; null: the default; undefined: not valid. */
export function valueOf(key, text) {
  const plain = text.trim().replace(/[\s,_]/g, "");
  if (!plain) return null;
  if (NUMBERS.includes(key)) return /^[1-9]\d{0,14}$/.test(plain) ? Number(plain) : undefined;
  return /^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/.test(plain) ? plain : undefined;
}

export class LifeActions {
  /** @param {Store} store @param {Api} api @param {Actions} page */
  constructor(store, api, page) {
    this.store = store;
    this.api = api;
    this.page = page;
    const request = async () => {
      const all = [api.selfAwake(), api.notify(), api.settings()];
      const [selfAwake, notify, { values }] = await Promise.all(all);
      return { selfAwake, notify, values };
    };
    this.all = new Resource(request, (loaded) => {
      const error = loaded.error ? page.why(loaded.error) : "";
      this.set({ ...withLoaded(store.state.life, loaded), error });
    });
  }

  /** @param {Partial<LifePage>} values */
  set(values) {
    this.store.patch("life", values);
  }

  /** @param {State} state @param {State} before  It may have begun or ended something meanwhile. */
  onChange(state, before) {
    if (state.session !== "in" || state.route.view !== "life") return;
    const came = before.route.view !== "life" || before.session !== "in";
    const one = (/** @type {State} */ { status }) =>
      JSON.stringify([status?.consumer, status?.usage.runs, status?.workers.busy]);
    if (came) void this.all.load();
    else if (one(state) !== one(before)) this.all.soon(() => void this.all.load(), SETTLED_MS[0]);
  }

  /** @private @param {string} id @param {string} what @param {() => Promise<any>} act */
  async ordered(id, what, act) {
    if (this.store.state.pending[id]) return false;
    const done = await this.page.ordered(id, what, true, act);
    for (const ms of done ? [0, ...SETTLED_MS] : []) setTimeout(() => void this.all.load(), ms);
    return done;
  }

  /** @param {"on" | "off" | "run" | "discard"} action @param {string} [target]  The branch. */
  async selfAwake(action, target = "") {
    const what = { on: "edit", off: "edit", run: "run", discard: "remove" }[action];
    const body = { action, target, id: newId("cmd") };
    if (action === "discard") this.store.set({ confirming: "" });
    await this.ordered("selfAwake", what, () => this.api.changeSelfAwake(body));
  }

  /** @param {string} branch  Its diff is loaded and shown, or no more. */
  async showDiff(branch) {
    if (this.store.state.life.shown?.branch === branch) return this.set({ shown: null });
    const shown = { branch, diff: null, error: "", unfolded: {} };
    this.set({ shown });
    try {
      const diff = await this.api.branchDiff(branch);
      this.set({ shown: { ...shown, diff } });
    } catch (error) {
      this.set({ shown: { ...shown, error: this.page.why(error) } });
    }
  }

  /** @param {string} key @param {boolean} open  A file of the diff, or a part of it. */
  unfold(key, open) {
    const { shown } = this.store.state.life;
    if (shown) this.set({ shown: { ...shown, unfolded: { ...shown.unfolded, [key]: open } } });
  }

  /** @param {Partial<LifePage["channel"]>} values */
  editChannel(values) {
    this.set({ channel: { ...this.store.state.life.channel, ...values, errors: {} } });
  }

  async addChannel() {
    const { channel, notify } = this.store.state.life;
    const taken = (notify?.channels ?? []).map(({ name }) => name);
    const errors = wrongChannel(channel, taken);
    if (Object.keys(errors).length) return this.wrong(errors);
    const name = channel.name || nameOf(channel.url, taken);
    const body = { action: /** @type {const} */ ("add"), name, url: channel.url.trim() };
    const done = await this.ordered("channels", "edit", async () => {
      try {
        return await this.api.changeNotify(body);
      } catch (error) {
        this.wrong({ url: this.page.why(error) });
        throw error;
      }
    });
    if (done) this.set({ channel: noLife().channel });
  }

  /** @private @param {Record<string, string>} errors */
  wrong(errors) {
    this.set({ channel: { ...this.store.state.life.channel, errors } });
    this.page.focus("#notify-form [aria-invalid=true]");
  }

  /** @param {"test" | "remove"} action @param {string} name */
  async channel(action, name) {
    this.store.set({ confirming: "" });
    await this.ordered("channels", action, () => this.api.changeNotify({ action, name }));
  }

  /** @param {string} key @param {string} text */
  type(key, text) {
    const { typed, errors } = this.store.state.life;
    this.set({ typed: { ...typed, [key]: text }, errors: { ...errors, [key]: "" } });
  }

  /** Each setting that was typed is sent; the first that is refused ends it. */
  async save() {
    for (const [key, text] of Object.entries(this.store.state.life.typed)) {
      const value = valueOf(key, text);
      if (value === undefined) {
        this.set({ errors: { [key]: t(key === QUIET ? "life.wrongQuiet" : "life.wrongNumber") } });
        return this.page.focus("#life-form [aria-invalid=true]");
      }
      const body = { key, value, id: newId("cmd") };
      if (!(await this.ordered("settings", "edit", () => this.api.changeSetting(body)))) return;
      const { [key]: _, ...typed } = this.store.state.life.typed;
      this.set({ typed, values: { ...this.store.state.life.values, [key]: value } });
    }
  }
}
