/** Keeps the opened trigger fresh: why it waits, what it did, and the form in which it is edited. */

import { newId } from "../core/ids.js";
import { Keeper } from "../core/keeper.js";
import { formOf, newForm, previewRequest } from "./trigger-form.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/state-types.js").TriggerForm} TriggerForm
 *
 * @typedef {import("../core/keeper.js").Timers & {zone: () => string}} Ports the reader's time zone
 */

/** What changed is asked for at most so often. */
export const REFRESH_MS = 400;
/** A condition may move without its trigger: it is looked at anew this often. */
export const STALE_MS = 30_000;
/** The server is asked about what is typed once the typing rests. */
export const REST_MS = 400;

/** Answers that say what is wrong with what was asked, not that it could not be looked at. */
const REFUSALS = new Set([400, 409, 422]);

/** @extends {Keeper<Ports>} */
export class TriggerKeeper extends Keeper {
  loadedAt = 0;

  /** @param {State} state @param {State} before */
  onChange(state, before) {
    this.keepDetail(state, before);
    this.keepForm(state);
  }

  // --- what it is

  /** @private @param {State} state @param {State} before */
  keepDetail(state, before) {
    const { route } = state;
    const open = route.view === "trigger" || route.view === "triggerEdit";
    const id = state.session === "in" && open ? route.id : null;
    if (id !== (state.triggerDetail?.id ?? null)) {
      this.store.dispatch({ type: "triggerOpened", id });
      if (id) void this.load(id);
      return;
    }
    if (id && this.isOutdated(id, state, before)) this.refresh(id);
  }

  /** @private @param {string} id @param {State} state @param {State} before */
  isOutdated(id, state, before) {
    if (state.triggers[id] !== before.triggers[id]) return true;
    if (state.connection === "online" && before.connection !== "online") return true;
    if (state.tasks !== before.tasks && this.concerns(id, state, before)) return true;
    return this.loadedAt > 0 && state.now - this.loadedAt > STALE_MS;
  }

  /** @private @param {string} id @param {State} state @param {State} before  A run of it, or a step of its chain. */
  concerns(id, state, before) {
    const steps = new Set(state.triggerDetail?.chain.map((step) => step.id));
    return Object.values(state.tasks).some(
      (task) =>
        (task.sourceTriggerId === id || steps.has(task.id)) &&
        task.state !== before.tasks[task.id]?.state,
    );
  }

  /** @private @param {string} id */
  refresh(id) {
    this.soon(() => {
      if (this.store.state.triggerDetail?.id === id) void this.load(id);
    }, REFRESH_MS);
  }

  /** @param {string} id */
  async load(id) {
    this.loadedAt = 0; // one at a time
    try {
      const answer = await this.api.triggerDetail(id, this.ports.zone());
      this.store.dispatch({ type: "triggerLoaded", id, answer });
    } catch (error) {
      const load = /** @type {any} */ (error)?.status === 404 ? "missing" : "failed";
      this.store.dispatch({ type: "triggerFailed", id, load });
    }
    this.loadedAt = this.store.state.now;
  }

  // --- its form

  /** @private @param {State} state */
  keepForm(state) {
    const { route } = state;
    const edited = route.view === "triggerEdit" ? route.id : "";
    const key = route.view === "triggerNew" ? "new" : edited;
    this.closeOver(state, key);
    if (!key || state.session !== "in") return;
    const form = state.forms[key];
    if (form?.over) return;
    if (form) return this.preview(form);
    const made =
      key === "new" ? newForm(newId("trig"), this.ports.zone()) : this.opened(state, key);
    if (made) this.store.dispatch({ type: "formOpened", form: made });
  }

  /** @private @param {State} state @param {string} open  The form that is on the page. */
  closeOver(state, open) {
    for (const { key, over } of Object.values(state.forms)) {
      if (!over || key === open) continue;
      this.store.dispatch({ type: "formClosed", key });
      if (state.triggerDetail?.id === key) this.refresh(key);
    }
  }

  /** @private @param {State} state @param {string} id @returns {TriggerForm | null} */
  opened(state, id) {
    const detail = state.triggerDetail;
    if (detail?.id !== id || detail.load !== "ready" || !detail.trigger) return null;
    return formOf(detail.trigger, detail.explanation?.nodes ?? [], this.ports.zone());
  }

  /** @private @param {TriggerForm} form */
  preview(form) {
    const body = previewRequest(form, this.ports.zone());
    const asked = body ? JSON.stringify(body) : "";
    if (asked === form.preview.asked) return;
    const { key } = form;
    this.wake();
    const state = asked ? "asking" : "idle";
    const answer = asked ? form.preview.answer : null;
    this.store.dispatch({ type: "formPreviewed", key, asked, state, answer });
    if (body) this.rested(() => void this.ask(key, asked, body), REST_MS);
  }

  /** @private @param {string} key @param {string} asked @param {object} body */
  async ask(key, asked, body) {
    try {
      const answer = await this.api.previewTrigger(body);
      this.store.dispatch({ type: "formPreviewed", key, asked, state: "ready", answer });
    } catch (error) {
      const { status, message, field } = /** @type {any} */ (error);
      const told = REFUSALS.has(status) ? { field, text: message } : null;
      const failed = { state: "failed", answer: null, error: told };
      this.store.dispatch({ type: "formPreviewed", key, asked, ...failed });
    }
  }
}
