/**
 * A stream of server-sent events as `EventSource` is one, but for the headers: that sends none, and
 * the session's key must not stand in an address.
 */

export const CONNECTING = 0;
export const OPEN = 1;
export const CLOSED = 2;
const RETRY_MS = 2000;

/** @typedef {{data: string, lastEventId: string}} StreamEvent */

export class EventStream {
  readyState = CONNECTING;
  lastEventId = "";
  retryMs = RETRY_MS;
  /** @type {((event: object) => void) | null} */
  onopen = null;
  /** @type {((event: object) => void) | null} closed by then: it was refused; else it tries again */
  onerror = null;
  /** @type {Map<string, (event: StreamEvent) => void>} */
  listeners = new Map();
  abort = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;
  // What has come of a line, and of an event.
  rest = "";
  name = "";
  id = "";
  /** @type {string[]} */
  data = [];

  /**
   * @param {string} address
   * @param {() => Record<string, string>} headers asked at each attempt
   * @param {(address: string, options: RequestInit) => Promise<Response>} [send]
   */
  constructor(address, headers, send = (...given) => fetch(...given)) {
    this.address = address;
    this.headers = headers;
    this.send = send;
    void this.follow();
  }

  /** @param {string} name @param {(event: StreamEvent) => void} act */
  addEventListener(name, act) {
    this.listeners.set(name, act);
  }

  close() {
    this.readyState = CLOSED;
    clearTimeout(this.timer);
    this.abort.abort();
  }

  /** @private  One attempt, from the request to the end of what it answers. */
  async follow() {
    const answer = await this.ask();
    if (this.isClosed()) return;
    if (answer) {
      const type = answer.headers.get("content-type") ?? "";
      if (answer.status !== 200 || !answer.body || !type.startsWith("text/event-stream")) {
        this.close();
        this.onerror?.({});
        return;
      }
      this.readyState = OPEN;
      this.onopen?.({});
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const text = await next(reader);
        if (this.isClosed()) return;
        if (text === null) break;
        this.take(text);
      }
    }
    this.rest = "";
    this.beginEvent();
    this.readyState = CONNECTING;
    this.timer = setTimeout(() => void this.follow(), this.retryMs);
    this.onerror?.({});
  }

  /** @private @returns {Promise<Response | null>} null: the server could not be reached */
  async ask() {
    /** @type {Record<string, string>} */
    const headers = { ...this.headers(), accept: "text/event-stream" };
    if (this.lastEventId) headers["last-event-id"] = this.lastEventId;
    try {
      return await this.send(this.address, {
        headers,
        credentials: "same-origin",
        cache: "no-store",
        signal: this.abort.signal,
      });
    } catch {
      return null;
    }
  }

  /** @private  Whoever hears something may close this meanwhile. */
  isClosed() {
    return this.readyState === CLOSED;
  }

  /** @private @param {string} text */
  take(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (this.isClosed()) return;
      if (line) this.takeField(line);
      else this.emit();
    }
  }

  /** @private @param {string} line */
  takeField(line) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === "data") this.data.push(value);
    else if (name === "event") this.name = value;
    else if (name === "id") this.id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }

  /** @private */
  beginEvent() {
    this.name = "";
    this.id = "";
    this.data = [];
  }

  /** @private */
  emit() {
    const { name, id, data } = this;
    this.beginEvent();
    if (id) this.lastEventId = id;
    if (!data.length) return;
    const event = { data: data.join("\n"), lastEventId: this.lastEventId };
    this.listeners.get(name || "message")?.(event);
  }
}

/**
 * @param {ReadableStreamDefaultReader<string>} reader
 * @returns {Promise<string | null>} null: it ended, or broke
 */
async function next(reader) {
  try {
    const { done, value } = await reader.read();
    return done ? null : value;
  } catch {
    return null;
  }
}
