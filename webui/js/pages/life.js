/** Improvements while idle, notification channels, limits: what is known of them and can be done. */

import { t } from "../core/i18n.js";
import { newId } from "../core/ids.js";
import { Resource, SettingsPage } from "../core/resource.js";

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

export class LifeActions extends SettingsPage {
  /** @param {Store} store @param {Api} api @param {Actions} page */
  constructor(store, api, page) {
    super(store, api, page, "life", async () => {
      const [selfAwake, notify] = await Promise.all([api.selfAwake(), api.notify()]);
      const { values } = await api.settings();
      return { selfAwake, notify, values };
    });
    this.diff = new Resource(api.branchDiff, ({ data = null, error }, branch) => {
      const { shown } = store.state.life;
      const why = error ? page.why(error) : "";
      if (shown && shown.branch === branch) this.set({ shown: { ...shown, diff: data, error: why } });
    });
  }

  /** @param {Partial<LifePage>} values */
  set(values) {
    this.store.patch("life", values);
  }

  /** @param {"on" | "off" | "run" | "discard"} action @param {string} [target]  The branch. */
  async selfAwake(action, target = "") {
    const what = { on: "edit", off: "edit", run: "run", discard: "remove" }[action];
    const body = { action, target, id: newId("cmd") };
    await this.ordered("selfAwake", what, () => this.api.changeSelfAwake(body));
  }

  /** @param {string} branch  Its diff is loaded and shown, or no more. */
  async showDiff(branch) {
    if (this.store.state.life.shown?.branch === branch) return this.set({ shown: null });
    this.set({ shown: { branch, diff: null, error: "", unfolded: {} } });
    await this.diff.load(branch);
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
