/**
 * One stream of server-sent events, from the request to its end. An `EventSource` sends no headers,
 * and the session's key must not stand in an address.
 */

/**
 * @typedef {{onOpen(): void, onEvent(fields: Record<string, string>): void, onEnd(): void,
 *   onRefused(): void}} StreamListener it hears nothing any more once the stream is closed
 */

const FIELD = /^(\w+): (.*)$/s;

export class EventStream {
  abort = new AbortController();
  /** What has come of the next event. */
  rest = "";

  /**
   * @param {string} address
   * @param {Record<string, string>} headers
   * @param {StreamListener} listener
   * @param {(address: string, options: RequestInit) => Promise<Response>} [send]
   */
  constructor(address, headers, listener, send = (...given) => fetch(...given)) {
    this.listener = listener;
    const answer = send(address, {
      headers: { ...headers, accept: "text/event-stream" },
      credentials: "same-origin",
      cache: "no-store",
      signal: this.abort.signal,
    });
    void this.follow(answer.catch(() => null)); // null: the server could not be reached
  }

  close() {
    this.abort.abort();
  }

  /** @private  Whoever hears something may close this meanwhile. */
  isClosed() {
    return this.abort.signal.aborted;
  }

  /** @private @param {Promise<Response | null>} asked */
  async follow(asked) {
    const answer = await asked;
    if (this.isClosed()) return;
    if (answer && !isStream(answer)) return this.listener.onRefused();
    if (answer?.body) {
      this.listener.onOpen();
      await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    }
    if (!this.isClosed()) this.listener.onEnd();
  }

  /** @private @param {ReadableStreamDefaultReader<string>} reader */
  async read(reader) {
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: "" }));
      if (done || this.isClosed()) return;
      const events = (this.rest + value).split("\n\n");
      this.rest = events.pop() ?? "";
      for (const event of events) if (!this.isClosed()) this.emit(event);
    }
  }

  /** @private @param {string} event  Its fields, each on a line. */
  emit(event) {
    /** @type {Record<string, string>} */
    const fields = {};
    for (const line of event.split("\n")) {
      const [, name, value] = FIELD.exec(line) ?? [];
      if (name) fields[name] = value;
    }
    if (fields.data) this.listener.onEvent(fields);
  }
}

/** @param {Response} answer */
function isStream({ status, headers }) {
  return status === 200 && headers.get("content-type")?.startsWith("text/event-stream");
}
