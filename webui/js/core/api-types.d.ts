/** The requests of the page, as core/api.js sends them. */

/** Keeps the session's key, which only our own pages have. */
interface KeyStore {
  read(): string;
  /** empty: none */
  keep(key: string): unknown;
}

/** Whether a command was accepted; `command` only where it was not yet carried out. */
interface Outcome {
  ok?: boolean;
  message?: string;
  command?: string;
  resultId?: string | null;
}

interface Api {
  login(proof: {token: string} | {code: string}): Promise<unknown>;
  logout(): Promise<void>;
  headers(): Record<string, string>;
  snapshot(): Promise<Snapshot>;
  older(before: string): Promise<MessagesPage>;
  changes(since: string): Promise<ChangeList>;
  /** The address of the stream of changes. */
  stream(since: string): string;
  upload(file: File): Promise<FileRef>;
  file(id: string): Promise<Blob>;
  input(input: {id: string, text: string, files: string[], timezone?: string, locale?: string}): Promise<Accepted>;
  answer(answer: {id: string, questionId: string, text: string}): Promise<Accepted>;
  /** A filter, and where to go on. */
  jobs(values: Record<string, string | null>): Promise<JobPage>;
  job(job: string): Promise<Job>;
  task(task: string): Promise<TaskDetail>;
  taskDiff(task: string): Promise<Diff>;
  output(task: string, offset: string | null): Promise<Output>;
  order(task: string, what: "cancel" | "retry", command: string): Promise<Outcome>;
  /** A reminder is told again. */
  snooze(task: string, body: object): Promise<Outcome>;
  trigger(trigger: string, what: "pause" | "resume" | "run"): Promise<Outcome>;
  /** The times are told in the time zone. */
  triggerDetail(trigger: string): Promise<TriggerDetail>;
  addTrigger(body: object): Promise<any>;
  editTrigger(trigger: string, changes: object): Promise<any>;
  previewTrigger(body: object): Promise<TriggerPreview>;
  removeTrigger(trigger: string): Promise<Outcome>;
  engines(): Promise<EngineList>;
  /** The endpoint is asked for its models, and for a turn. */
  engineTrial(endpoint: object): Promise<Trial>;
  keepEngine(name: string, endpoint: object): Promise<any>;
  removeEngine(name: string, command: string): Promise<Outcome>;
  orderEngines(order: {use: string, seat?: string, id: string}): Promise<Outcome>;
  tryEngine(engine: string, command: string): Promise<Outcome>;
  memory(): Promise<any>;
  note(path: string): Promise<any>;
  /** Hash null: a new file. */
  saveNote(path: string, note: {text: string, hash: string | null}): Promise<any>;
  search(q: string): Promise<any>;
  home(): Promise<Home>;
  backlog(): Promise<any>;
  usage(by: "day" | "engine" | "role" | "trigger"): Promise<UsageReport>;
  changeBacklog(change: {action: "add" | "done" | "undone" | "remove", item: string}): Promise<any>;
  selfAwake(): Promise<SelfAwake>;
  changeSelfAwake(change: {action: "on" | "off" | "run" | "discard", target: string, id: string}): Promise<Outcome>;
  branchDiff(branch: string): Promise<Diff>;
  notify(): Promise<Notify>;
  /** The server sends, or tries the address, before it answers. */
  changeNotify(change: {action: "add" | "test" | "remove", name: string, url?: string}): Promise<Outcome>;
  settings(): Promise<{values: Record<string, string | number | null>}>;
  changeSetting(change: {key: string, value: string | number | null, id: string}): Promise<Outcome>;
  turn(turn: string): Promise<any>;
}
