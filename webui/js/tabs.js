/**
 * Any number of tabs over one stream.
 *
 * A browser grants few connections per site, so one tab, the leader, holds the stream and tells the
 * others. Where the browser has no locks (plain http off loopback), each tab holds its own, and a
 * tab that nobody looks at lets go of it.
 *
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./state-types.js").Connection} Connection
 * @typedef {import("./link.js").Link} Link
 *
 * @typedef {{kind: "changes", changes: Change[], cursor: string}
 *   | {kind: "connection", connection: Connection}
 *   | {kind: "reset"} | {kind: "alive"} | {kind: "hello"}
 *   | {kind: "signedOut"} | {kind: "signedIn"}} Word
 *
 * @typedef {object} Surroundings
 * @property {LockManager | undefined} locks
 * @property {BroadcastChannel | null} channel
 * @property {() => boolean} hidden
 * @property {(act: () => void, ms: number) => any} later
 * @property {(timer: any) => void} drop
 *
 * @typedef {import("./link.js").Hearers & {signedIn: () => void}} TabHearers
 */

const LOCK = "mimikit-stream";
export const HIDDEN_MS = 30_000;
export const ALIVE_MS = 10_000;
/** A leader not heard for so long is asleep: a tab in use takes over. */
export const SILENT_MS = 25_000;

export class Tabs {
  /**
   * @param {(hearers: import("./link.js").Hearers) => Link} makeLink
   * @param {Surroundings} around
   * @param {TabHearers} hearers
   */
  constructor(makeLink, around, hearers) {
    this.around = around;
    this.hearers = hearers;
    this.shared = Boolean(around.locks && around.channel);
    this.leading = false;
    this.started = false;
    this.cursor = "";
    /** @type {Connection} */
    this.connection = "connecting";
    /** @type {any} */
    this.hiddenTimer = null;
    /** @type {any} */
    this.pulse = null;
    /** @type {(() => void) | null} ends our leadership */
    this.resign = null;
    this.link = makeLink({
      changes: (changes, cursor) => {
        this.say({ kind: "changes", changes, cursor });
        this.hear(changes, cursor);
      },
      reset: () => {
        this.say({ kind: "reset" });
        hearers.reset();
      },
      connection: (connection) => this.tell(connection),
      signedOut: () => {
        this.say({ kind: "signedOut" });
        hearers.signedOut();
      },
    });
    if (this.shared && around.channel) {
      around.channel.onmessage = (event) => this.listen(event.data);
    }
  }

  /**
   * Follow the changes after this cursor; again, with a new one, after a reset.
   *
   * @param {string} cursor
   */
  start(cursor) {
    this.cursor = cursor;
    this.started = true;
    if (!this.shared) {
      if (!this.around.hidden()) this.link.start(cursor);
      return;
    }
    if (this.leading) return this.link.start(cursor);
    this.say({ kind: "hello" });
    this.awaitLeader();
    if (!this.resign) this.campaign(false);
  }

  stop() {
    this.started = false;
    this.link.stop();
    this.resign?.();
    this.clear();
  }

  /** The tab was shown or hidden, or the machine woke up. */
  look() {
    if (!this.started) return;
    if (this.shared) {
      if (!this.around.hidden() && !this.leading) {
        this.say({ kind: "hello" });
        this.awaitLeader();
      }
      return;
    }
    if (this.hiddenTimer !== null) this.around.drop(this.hiddenTimer);
    this.hiddenTimer = null;
    if (this.around.hidden()) {
      this.hiddenTimer = this.around.later(() => this.link.stop(), HIDDEN_MS);
    } else if (!this.link.source && this.link.timer === null) {
      this.link.start(this.link.cursor || this.cursor);
    }
  }

  /** The line may be dead: lay it anew. */
  nudge() {
    if (!this.started) return;
    if (!this.shared || this.leading) this.link.nudge();
    else this.look();
  }

  /** Tell the other tabs that there is a session again. */
  signedIn() {
    this.say({ kind: "signedIn" });
  }

  /** @private @param {Change[]} changes @param {string} cursor */
  hear(changes, cursor) {
    this.cursor = cursor;
    this.hearers.changes(changes, cursor);
  }

  /** @private @param {Connection} connection */
  tell(connection) {
    this.connection = connection;
    this.say({ kind: "connection", connection });
    this.hearers.connection(connection);
  }

  /** @private @param {Word} word */
  say(word) {
    if (this.shared) this.around.channel?.postMessage(word);
  }

  /** @private @param {Word} word */
  listen(word) {
    if (word.kind === "signedOut") return this.hearers.signedOut();
    if (word.kind === "signedIn") return this.hearers.signedIn();
    if (word.kind === "hello") {
      if (this.leading) this.say({ kind: "connection", connection: this.connection });
      return;
    }
    if (this.leading) return; // an old leader's last words
    if (this.started) this.awaitLeader();
    if (word.kind === "changes") this.hear(word.changes, word.cursor);
    else if (word.kind === "connection") this.hearers.connection(word.connection);
    else if (word.kind === "reset") this.hearers.reset();
  }

  /** @private  Take over when the leader stays silent and this tab is looked at. */
  awaitLeader() {
    this.beat(() => {
      if (this.around.hidden()) this.awaitLeader();
      else this.campaign(true);
    }, SILENT_MS);
  }

  /** @private @param {boolean} steal */
  campaign(steal) {
    const locks = this.around.locks;
    if (!locks) return;
    this.resign?.();
    /** @type {() => void} */
    let resign = () => {};
    const ended = new Promise((resolve) => (resign = () => resolve(undefined)));
    this.resign = resign;
    const mine = () => this.resign === resign;
    const term = () => {
      if (!mine() || !this.started) return undefined; // it came too late
      this.leading = true;
      this.link.start(this.cursor);
      this.keepAlive();
      return ended;
    };
    locks.request(LOCK, steal ? { steal: true } : {}, term).catch(() => {
      if (!mine()) return;
      // Another tab took the lead while this one slept.
      this.leading = false;
      this.resign = null;
      this.link.stop();
      if (this.started) {
        this.awaitLeader();
        this.campaign(false);
      }
    });
  }

  /** @private */
  keepAlive() {
    this.beat(() => {
      this.say({ kind: "alive" });
      if (this.leading) this.keepAlive();
    }, ALIVE_MS);
  }

  /** @private @param {() => void} act @param {number} ms */
  beat(act, ms) {
    if (this.pulse !== null) this.around.drop(this.pulse);
    this.pulse = this.around.later(() => {
      this.pulse = null;
      act();
    }, ms);
  }

  /** @private */
  clear() {
    this.leading = false;
    this.resign = null;
    for (const timer of [this.pulse, this.hiddenTimer]) {
      if (timer !== null) this.around.drop(timer);
    }
    this.pulse = null;
    this.hiddenTimer = null;
  }
}
