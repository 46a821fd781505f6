// A clock that moves when told, and a stream that does what a test says.

/** Lets every promise that is settled be heard. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** In the place of the real one from then on. */
export class Clock {
  constructor() {
    this.now = 0;
    this.timers = new Map();
    this.last = 0;
    globalThis.setTimeout = (act, ms) => {
      this.timers.set(++this.last, { act, at: this.now + ms });
      return this.last;
    };
    globalThis.clearTimeout = (timer) => this.timers.delete(timer);
  }

  /** Go on, firing what is due in its order; what it starts is heard in between. */
  async pass(ms) {
    await settled();
    const end = this.now + ms;
    for (;;) {
      const due = [...this.timers].filter(([, timer]) => timer.at <= end);
      if (!due.length) break;
      due.sort(([a, x], [b, y]) => x.at - y.at || a - b);
      const [id, timer] = due[0];
      this.timers.delete(id);
      this.now = timer.at;
      timer.act();
      await settled();
    }
    this.now = end;
    await settled();
  }
}

export class FakeSource {
  static opened = [];

  constructor(since) {
    this.since = since;
    this.readyState = 0;
    this.heard = {};
    FakeSource.opened.push(this);
  }

  static get last() {
    return FakeSource.opened.at(-1);
  }

  static get open() {
    return FakeSource.opened.filter((source) => source.readyState !== 2);
  }

  addEventListener(name, act) {
    this.heard[name] = act;
  }

  close() {
    this.readyState = 2;
  }

  opens() {
    this.readyState = 1;
    this.onopen({});
  }

  change(cursor, change) {
    this.heard.change({ lastEventId: cursor, data: JSON.stringify(change) });
  }

  /** The line broke; the browser goes on trying. */
  breaks() {
    this.readyState = 0;
    this.onerror({});
  }

  /** The server refused: the browser gives up for good. */
  refused() {
    this.readyState = 2;
    this.onerror({});
  }
}
