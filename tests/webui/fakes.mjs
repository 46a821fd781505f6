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

  constructor(since, headers, link) {
    this.since = since;
    this.link = link;
    this.closed = false;
    FakeSource.opened.push(this);
  }

  static get last() {
    return FakeSource.opened.at(-1);
  }

  static get open() {
    return FakeSource.opened.filter((source) => !source.closed);
  }

  close() {
    this.closed = true;
  }

  opens() {
    this.link.onOpen();
  }

  change(cursor, change) {
    if (!this.closed) this.link.onEvent({ event: "change", id: cursor, data: JSON.stringify(change) });
  }

  resets() {
    this.link.onEvent({ event: "reset", data: "{}" });
  }

  /** It ended, or could not be had. */
  breaks() {
    this.closed = true;
    this.link.onEnd();
  }

  refused() {
    this.closed = true;
    this.link.onRefused();
  }
}
