/**
 * One tab's line to the server: a stream of changes, polling where the stream is refused, and back.
 * A hidden tab closes its line, since a browser grants few connections per site.
 *
 * It keeps the cursor of what it has handed on, so that nothing is lost or doubled however often the
 * line breaks.
 */

import { EventStream } from "./event-stream.js";

export const POLL_MS = 5000;
/** While polling, the stream is tried again this often. */
export const STREAM_RETRY_MS = 30_000;
/** A stream that ended twice, or cannot be had, is tried again after this. */
export const RETRY_MS = 2000;
/** One that is not answered for so long is given up for a new one. */
export const STALLED_MS = 20_000;
/** A tab that is hidden for so long closes its line. */
export const HIDDEN_MS = 10_000;
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000];

export class Link {
  /** @type {EventStream | null} */
  source = null;
  /** @type {any} */
  timer = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  hiddenTimer;

  /**
   * @param {Api} api
   * @param {import("./session.js").Session} session gets what comes
   * @param {() => boolean} hidden whether nobody looks at the tab
   * @param {typeof EventStream} [Stream]
   */
  constructor(api, session, hidden, Stream = EventStream) {
    this.api = api;
    this.session = session;
    this.hidden = hidden;
    this.Stream = Stream;
    this.started = false;
    this.cursor = "";
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
    if (this.hidden()) this.close();
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
    clearTimeout(this.hiddenTimer);
    if (this.hidden()) {
      this.hiddenTimer = setTimeout(() => this.close(), HIDDEN_MS);
    } else if (!this.source || this.timer !== null) {
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
    clearTimeout(this.hiddenTimer);
    this.closeSource();
    this.dropTimer();
  }

  /** @private */
  closeSource() {
    this.source?.close();
    this.source = null;
  }

  /** @private */
  dropTimer() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  /** @private @param {() => void} act @param {number} ms */
  wait(act, ms) {
    this.dropTimer();
    this.timer = setTimeout(act, ms);
  }

  /** @private */
  openStream() {
    this.closeSource();
    this.wait(() => this.openStream(), STALLED_MS);
    this.source = new this.Stream(this.api.stream(this.cursor), this.api.headers(), this);
  }

  onOpen() {
    this.failures = 0;
    this.reopened = false;
    this.dropTimer();
    this.session.onConnection("online");
  }

  /** @param {Record<string, string>} event */
  onEvent({ event, id, data }) {
    if (event === "reset") return void this.session.load();
    if (event !== "change") return;
    if (id) this.cursor = id;
    this.session.onChanges([JSON.parse(data)], this.cursor);
  }

  onEnd() {
    const again = this.reopened;
    this.reopened = true;
    if (!again) return this.openStream();
    this.session.onConnection("reconnecting");
    this.wait(() => this.openStream(), RETRY_MS);
  }

  onRefused() {
    this.closeSource();
    this.dropTimer();
    this.polledMs = 0;
    void this.poll(); // tells why: no session, too many streams, or nobody there
  }

  /** @private */
  async poll() {
    const life = this.life;
    let answer;
    try {
      answer = await this.api.changes(this.cursor);
    } catch (error) {
      if (life === this.life) this.onPollError(error);
      return;
    }
    if (life !== this.life) return;
    const back = this.failures > 0;
    this.failures = 0;
    if (answer.reset) return void this.session.load();
    this.cursor = answer.cursor;
    if (answer.events.length) this.session.onChanges(answer.events, this.cursor);
    if (back || this.polledMs >= STREAM_RETRY_MS) return this.openStream();
    this.polledMs += POLL_MS;
    this.session.onConnection("polling");
    this.wait(() => void this.poll(), POLL_MS);
  }

  /** @private @param {any} error */
  onPollError(error) {
    if (error?.status === 401) {
      this.stop();
      return this.session.signOutHere();
    }
    const ms = BACKOFF_MS[Math.min(this.failures, BACKOFF_MS.length - 1)];
    this.failures += 1;
    this.session.onConnection("reconnecting");
    this.wait(() => void this.poll(), ms);
  }
}
