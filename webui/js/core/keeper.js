/** What the keepers share: what is shown is looked at anew soon, what is typed once it rests. */

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./api.js").Api} Api
 *
 * @typedef {object} Timers
 * @property {(act: () => void, ms: number) => any} later
 * @property {(timer: any) => void} drop
 */

/** @template {Timers} Ports */
export class Keeper {
  /** @param {Store} store @param {Api} api @param {Ports} ports */
  constructor(store, api, ports) {
    this.store = store;
    this.api = api;
    this.ports = ports;
    /** @type {any} */
    this.refreshing = null;
    /** @type {any} */
    this.resting = null;
  }

  /** @protected @param {() => void} act @param {number} ms  Once, however often it is called until then. */
  soon(act, ms) {
    if (this.refreshing !== null) return;
    this.refreshing = this.ports.later(() => {
      this.refreshing = null;
      act();
    }, ms);
  }

  /** @protected @param {() => void} act @param {number} ms  Only what was called last. */
  rested(act, ms) {
    this.wake();
    this.resting = this.ports.later(() => {
      this.resting = null;
      act();
    }, ms);
  }

  /** @protected  Nothing is waited for any more. */
  wake() {
    if (this.resting !== null) this.ports.drop(this.resting);
    this.resting = null;
  }
}
