/** The server's HTTP interface. Addresses are relative: a proxy may serve the page under a prefix. */

import { has, t } from "./i18n.js";
import { ownZone } from "./time.js";

const TIMEOUT_MS = 15_000;
/** The server gives an endpoint so long, and a little more. */
const TRIAL_MS = 60_000;
const UPLOAD_MS = 600_000;

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

/** @param {string} tab @param {KeyStore} keys @param {typeof fetch} [send] @returns {Api} */
export function connect(tab, keys, send = (...given) => fetch(...given)) {
  /** What goes with every request. @returns {Record<string, string>} */
  function headers() {
    const key = keys.read();
    const own = { "x-mimikit-tab": tab, "x-mimikit-zone": ownZone() };
    return { ...own, ...(key ? { "x-mimikit-session": key } : {}) };
  }

  /** @param {string} method @param {string} path @param {object} [body] @param {number} [timeoutMs] */
  async function call(method, path, body, timeoutMs = TIMEOUT_MS) {
    const isGet = method === "GET";
    const file = body instanceof Blob && body;
    const type = { "content-type": file ? "application/octet-stream" : "application/json" };
    /** @type {Response} */
    let answer;
    try {
      answer = await send(path, {
        method,
        headers: { ...headers(), accept: "application/json", ...(isGet ? null : type) },
        credentials: "same-origin",
        cache: "no-store",
        body: isGet ? undefined : file || JSON.stringify(body ?? {}),
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch {
      throw new ApiError(0, "");
    }
    return await unwrap(answer);
  }

  /** @param {string} path @param {Record<string, string | null>} [values] */
  const get = (path, values = {}) => call("GET", query(path, values));
  /** @param {string} path @param {object} [body] */
  const post = (path, body) => call("POST", path, body);

  return {
    login: async (proof) => keys.keep((await post("api/login", proof)).key),
    logout: async () => {
      await post("api/logout");
      keys.keep("");
    },
    headers,
    snapshot: () => get("api/snapshot"),
    older: (before) => get("api/messages", { before, limit: "50" }),
    changes: (since) => get("api/changes", { since }),
    stream: (since) => query("api/events", { since, tab }),
    upload: (file) => call("POST", query("api/files", { name: file.name }), file, UPLOAD_MS),
    file: async (file) => {
      const answer = await send(`api/files/${id(file)}`, { headers: headers() });
      if (!answer.ok) throw new ApiError(answer.status, t("files.gone"));
      return await answer.blob();
    },
    input: (input) => post("api/input", input),
    answer: (answer) => post("api/answer", answer),
    jobs: (values) => get("api/jobs", values),
    job: (job) => get(`api/jobs/${id(job)}`),
    task: (task) => get(`api/tasks/${id(task)}`),
    taskDiff: (task) => get(`api/tasks/${id(task)}/diff`),
    output: (task, offset) => get(`api/tasks/${id(task)}/output`, { offset }),
    order: (task, what, command) => post(`api/tasks/${id(task)}/${what}`, { id: command }),
    snooze: (task, body) => post(`api/tasks/${id(task)}/snooze`, body),
    trigger: (trigger, what) => post(`api/triggers/${id(trigger)}/${what}`),
    triggerDetail: (trigger) => get(`api/triggers/${id(trigger)}`),
    addTrigger: (body) => post("api/triggers", body),
    editTrigger: (trigger, changes) => call("PATCH", `api/triggers/${id(trigger)}`, changes),
    previewTrigger: (body) => post("api/triggers/preview", body),
    removeTrigger: (trigger) => call("DELETE", `api/triggers/${id(trigger)}`),
    engines: () => get("api/engines"),
    engineTrial: (endpoint) => call("POST", "api/engines/trial", endpoint, TRIAL_MS),
    keepEngine: (name, endpoint) => call("PUT", `api/engines/${id(name)}`, endpoint),
    removeEngine: (name, command) => call("DELETE", `api/engines/${id(name)}`, { id: command }),
    orderEngines: (order) => post("api/engines", order),
    tryEngine: (engine, command) => post("api/engines/try", { engine, id: command }),
    memory: () => get("api/memory"),
    note: (path) => get(noteAddress(path)),
    saveNote: (path, note) => call("PUT", noteAddress(path), note),
    search: (q) => get("api/search", { q, limit: "30" }),
    home: () => get("api/home"),
    backlog: () => get("api/backlog"),
    usage: (by) => get("api/usage", { by }),
    changeBacklog: (change) => post("api/backlog", change),
    selfAwake: () => get("api/self-awake"),
    changeSelfAwake: (change) => post("api/self-awake", change),
    branchDiff: (branch) => get("api/self-awake/diff", { branch }),
    notify: () => get("api/notify"),
    changeNotify: (change) => call("POST", "api/notify", change, TRIAL_MS),
    settings: () => get("api/settings"),
    changeSetting: (change) => post("api/settings", change),
    turn: (turn) => get(`api/turns/${id(turn)}`),
  };
}

const id = encodeURIComponent;
/** @param {string} path */
const noteAddress = (path) => `api/memory/${path.split("/").map(id).join("/")}`;

/** @param {string} path @param {Record<string, string | null>} values */
function query(path, values) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== null) search.set(name, value);
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

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
