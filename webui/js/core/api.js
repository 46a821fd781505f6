/** The server's HTTP interface. Addresses are relative: a proxy may serve the page under a prefix. */

import { has, t } from "./i18n.js";

const PATIENCE_MS = 15_000;
/** The server gives an endpoint so long, and a little more. */
const TRIAL_MS = 60_000;

/** A request that did not do what was asked. */
export class ApiError extends Error {
  /**
   * @param {number} status 0: the server could not be reached
   * @param {string} message
   * @param {string | null} [field]
   * @param {any} [data] the whole answer
   */
  constructor(status, message, field = null, data = null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.field = field;
    this.data = data;
    this.code = data?.error?.code ?? "";
    this.params = data?.error?.params ?? {};
  }

  /** Whether the same may work in a moment: nothing answered, or it could not just now. */
  get passing() {
    return this.status === 0 || this.status === 503;
  }
}

/**
 * @typedef {object} KeyKeeper Keeps the session's key, which only our own pages have.
 * @property {() => string} read
 * @property {(key: string) => void} keep empty: none
 */

/** @param {string} tab @param {KeyKeeper} keys @param {typeof fetch} [send] */
export function connect(tab, keys, send = (...given) => fetch(...given)) {
  /** What goes with every request. @returns {Record<string, string>} */
  function ownHeaders() {
    const key = keys.read();
    return { "x-mimikit-tab": tab, ...(key ? { "x-mimikit-session": key } : {}) };
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   * @param {number} [patienceMs]
   * @returns {Promise<any>}
   */
  async function call(method, path, body, patienceMs = PATIENCE_MS) {
    /** @type {Record<string, string>} */
    const headers = { ...ownHeaders(), accept: "application/json" };
    if (method !== "GET") headers["content-type"] = "application/json";
    /** @type {Response} */
    let answer;
    try {
      answer = await send(path, {
        method,
        headers,
        credentials: "same-origin",
        cache: "no-store",
        body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
        signal: AbortSignal.timeout(patienceMs),
      });
    } catch {
      throw new ApiError(0, "");
    }
    return await unwrap(answer);
  }

  const id = encodeURIComponent;
  /** @param {string} path */
  const noteAddress = (path) => `api/memory/${path.split("/").map(id).join("/")}`;
  /** @param {string} path @param {Record<string, string | null | undefined>} values */
  const query = (path, values) => {
    const given = Object.entries(values).filter(([, value]) => value != null);
    const search = new URLSearchParams(/** @type {[string, string][]} */ (given)).toString();
    return search ? `${path}?${search}` : path;
  };

  return {
    /** @param {{token: string} | {code: string}} proof */
    login: async (proof) => {
      const { key } = await call("POST", "api/login", proof);
      keys.keep(key);
    },
    logout: async () => {
      await call("POST", "api/logout");
      keys.keep("");
    },
    snapshot: () => call("GET", "api/snapshot"),
    /** @param {string} before */
    older: (before) => call("GET", query("api/messages", { before, limit: "50" })),
    /** @param {string} since */
    changes: (since) => call("GET", query("api/changes", { since })),
    headers: ownHeaders,
    /** @param {string} since */
    stream: (since) => query("api/events", { since, tab }),
    /** @param {{id: string, text: string, timezone?: string, locale?: string}} input */
    input: (input) => call("POST", "api/input", input),
    /** @param {{id: string, questionId: string, text: string}} answer */
    answer: (answer) => call("POST", "api/answer", answer),
    /** @param {Record<string, string | null>} values  A filter, and where to go on. */
    jobs: (values) => call("GET", query("api/jobs", values)),
    /** @param {string} job */
    job: (job) => call("GET", `api/jobs/${id(job)}`),
    /** @param {string} task */
    task: (task) => call("GET", `api/tasks/${id(task)}`),
    /** @param {string} task */
    taskDiff: (task) => call("GET", `api/tasks/${id(task)}/diff`),
    /** @param {string} task @param {string | null} offset */
    output: (task, offset) => call("GET", query(`api/tasks/${id(task)}/output`, { offset })),
    /** @param {string} task @param {"cancel" | "retry"} what @param {string} command */
    order: (task, what, command) => call("POST", `api/tasks/${id(task)}/${what}`, { id: command }),
    /** @param {string} task  A reminder that was told. @param {object} body */
    snooze: (task, body) => call("POST", `api/tasks/${id(task)}/snooze`, body),
    /** @param {string} trigger @param {"pause" | "resume" | "run"} what */
    trigger: (trigger, what) => call("POST", `api/triggers/${id(trigger)}/${what}`),
    /** @param {string} trigger @param {string} timezone  In which its times are told. */
    triggerDetail: (trigger, timezone) =>
      call("GET", query(`api/triggers/${id(trigger)}`, { timezone })),
    /** @param {object} body */
    addTrigger: (body) => call("POST", "api/triggers", body),
    /** @param {string} trigger @param {object} changes */
    editTrigger: (trigger, changes) => call("PATCH", `api/triggers/${id(trigger)}`, changes),
    /** @param {object} body */
    previewTrigger: (body) => call("POST", "api/triggers/preview", body),
    /** @param {string} trigger */
    removeTrigger: (trigger) => call("DELETE", `api/triggers/${id(trigger)}`),
    engines: () => call("GET", "api/engines"),
    /** @param {object} endpoint  Asked for its models, and for a turn. */
    engineTrial: (endpoint) => call("POST", "api/engines/trial", endpoint, TRIAL_MS),
    /** @param {string} name @param {object} endpoint */
    keepEngine: (name, endpoint) => call("PUT", `api/engines/${id(name)}`, endpoint),
    /** @param {string} name @param {string} command */
    removeEngine: (name, command) => call("DELETE", `api/engines/${id(name)}`, { id: command }),
    /** @param {{use: string, seat?: string, id: string}} order */
    orderEngines: (order) => call("POST", "api/engines", order),
    /** @param {string} use @param {string} command */
    useEngine: (use, command) => call("POST", "api/engines", { use, id: command }),
    /** @param {string} engine @param {string} command */
    tryEngine: (engine, command) => call("POST", "api/engines/try", { engine, id: command }),
    memory: () => call("GET", "api/memory"),
    /** @param {string} path */
    note: (path) => call("GET", noteAddress(path)),
    /** @param {string} path @param {{text: string, hash: string | null}} note  Hash null: a new file. */
    saveNote: (path, note) => call("PUT", noteAddress(path), note),
    /** @param {string} q */
    search: (q) => call("GET", query("api/search", { q, limit: "30" })),
    home: () => call("GET", "api/home"),
    backlog: () => call("GET", "api/backlog"),
    /** @param {"day" | "engine" | "role" | "trigger"} by */
    usage: (by) => call("GET", query("api/usage", { by })),
    /** @param {{action: "add" | "done" | "undone" | "remove", item: string}} change */
    changeBacklog: (change) => call("POST", "api/backlog", change),
    /** @param {string} turn */
    turnMemory: (turn) => call("GET", `api/turns/${id(turn)}/memory`),
  };
}

/** @typedef {ReturnType<typeof connect>} Api */

/** @param {Response} answer  The JSON of an answer, or the error it tells. */
async function unwrap(answer) {
  let data = null;
  try {
    data = await answer.json();
  } catch {
    if (answer.ok) throw new ApiError(0, ""); // cut off on the way
  }
  if (answer.ok) return data;
  const { message = "", field = null } = data?.error ?? {};
  throw new ApiError(answer.status, message, field, data);
}

/** @param {any} error  Why a request failed, or an order was not carried out. */
export function words(error) {
  if (error?.status === 0) return t("load.unreachable");
  const message = error?.message?.replaceAll("`", "") || t("error.unknown");
  const key = `error.${error?.code}`;
  if (!has(key)) return message;
  const label = `field.${error.field?.split(".").at(-1)}`;
  const field = t(has(label) ? label : "field.this");
  return t(key, { ...error.params, field, message });
}
