/**
 * Shapes of the server's JSON; docs/http.md explains the fields.
 * Made by scripts/make_http_docs.py; do not edit.
 */

interface Accepted {
  id: string;
  state: string;
}

interface AndCondition {
  type: "and";
  params: JoinedParameters;
}

interface BacklogConflict {
  error: ErrorDetail;
  current: Backlog;
}

interface BacklogItem {
  text: string;
  done: boolean;
}

interface Backlog {
  items: BacklogItem[];
  hash: string;
}

interface BudgetStatus {
  dailyTokens: number | null;
  perTaskTokens: number | null;
  perTriggerDailyTokens: number | null;
  used: number;
  until: string | null;
  messages: number;
  tasks: number;
}

interface ChainLink {
  id: string;
  title: string;
  words: {en: string, zh: string};
}

interface ChainStep {
  id: string;
  kind: "task" | "trigger";
  title: string;
  state: string;
  depth: number;
  after: ChainLink[];
}

interface ChangeList {
  cursor: string;
  reset: boolean;
  events: (MessageChange | InboxChange | TaskChange | TriggerChange | QuestionChange | StatusChange | TurnChange | DeltaChange)[];
}

interface Channel {
  name: string;
  address: string;
  waiting: number;
  error: string;
  retryAt: string | null;
}

interface CommandOutcome {
  ok: boolean;
  message: string;
  resultId: string | null;
  code: string | null;
  params: Record<string, string | number> | null;
}

interface CommandWaiting {
  command: string;
}

interface CreatedTrigger {
  id: string;
  told: {en: string, zh: string} | null;
  notes: {en: string, zh: string}[];
}

interface Created {
  id: string;
}

interface DeltaChange {
  kind: "delta";
  turnId: string;
  text: string;
  offset: number | null;
  reset: boolean;
  blocks: DraftBlock[];
}

interface DiffHunk {
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  lines: string[];
}

interface Diff {
  files: FileDiff[];
  moreFiles: number;
  unseen: string[];
  interrupted: number;
}

interface DraftBlock {
  start: number;
  end: number;
  html: string;
}

interface Draft {
  turnId: string;
  text: string;
  blocks: DraftBlock[];
  end: number;
}

interface EngineList {
  engines: Engine[];
  orders: Record<string, string[]>;
}

interface EngineStatus {
  engine: string;
  state: "ready" | "waiting";
  want: "missing" | "logged_out" | "account" | "region" | "unknown_model" | "limited" | "unreachable" | "broken" | "unready" | null;
  reason: string | null;
  since: string | null;
  until: string | null;
  nextTryAt: string | null;
  messages: number;
  tasks: number;
  standIn: string | null;
}

interface Engine {
  name: string;
  kind: "program" | "local" | "endpoint" | "builtin";
  baseUrl: string;
  model: string;
  key: "none" | "kept" | "variable";
  keyEnv: string;
  state: "ready" | "waiting" | "unknown";
  want: "missing" | "logged_out" | "account" | "region" | "unknown_model" | "limited" | "unreachable" | "broken" | "unready" | null;
  reason: string | null;
  until: string | null;
  tasks: number;
  serves: string[];
}

interface ErrorDetail {
  code: "failed" | "bad_input" | "not_found" | "conflict" | "refused" | "storage" | "newer_state" | "missing" | "unknown_field" | "wrong_type" | "too_long" | "too_short" | "too_large" | "too_small" | "not_one_of" | "bad_format" | "bad_id" | "bad_time" | "bad_zone" | "bad_name" | "bad_path" | "bad_request" | "body_too_large" | "too_many" | "logged_out" | "bad_token" | "login_link_used" | "no_remote_commands" | "no_remote_variable" | "docs_read_only" | "disk_full" | "id_taken" | "changed_meanwhile" | "question_closed" | "has_ended" | "not_ended" | "bad_when" | "bad_cron" | "no_future_time" | "no_subject" | "condition_cycle" | "trigger_broken" | "nothing_to_change" | "bad_settings" | "bad_address" | "bad_key" | "bad_variable" | "key_again" | "bad_note_name" | "not_utf8" | "files_full" | "no_apprise";
  field: string | null;
  params: Record<string, string | number>;
  message: string;
}

interface ErrorView {
  error: ErrorDetail;
}

interface Explanation {
  state: "waits" | "due" | "paused" | "blocked" | "cooling" | "running" | "broken" | "gone" | "unknown";
  headline: Record<string, string>;
  lines: Record<string, string>[];
  nodes: NodeExplanation[];
  slots: SlotExplanation[];
}

interface FileChanged {
  type: "file_changed";
  params: FileChangedParameters;
}

interface FileChangedParameters {
  path: string;
  settle: number | null;
  fireOnInit: boolean;
}

interface FileDiff {
  path: string;
  action: "added" | "modified" | "deleted" | "renamed";
  fromPath: string | null;
  added: number;
  removed: number;
  oldSize: number | null;
  newSize: number | null;
  oldMode: string | null;
  newMode: string | null;
  unshown: "binary" | "big" | "unknown" | null;
  cutLines: number;
  shared: boolean;
  attempt: number;
  hunks: DiffHunk[];
}

interface FileExists {
  type: "file_exists";
  params: FileExistsParameters;
}

interface FileExistsParameters {
  path: string;
  settle: number | null;
}

interface FileRef {
  id: string;
  name: string;
  kind: "text" | "image" | "other";
  bytes: number;
}

interface Healthz {
  ok: boolean;
  consumer: "ok" | "hung" | "down";
  disk: "ok" | "full";
}

interface Hit {
  source: string;
  text: string;
  line: number;
  kind: string;
  day: string | null;
}

interface Home {
  needs: Needs;
  running: Run[];
  next: Trigger[];
  timeline: Run[];
  moreRuns: boolean;
  usage: UsageToday;
}

interface Improvement {
  id: string;
  item: string;
  startedAt: string;
  plan: string;
  end: "committed" | "proposed" | "nothing" | "dropped" | null;
  reason: string;
  branch: string | null;
  asked: boolean;
}

interface InboxChange {
  kind: "inbox";
  id: string;
  item: InboxItem | null;
  gone: boolean;
}

interface InboxItem {
  id: string;
  kind: "user_input" | "answer";
  text: string;
  createdAt: string;
  quote: string | null;
  files: FileRef[];
  state: "queued" | "answering";
}

interface Index {
  files: number;
  passages: number;
  fresh: boolean;
  words: string;
  fallback: string | null;
}

interface JobOutcome {
  taskId: string;
  state: string;
  text: string;
  cut: number;
  html: string | null;
  error: string;
  exitCode: number | null;
  failureReason: string | null;
}

interface JobPage {
  jobs: Job[];
  totals: Record<string, number>;
  found: number;
  before: string | null;
}

interface JobStep {
  id: string;
  title: string;
  state: "queued" | "running" | "asking" | "done" | "failed" | "canceled";
  pending: boolean;
}

interface Job {
  id: string;
  kind: "request" | "trigger";
  title: string;
  state: "asked" | "planning" | "running" | "waiting" | "done" | "failed" | "canceled";
  messageId: string | null;
  taskId: string;
  profile: string;
  askedAt: string;
  startedAt: string | null;
  endedAt: string | null;
  notBefore: string | null;
  waitsFor: string | null;
  failureReason: string | null;
  headline: string;
  tail: string;
  steps: JobStep[];
  runs: number;
  changes: number;
  failures: number;
  outcome: JobOutcome | null;
}

interface JoinedParameters {
  conditions: (FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition)[];
}

interface LedgerEvent {
  type: string | null;
}

interface LlmEvalCondition {
  type: "llm_eval";
  params: LlmEvalParameters;
}

interface LlmEvalParameters {
  prompt: string;
}

interface Login {
  ok: true;
  key: string;
}

interface MemoryFile {
  path: string;
  kind: "longTerm" | "raw" | "day" | "month" | "docs";
  title: string;
  day: string | null;
  size: number;
  modifiedAt: string | null;
  editable: boolean;
  hidden: boolean;
}

interface MemoryList {
  files: MemoryFile[];
  index: Index;
}

interface MessageChange {
  kind: "message";
  message: Message;
}

interface Message {
  id: string;
  role: "user" | "agent" | "system";
  text: string;
  html: string | null;
  createdAt: string;
  turnId: string | null;
  inReplyTo: string[];
  taskIds: string[];
  usage: Usage | null;
  durationMs: number | null;
  quote: string | null;
  files: FileRef[];
  engine: string | null;
  failed: boolean;
  stopped: boolean;
  error: string | null;
  questionId: string | null;
  options: string[];
  reminder: string | null;
  memory: number;
  triggerId: string | null;
  repeats: string[];
  since: string | null;
}

interface MessagesPage {
  messages: Message[];
  jobs: Job[];
  before: string | null;
}

interface Needs {
  question: Question | null;
  failures: Run[];
  triggers: Trigger[];
  engines: EngineStatus[];
}

interface NodeExplanation {
  path: string;
  depth: number;
  type: string;
  words: Record<string, string>;
  holds: boolean | null;
  why: Record<string, string>;
  at: string | null;
}

interface NotCondition {
  type: "not";
  params: NotParameters;
}

interface NotParameters {
  condition: FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition;
}

interface NoteConflict {
  error: ErrorDetail;
  current: Note | null;
}

interface Note {
  path: string;
  kind: "longTerm" | "raw" | "day" | "month" | "docs";
  title: string;
  day: string | null;
  size: number;
  modifiedAt: string | null;
  editable: boolean;
  hidden: boolean;
  text: string;
  hash: string;
  html: string;
  cut: boolean;
}

interface Notify {
  isInstalled: boolean;
  quiet: string;
  channels: Channel[];
  sent: SentNotice[];
}

interface OrCondition {
  type: "or";
  params: JoinedParameters;
}

interface OutputEvent {
  at: string;
  type: string;
  text: string;
  stream: string | null;
  data: Record<string, any>;
}

interface Output {
  events: OutputEvent[];
  offset: string;
  ended: boolean;
}

interface QuestionChange {
  kind: "question";
  question: Question | null;
}

interface Question {
  questionId: string;
  question: string;
  options: string[] | null;
  default: string | null;
  createdAt: string;
  expiresAt: string;
}

interface RecentRun {
  id: string;
  state: "queued" | "running" | "asking" | "done" | "failed" | "canceled";
  at: string;
}

interface Result {
  status: string;
  text: string;
  html: string | null;
  error: string | null;
  failureReason: string | null;
  exitCode: number | null;
  data: Record<string, any>;
  engine: string;
  usage: Usage;
  resultType: "text" | "code_change" | "analysis" | "summary";
  hasDiff: boolean;
  completedAt: string;
}

interface RoleStatus {
  state: "idle" | "replying" | "planning";
  since: string | null;
  headline: string;
  turnId: string | null;
}

interface Run {
  id: string;
  title: string;
  state: "queued" | "running" | "asking" | "done" | "failed" | "canceled";
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  headline: string;
  failureReason: string | null;
  error: string | null;
  count: number;
}

interface Schedule {
  interval: number | null;
  cron: string | null;
  timezone: string | null;
  runAt: string | null;
  starting: string | null;
  until: string | null;
  times: number | null;
  lateness: number | null;
  everyDays: number | null;
  everyWeeks: number | null;
}

interface SearchAnswer {
  query: string;
  fallback: string | null;
  hits: SearchHit[];
  tookMs: number;
}

interface SearchHit {
  source: string;
  kind: string;
  snippet: string;
  marks: [number, number][];
  score: number;
  day: string | null;
  line: number;
  messageId: string | null;
  role: string | null;
  taskId: string | null;
}

interface SelfAwake {
  enabled: boolean;
  why: {en: string, zh: string} | null;
  next: string | null;
  nextAt: string | null;
  runs: Improvement[];
  branches: string[];
}

interface SentNotice {
  at: string;
  channel: string;
  title: string;
  outcome: "sent" | "failed" | "unknown";
  again: boolean;
  error: string;
}

interface Session {
  ok: true;
}

interface Settings {
  values: Record<string, number | string | null>;
}

interface SlotExplanation {
  at: string;
  slot: string | null;
  state: string | null;
  taskId: string | null;
  plannedAt: string | null;
  reason: Record<string, string> | null;
  missed: number | null;
}

interface Snapshot {
  cursor: string;
  version: string;
  now: string;
  timezone: string;
  messages: Message[];
  before: string | null;
  inbox: InboxItem[];
  question: Question | null;
  draft: Draft | null;
  jobs: Job[];
  totals: Record<string, number>;
  triggers: Trigger[];
  status: Status;
}

interface StatusChange {
  kind: "status";
  status: Status;
}

interface Status {
  consumer: "ok" | "hung" | "down";
  beatAgeS: number | null;
  teller: RoleStatus;
  planner: RoleStatus;
  workers: WorkersStatus;
  queues: Record<string, number>;
  engines: Record<string, EngineStatus>;
  byEngine: Record<string, EngineStatus>;
  paused: boolean;
  question: boolean;
  degraded: string | null;
  quarantined: number;
  lastTick: string | null;
  usage: UsageToday;
  version: string;
}

interface TaskChange {
  kind: "task";
  task: Task;
  job: Job | null;
  totals: Record<string, number>;
}

interface TaskDetail {
  task: Task;
  result: Result | null;
  events: LedgerEvent[];
  trace: Task[];
  chain: ChainStep[];
  usage: TokenCounts;
}

interface TaskDone {
  type: "task_done";
  params: TaskParameters;
}

interface TaskFailed {
  type: "task_failed";
  params: TaskParameters;
}

interface TaskList {
  tasks: Task[];
}

interface TaskParameters {
  taskId: string;
}

interface Task {
  id: string;
  seat: "planner" | "worker";
  state: "queued" | "running" | "asking" | "done" | "failed" | "canceled";
  title: string;
  prompt: string;
  profile: string;
  priority: number;
  origin: string;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  notBefore: string | null;
  waitsFor: string | null;
  attempts: number;
  maxAttempts: number;
  failureReason: string | null;
  error: string | null;
  traceId: string;
  parentTaskId: string | null;
  sourceTriggerId: string | null;
  retryOf: string | null;
  upstream: string[];
  internal: boolean;
  headline: string;
  waitMs: number | null;
  runMs: number | null;
}

interface TokenCounts {
  runs: number;
  estimated: number;
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningOutputTokens: number;
  cost: Record<string, number>;
}

interface ToolUse {
  name: string;
  ok: boolean;
  arguments: string;
  reply: string;
}

interface Trace {
  tasks: Task[];
  triggers: Trigger[];
  chain: ChainStep[];
}

interface Trial {
  ok: boolean;
  models: string[];
  api: string | null;
  text: string;
  callsTools: boolean;
  tookS: number;
  message: string;
  field: string | null;
  trouble: string;
}

interface TriggerChange {
  kind: "trigger";
  id: string;
  trigger: Trigger | null;
}

interface TriggerDetail {
  trigger: Trigger | null;
  explanation: Explanation;
  chain: ChainStep[];
  usage: TokenCounts;
  job: Job | null;
}

interface TriggerList {
  triggers: Trigger[];
}

interface TriggerPreview {
  type: string;
  schedule: Schedule | null;
  condition: FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null;
  cooldown: number;
  words: {en: string, zh: string};
  next: string[];
  notes: {en: string, zh: string}[];
}

interface Trigger {
  id: string;
  title: string;
  prompt: string;
  profile: string;
  priority: number;
  type: "recurring" | "scheduled" | "conditional" | "broken";
  words: {en: string, zh: string};
  enabled: boolean;
  createdAt: string | "";
  schedule: Schedule | null;
  condition: FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null;
  cooldown: number;
  once: boolean;
  overlap: "skip" | "queue";
  notify: "teller" | "message" | "change" | "failure" | "none";
  notifyGiven: boolean;
  told: {en: string, zh: string};
  timeout: number | null;
  maxAttempts: number;
  origin: string;
  traceId: string;
  lastRunAt: string | null;
  nextRunAt: string | null;
  fireCount: number;
  requestCount: number;
  lastTaskId: string | null;
  lastVerdict: string | null;
  failureStreak: number;
  pausedBy: "breaker" | null;
  blockedBy: string | null;
  broken: string | null;
  headline: {en: string, zh: string};
  last: {en: string, zh: string} | null;
  recent: RecentRun[];
}

interface TurnChange {
  kind: "turn";
  state: "started" | "ended";
  turnId: string;
  headline: string;
  inputs: string[];
}

interface TurnHit {
  source: string;
  text: string | null;
  line: number | null;
  day: string | null;
  kind: string | null;
}

interface TurnPrompt {
  id: string;
  role: "teller" | "planner" | "worker";
  engine: string;
  model: string | null;
  attempt: number;
  status: "done" | "failed" | "canceled";
  at: string;
  instructions: string;
  prompt: string;
  tools: string[];
  calls: ToolUse[];
  hits: Hit[];
  requests: number | null;
  usage: Usage;
}

interface TurnReport {
  hits: TurnHit[];
  run: TurnPrompt | null;
  cost: Record<string, number>;
}

interface Usage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningOutputTokens: number;
}

interface UsageReport {
  by: "day" | "engine" | "model" | "role" | "task" | "trigger" | "message";
  since: string;
  today: TokenCounts;
  total: TokenCounts;
  rows: UsageRow[];
  budget: BudgetStatus;
}

interface UsageRow {
  runs: number;
  estimated: number;
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningOutputTokens: number;
  cost: Record<string, number>;
  key: string;
  title: string;
}

interface UsageToday {
  runs: number;
  estimated: number;
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningOutputTokens: number;
  cost: Record<string, number>;
  budget: BudgetStatus;
}

interface WorkersStatus {
  busy: number;
  seats: number;
}

type Change = ChangeList["events"][number];
