/** What the user can do with channels of notifications: look, set up, test, remove. */

import { t } from "./i18n.js";
import { newId } from "./ids.js";

/**
 * @typedef {import("./state-types.js").State} State
 * @typedef {import("./state-types.js").ChannelForm} ChannelForm
 * @typedef {import("./state-types.js").ChannelsPage} ChannelsPage
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./api.js").Api} Api
 * @typedef {import("./engine-actions.js").Help} Help
 */

/** What a channel may be for, in the order in which it is shown. */
export const EVENTS = /** @type {const} */ ([
  "reminder",
  "question",
  "failed",
  "breaker",
  "canceled",
  "done",
]);
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const ADDRESS = /^[a-zA-Z][a-zA-Z0-9+.-]*:\/\//;
const SETTLED_MS = 1500;

export class ChannelActions {
  /** @param {Store} store @param {Api} api @param {Help} help */
  constructor(store, api, help) {
    this.store = store;
    this.api = api;
    this.help = help;
  }

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    if (state.session !== "in" || state.route.view !== "channels") return;
    if (before.route.view !== "channels" || before.session !== "in") void this.load();
  }

  async load() {
    if (this.store.state.route.view !== "channels") return;
    if (!this.page.list) this.set({ load: "loading" });
    try {
      this.set({ list: await this.api.channels(), load: "ready" });
    } catch (error) {
      if (!this.page.list) this.set({ load: "failed", error: this.help.words(error) });
      this.leave(error);
    }
  }

  /** @param {string} name  Of the channel that is changed; empty: a new one. */
  open(name) {
    const base = this.page.list?.channels.find((channel) => channel.name === name) ?? null;
    const events = base ? [...base.events] : [...EVENTS];
    this.set({ form: { base, name, url: "", events, errors: {}, busy: false }, removing: "" });
    this.help.focus(base ? "#channel-url" : "#channel-name");
  }

  close() {
    this.set({ form: null });
    this.help.focus("#channel-add");
  }

  /** @param {Partial<ChannelForm>} values */
  edit(values) {
    const { form } = this.page;
    if (!form || form.busy) return;
    const errors = { ...form.errors };
    for (const field of ["form", ...Object.keys(values)]) delete errors[field];
    this.set({ form: { ...form, ...values, errors } });
  }

  /** @param {(typeof EVENTS)[number]} event @param {boolean} wanted */
  choose(event, wanted) {
    const { form } = this.page;
    const chosen = EVENTS.filter((one) => (one === event ? wanted : form?.events.includes(one)));
    this.edit({ events: chosen });
  }

  async save() {
    const { form } = this.page;
    if (!form || form.busy) return;
    const errors = wrongOf(form);
    const isWrong = Object.keys(errors).length > 0;
    const begun = { ...form, errors, busy: !isWrong };
    this.set({ form: begun });
    if (isWrong) {
      this.help.focus("#channel-form [aria-invalid=true], #channel-form input");
      return;
    }
    try {
      const { name, url, events } = form;
      const answer = await this.api.keepChannel(name, { url: url.trim(), events, id: newId("cmd") });
      if (answer?.ok === false)
        throw Object.assign(new Error(answer.message), { status: 422, code: answer.code });
      this.set({ form: null });
      this.help.notify(t(answer?.command ? "order.accepted" : "order.edit"));
      this.help.focus("#channel-add");
      await this.settle();
    } catch (error) {
      this.refuse(begun, error);
    }
  }

  /** @param {string} name  A test goes out by it, now. */
  async test(name) {
    if (this.page.busy) return;
    this.set({ busy: name, tests: { ...this.page.tests, [name]: null } });
    try {
      const found = await this.api.testChannel(name, this.store.state.language);
      this.set({ tests: { ...this.page.tests, [name]: found } });
    } catch (error) {
      this.help.notify(this.help.words(error), "error");
      this.leave(error);
    } finally {
      this.set({ busy: "" });
    }
  }

  /** @param {string} name  Ask before it goes; empty: no more. */
  confirm(name) {
    this.set({ removing: name });
    if (name) this.help.focus("#channel-remove-no");
  }

  /** @param {string} name */
  async remove(name) {
    this.set({ removing: "" });
    try {
      const answer = await this.api.removeChannel(name, newId("cmd"));
      if (answer?.ok === false) this.help.notify(this.help.words(answer), "error");
      else this.help.notify(t(answer?.command ? "order.accepted" : "order.remove"));
      await this.settle();
    } catch (error) {
      this.help.notify(this.help.words(error), "error");
      this.leave(error);
    }
    this.help.focus("#channel-add");
  }

  /** @private  Where nobody was there to do it at once it may be done a moment later. */
  async settle() {
    this.help.later(() => void this.load(), SETTLED_MS);
    await this.load();
  }

  /** @private @param {ChannelForm} begun @param {any} error */
  refuse(begun, error) {
    const field = ["name", "url"].includes(error?.field) ? error.field : "form";
    if (this.page.form === begun)
      this.set({ form: { ...begun, busy: false, errors: { [field]: this.help.words(error) } } });
    this.help.focus("#channel-form [aria-invalid=true], #channel-form-error");
    this.leave(error);
  }

  /** @private @param {any} error */
  leave(error) {
    if (error?.status === 401) this.help.signOut();
  }

  /** @private @returns {ChannelsPage} */
  get page() {
    return this.store.state.channels;
  }

  /** @private @param {Partial<ChannelsPage>} values */
  set(values) {
    this.store.set({ channels: { ...this.page, ...values } });
  }
}

/** @param {ChannelForm} form  What is wrong with it, by field, in the reader's words. */
function wrongOf({ base, name, url, events }) {
  /** @type {Record<string, string>} */
  const wrong = {};
  if (!NAME.test(name)) wrong.name = t("channels.wrongName");
  if (url.trim() ? !ADDRESS.test(url.trim()) : !base) wrong.url = t("channels.wrongUrl");
  if (!events.length) wrong.form = t("channels.wrongEvents");
  return wrong;
}
