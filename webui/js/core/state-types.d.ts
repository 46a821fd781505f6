/** Shapes of the page's own state; those of the server's JSON are in types.d.ts. Both are global. */

type Actions = import("./actions.js").Actions;
type Store = import("./store.js").Store;
type Link = import("./link.js").Link;

/** How far a message of the user has come. */
type Delivery =
  | "sending"
  | "queued"
  | "answering"
  | "waiting"
  | "answered"
  | "stopped"
  | "unanswered"
  | "failed";

interface DayEntry {
  type: "day";
  key: string;
  at: string;
}

interface DraftEntry {
  type: "draft";
  key: string;
  /** HTML */
  blocks: string[];
  rest: DraftRest;
}

interface DraftRest {
  text: string;
  /** it is code */
  language: string | null;
}

interface MessageEntry {
  type: "message";
  key: string;
  message: Message;
  /** of what the user said */
  delivery: Delivery | null;
  error: string;
  /** said by the same one right after the one above */
  joined: boolean;
}

interface JobEntry {
  type: "job";
  key: string;
  job: Job;
  at: string;
  /** a model told its result in words of its own */
  told: boolean;
}

interface RunsEntry {
  type: "runs";
  key: string;
  job: Job;
  at: string;
  messageId: string;
}

type Entry = DayEntry | DraftEntry | MessageEntry | JobEntry | RunsEntry;

/** What goes on right now. */
interface Live {
  /** since when it replies */
  teller: number | null;
  /** since when it plans */
  planner: number | null;
  workers: {count: number, since: number | null};
  headline: string;
  /** of the reply that is being made */
  turnId: string | null;
  /** tasks, the newest first */
  running: {id: string, title: string}[];
}

/** What came of loading something. */
interface Loaded {
  load: "loading" | "ready" | "missing" | "failed";
  data?: any;
  error?: any;
}

/** An action of the store: its reducer reads the rest. */
type Action = {type: string} & Record<string, any>;

/** A button's look, and what a reader of the screen hears of it. */
interface Look {
  /** its icon */
  sign?: string;
  /** its classes */
  look?: string;
  off?: boolean;
  id?: string;
  /** where the label says too little */
  named?: string;
  title?: string;
  /** what it shows and hides is shown */
  expanded?: boolean;
  /** the id of that */
  controls?: string;
  /** what it switches is on */
  pressed?: boolean;
  /** -1: other keys than Tab lead to it */
  tab?: number;
}

/** A field of a form. */
interface Field {
  /** also its id */
  name: string;
  label: string;
  value: any;
  change: (value: any) => void;
  error?: string;
  hint?: string;
  placeholder?: string;
  /** of an input */
  type?: string;
  /** what is proposed */
  list?: string[];
  inputmode?: string;
  required?: boolean;
  /** code, not prose */
  mono?: boolean;
  /** of a select */
  choices?: (Choice | Group)[];
}

type Choice = {value: string, label: string};

type Group = {label: string, choices: Choice[]};

type Reducers = Record<string, (state: State, action: any) => State>;

/** A file beside what is being written. */
interface AttachedFile {
  id: string;
  name: string;
  bytes: number;
  /** null while it is on its way */
  sent: FileRef | null;
  error: string;
}

/** A message this tab has not yet handed over. */
interface OutboxItem {
  id: string;
  kind: "input" | "answer";
  text: string;
  createdAt: string;
  questionId?: string;
  files?: FileRef[];
  state: "sending" | "accepted" | "failed";
  error?: string;
}

type TaskState = "queued" | "running" | "asking" | "done" | "failed" | "canceled";

/** Said by the server in each language. */
type Words = Record<string, string>;

type Condition = {type: string, params: Record<string, any>};

/** What GET /api/triggers/{id} says. */
interface TriggerPage {
  id: string;
  load: "loading" | "ready" | "missing" | "failed";
  /** null: gone, but its past is remembered */
  trigger: Trigger | null;
  explanation: Explanation | null;
  chain: ChainStep[];
  /** of its runs of today */
  usage: TokenCounts | null;
}

type RowType = "file_changed" | "file_exists" | "task_done" | "task_failed" | "llm_eval" | "kept";

/** One condition as a form holds it; fields of other types wait. */
interface ConditionRow {
  key: string;
  type: RowType;
  path: string;
  fireOnInit: boolean;
  /** or that it is typed below */
  taskId: string;
  typedId: string;
  question: string;
  /** made elsewhere: shown in words, kept as it is */
  kept: Condition | null;
  /** of what is kept */
  words: Words | null;
}

type When = "plain" | "every" | "cron" | "at" | Exclude<RowType, "kept"> | "several" | "kept";

type Unit = "second" | "minute" | "hour" | "day";

/** A trigger as it is typed. */
interface TriggerForm {
  /** `new`, or the id of the trigger that is edited */
  key: string;
  /** of the trigger that is to be; made here, so that sending twice makes one */
  id: string;
  /** what is edited */
  base: Trigger | null;
  prompt: string;
  title: string;
  profile: string;
  when: When;
  plain: string;
  every: string;
  everyUnit: Unit;
  cron: string;
  timezone: string;
  /** local, `2026-12-01T09:00` */
  at: string;
  join: "and" | "or";
  /** only the first counts, unless there are to be several */
  rows: ConditionRow[];
  /** empty: the condition's own */
  cooldown: string;
  cooldownUnit: Unit;
  once: boolean;
  overlap: "skip" | "queue";
  /** who is notified; empty: the default */
  notify: string;
  /** by field */
  errors: Record<string, string>;
  preview: Preview;
  busy: boolean;
  /** sent or given up: it goes when its page is left */
  over: boolean;
}

/** What the server makes of the form's times and conditions. */
interface Preview {
  /** the request, as text; empty: there is nothing to ask yet */
  asked: string;
  state: "idle" | "asking" | "ready" | "failed";
  /** the last one, shown until the next comes */
  answer: TriggerPreview | null;
  error: {field: string, text: string} | null;
}

type HitKind = "memory" | "summary" | "docs" | "transcript" | "result";

interface MemoryPage {
  load: "idle" | "loading" | "ready" | "failed";
  files: MemoryFile[];
  index: {files: number, passages: number, fresh?: boolean, words?: string, fallback?: string | null} | null;
  /** as it is typed */
  query: string;
  /** the groups of which all files are shown */
  whole: string[];
  /** what is looked for; empty: nothing */
  asked: string;
  stage: "idle" | "loading" | "ready" | "failed";
  /** the last ones, shown until the next come */
  hits: SearchHit[];
  /** why a plain scan served */
  fallback: string | null;
  error: string;
}

/** The opened file. */
interface NotePage {
  path: string;
  load: "loading" | "ready" | "missing" | "failed";
  /** as it was last heard of */
  file: Note | null;
}

/** A file of memory as it is typed. */
interface NoteForm {
  /** `new`, or its path */
  key: string;
  /** of a new one */
  title: string;
  text: string;
  /** what is edited; its text may be known no more; null: there is no such file yet */
  base: {hash: string, text: string | null} | null;
  error: string;
  /** another version was saved meanwhile; null in it: the file is gone */
  conflict: {current: Note | null, shown: boolean} | null;
  /** what stands here was typed before the page was loaded */
  restored: boolean;
  /** the browser does not keep what is typed */
  unkept: boolean;
  busy: boolean;
  /** sent or given up: it goes when its page is left */
  over: boolean;
}

/** What was typed and not saved, as the browser keeps it. */
interface NoteDraft {
  title: string;
  text: string;
  /** of the version it was typed over */
  hash: string | null;
}

interface BacklogPage {
  load: "idle" | "loading" | "ready" | "failed";
  items: {text: string, done: boolean}[];
  draft: string;
  /** what is being changed */
  busy: string;
  error: string;
}

/** An endpoint as it is typed; its key goes when the form does. */
interface EngineForm {
  /** what is changed; null: a new one */
  base: Engine | null;
  name: string;
  baseUrl: string;
  model: string;
  keyIs: "none" | "kept" | "key" | "variable";
  key: string;
  keyEnv: string;
  /** by field; `form`: of none */
  errors: Record<string, string>;
  busy: "" | "trial" | "save";
  /** what came of the last one */
  trial: Trial | null;
}

interface EnginesPage {
  load: "idle" | "loading" | "ready" | "failed";
  error: string;
  list: EngineList | null;
  form: EngineForm | null;
  /** the one whose order is shown */
  seat: string;
}

interface LifePage {
  load: "idle" | "loading" | "ready" | "failed";
  error: string;
  selfAwake: SelfAwake | null;
  notify: Notify | null;
  /** settings by key, as they are */
  values: Record<string, string | number | null>;
  /** those that were changed and not saved */
  typed: Record<string, string>;
  errors: Record<string, string>;
  /** the one that is typed */
  channel: {name: string, url: string, errors: Record<string, string>};
  /** the branch whose diff is open */
  shown: {branch: string, diff: Diff | null, error: string, unfolded: Record<string, boolean>} | null;
}

/** What memory a reply was given. */
interface TurnHits {
  open: boolean;
  load: "idle" | "loading" | "ready" | "failed";
  hits: {source: string, text?: string | null, line?: number | null, day?: string | null, kind?: HitKind | null}[];
  run: TurnReport["run"];
  cost: Record<string, number>;
}

/** The Teller's run that is going on. */
interface Turn {
  turnId: string;
  /** milliseconds, the server's clock */
  since: number;
  headline: string;
  inputs: string[];
  /** the reply as far as it has come */
  draft: string;
  /** its complete blocks, one after the other */
  blocks: DraftBlock[];
  /** set when it is over */
  endedAt: number | null;
  /** the offset of the delta that comes next */
  end: number;
  /** a part of the draft is missing; it was asked for; it came or not */
  gap: "" | "found" | "filled" | "missing";
  /** its message has come: the draft is no longer shown */
  committed: boolean;
}

/** What GET /api/tasks/{id} says beyond the task itself. */
interface TaskPage {
  id: string;
  load: "loading" | "ready" | "missing" | "failed";
  task: Task | null;
  result: {text: string, html?: string | null, exitCode?: number | null, resultType?: string, hasDiff?: boolean, data?: Record<string, any>} | null;
  events: LedgerEvent[];
  trace: Task[];
  chain: ChainStep[];
  /** of all its attempts */
  usage: TokenCounts | null;
  /** what it changed */
  diff: Diff | null;
  diffLoad: "idle" | Loaded["load"];
  /** files of the diff and their parts: open, or closed */
  unfolded: Record<string, boolean>;
  output: TaskOutput;
}

/** What was used, by each of these. */
interface UsagePage {
  load: "loading" | "ready" | "failed";
  day?: UsageReport;
  engine?: UsageReport;
  role?: UsageReport;
  trigger?: UsageReport;
}

interface TaskOutput {
  blocks: OutputBlock[];
  /** characters that are no longer shown */
  dropped: number;
  offset: string | null;
  ended: boolean;
  load: "idle" | "loading" | "failed";
  /** nothing is to be left out */
  whole: boolean;
}

/** Its filter, and the ended jobs that are loaded. */
interface JobList {
  load: "idle" | "loading" | "ready" | "failed";
  q: string;
  chip: string;
  ids: string[];
  before: string | null;
}

type OutputBlock = {type: string, stream: string | null, text: string};

type Connection = "connecting" | "online" | "reconnecting" | "polling" | "offline";

type Route =
  | {view: "chat"}
  | {view: "home"}
  | {view: "tasks"}
  | {view: "triggers"}
  | {view: "task", id: string}
  | {view: "trigger", id: string}
  | {view: "triggerNew"}
  | {view: "triggerEdit", id: string}
  | {view: "engines"}
  | {view: "life"}
  | {view: "usage"}
  | {view: "memory"}
  | {view: "backlog"}
  | {view: "noteNew"}
  | {view: "note", path: string, line: number | null}
  | {view: "noteEdit", path: string};

type Notice = {id: string, tone: "info" | "error", text: string};

interface State {
  session: "checking" | "out" | "in";
  login: {busy: boolean, error: string};
  load: "loading" | "ready" | "failed";
  loadError: string;
  connection: Connection;
  /** the server's clock minus ours */
  skewMs: number;
  /** the server's clock, milliseconds; moved by ticks */
  now: number;
  version: string;
  /** the workspace's time zone; empty: not known yet */
  zone: string;
  /** the server runs another version than the page was made by */
  outdated: boolean;
  messages: Message[];
  before: string | null;
  older: "idle" | "loading" | "failed";
  inbox: InboxItem[];
  outbox: OutboxItem[];
  question: Question | null;
  answering: {busy: boolean, error: string};
  /** those that changed since the page was loaded */
  tasks: Record<string, Task>;
  jobs: Record<string, Job>;
  /** of all jobs, by state */
  totals: Record<string, number>;
  list: JobList;
  /** of triggers whose line was opened */
  runs: Record<string, {open: boolean, jobs: Job[], before: string | null}>;
  triggers: Record<string, Trigger>;
  status: Status | null;
  turn: Turn | null;
  detail: TaskPage | null;
  triggerDetail: TriggerPage | null;
  /** what is being typed, by `new` or the trigger's id */
  forms: Record<string, TriggerForm>;
  memory: MemoryPage;
  note: NotePage | null;
  /** files that are edited, by `new` or their path */
  notes: Record<string, NoteForm>;
  backlog: BacklogPage;
  engines: EnginesPage;
  life: LifePage;
  usage: UsagePage;
  home: {load: "loading" | "ready" | "failed", data?: Home};
  /** by the id of the turn */
  hits: Record<string, TurnHits>;
  /** what was asked of a task or trigger and is under way; empty: nothing any more */
  pending: Record<string, string>;
  /** what is to be confirmed: by a trigger's id, a branch, `note`, or a kind and its name, as `engine x` */
  confirming: string;
  route: Route;
  /** the panel as it is wished: beside the chat, away, or a page of its own */
  panel: "side" | "closed" | "page";
  /** whether there is room for it beside the chat */
  roomy: boolean;
  /** whether it may stand there: there is room, and it is no page */
  wide: boolean;
  /** the open command palette */
  palette: {query: string, at: number} | null;
  /** the browser may show what is urgent while the page is hidden */
  notifying: boolean;
  following: boolean;
  /** messages that came while the reader was further up */
  unseen: number;
  files: AttachedFile[];
  draft: string;
  notices: Notice[];
  language: "en" | "zh";
  theme: "system" | "light" | "dark";
}
