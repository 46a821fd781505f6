/**
 * One tab's line to the server: a stream of changes, polling where the stream is refused, and back.
 * A hidden tab closes its line, since a browser grants few connections per site.
 *
 * It keeps the cursor of what it has handed on, so that nothing is lost or doubled however often the
 * line breaks. Everything it needs from the browser is given to it.
 *
 * @typedef {import("./event-stream.js").EventStream} EventStream
 *
 * @typedef {object} Ports
 * @property {(since: string) => EventStream} open
 * @property {(since: string) => Promise<{cursor: string, reset: boolean, events: Change[]}>} poll
 * @property {(act: () => void, ms: number) => any} later
 * @property {(timer: any) => void} drop
 * @property {() => boolean} hidden whether nobody looks at the tab
 *
 * @typedef {object} Hearers
 * @property {(changes: Change[], cursor: string) => void} changes
 * @property {() => void} reset the cursor is worth nothing any more: load everything anew
 * @property {(connection: Connection) => void} connection
 * @property {() => void} signedOut
 */

import { CLOSED } from "./event-stream.js";

export const POLL_MS = 5000;
/** While polling, the stream is tried again this often. */
export const STREAM_RETRY_MS = 30_000;
/** The stream reconnects by itself; when that leads nowhere for so long, we lay a new one. */
export const STALLED_MS = 20_000;
/** A tab that is hidden for so long closes its line. */
export const HIDDEN_MS = 10_000;
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000];

export class Link {
  /** @param {Ports} ports @param {Hearers} hearers */
  constructor(ports, hearers) {
    this.ports = ports;
    this.hearers = hearers;
    this.started = false;
    this.cursor = "";
    /** @type {EventStream | null} */
    this.source = null;
    /** @type {any} */
    this.timer = null;
    /** @type {any} */
    this.hiddenTimer = null;
    this.failures = 0;
    this.polledMs = 0;
    /** A stream that ended (they do, every few minutes) was at once opened anew. */
    this.reopened = false;
    /** Each opening and closing begins a new life; what an old one still has under way is ignored. */
    this.life = 0;
  }

  /** @param {string} cursor */
  start(cursor) {
    this.started = true;
    this.cursor = cursor;
    if (this.ports.hidden()) this.close();
    else this.open();
  }

  stop() {
    this.started = false;
    this.close();
  }

  /** Something says the line may be dead (sleep, network change): lay it anew. */
  nudge() {
    if (this.started) this.start(this.cursor);
  }

  /** The tab was shown or hidden. */
  look() {
    if (!this.started) return;
    this.dropHiddenTimer();
    if (this.ports.hidden()) {
      this.hiddenTimer = this.ports.later(() => this.close(), HIDDEN_MS);
    } else if (!this.source && this.timer === null) {
      this.open();
    }
  }

  /** @private */
  open() {
    this.close();
    this.failures = 0;
    this.reopened = false;
    this.openStream();
  }

  /** @private */
  close() {
    this.life += 1;
    this.dropHiddenTimer();
    this.closeSource();
    this.wait(null);
  }

  /** @private */
  dropHiddenTimer() {
    if (this.hiddenTimer !== null) this.ports.drop(this.hiddenTimer);
    this.hiddenTimer = null;
  }

  /** @private */
  closeSource() {
    this.source?.close();
    this.source = null;
  }

  /** @private @param {(() => void) | null} act @param {number} [ms] */
  wait(act, ms = 0) {
    if (this.timer !== null) this.ports.drop(this.timer);
    this.timer = null;
    if (!act) return;
    const life = this.life;
    this.timer = this.ports.later(() => {
      if (life === this.life) act();
    }, ms);
  }

  /** @private */
  openStream() {
    this.closeSource();
    const source = this.ports.open(this.cursor);
    this.source = source;
    const mine = (/** @type {(event: any) => void} */ act) => (/** @type {any} */ event) => {
      if (source === this.source) act(event);
    };
    source.onopen = mine(() => {
      this.failures = 0;
      this.reopened = false;
      this.wait(null);
      this.hearers.connection("online");
    });
    source.onerror = mine(() => this.onError(source));
    source.addEventListener(
      "change",
      mine((event) => this.onChange(event)),
    );
    source.addEventListener(
      "reset",
      mine(() => this.hearers.reset()),
    );
  }

  /** @private @param {import("./event-stream.js").StreamEvent} event */
  onChange(event) {
    if (event.lastEventId) this.cursor = event.lastEventId;
    /** @type {Change} */
    let change;
    try {
      change = JSON.parse(event.data);
    } catch {
      return this.hearers.reset(); // half a change: only the whole picture can be trusted
    }
    this.hearers.changes([change], this.cursor);
  }

  /** @private @param {EventStream} source */
  onError(source) {
    if (source.readyState === CLOSED) {
      this.closeSource();
      this.polledMs = 0;
      void this.poll(); // tells why: no session, too many streams, or nobody there
      return;
    }
    if (!this.reopened) {
      this.reopened = true;
      return this.openStream();
    }
    this.hearers.connection("reconnecting");
    if (this.timer === null) this.wait(() => this.openStream(), STALLED_MS);
  }

  /** @private */
  async poll() {
    const life = this.life;
    let answer;
    try {
      answer = await this.ports.poll(this.cursor);
    } catch (error) {
      if (life === this.life) this.onPollError(error);
      return;
    }
    if (life !== this.life) return;
    const back = this.failures > 0;
    this.failures = 0;
    if (answer.reset) return this.hearers.reset();
    this.cursor = answer.cursor;
    if (answer.events.length) this.hearers.changes(answer.events, this.cursor);
    if (back || this.polledMs >= STREAM_RETRY_MS) return this.openStream();
    this.polledMs += POLL_MS;
    this.hearers.connection("polling");
    this.wait(() => void this.poll(), POLL_MS);
  }

  /** @private @param {any} error */
  onPollError(error) {
    if (error?.status === 401) {
      this.stop();
      return this.hearers.signedOut();
    }
    const ms = BACKOFF_MS[Math.min(this.failures, BACKOFF_MS.length - 1)];
    this.failures += 1;
    this.hearers.connection("reconnecting");
    this.wait(() => void this.poll(), ms);
  }
}
