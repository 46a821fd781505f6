/**
 * Shapes of the server's JSON that the page uses; docs/http.md explains the fields.
 * Made by scripts/make_http_docs.py; do not edit.
 *
 * @typedef {{type: "and", params: JoinedParameters}} AndCondition
 * @typedef {{text: string, done: boolean}} BacklogItem
 * @typedef {{dailyTokens: number | null, perTaskTokens: number | null,
 *   perTriggerDailyTokens: number | null, used: number, until: string | null, messages: number,
 *   tasks: number}} BudgetStatus
 * @typedef {{id: string, title: string, words: {en: string, zh: string}}} ChainLink
 * @typedef {{id: string, kind: "task" | "trigger", title: string, state: string, depth: number,
 *   after: ChainLink[]}} ChainStep
 * @typedef {{cursor: string, reset: boolean,
 *   events: (MessageChange | InboxChange | TaskChange | TriggerChange | QuestionChange | StatusChange | TurnChange | DeltaChange)[]}}
 *   ChangeList
 * @typedef {{kind: "delta", turnId: string, text: string, offset: number | null, reset: boolean}}
 *   DeltaChange
 * @typedef {{oldStart: number, oldLines: number, newStart: number, newLines: number,
 *   lines: string[]}} DiffHunk
 * @typedef {{files: FileDiff[], moreFiles: number, unseen: string[], interrupted: number}} Diff
 * @typedef {{turnId: string, text: string, end: number}} Draft
 * @typedef {{engines: Engine[], orders: Record<string, string[]>}} EngineList
 * @typedef {{engine: string, state: "ready" | "waiting",
 *   want: "missing" | "logged_out" | "account" | "region" | "unknown_model" | "limited" | "unreachable" | "broken" | "unready" | null,
 *   reason: string | null, since: string | null, until: string | null, nextTryAt: string | null,
 *   messages: number, tasks: number, standIn: string | null}} EngineStatus
 * @typedef {{name: string, kind: "program" | "local" | "endpoint" | "builtin", baseUrl: string,
 *   model: string, key: "none" | "kept" | "variable", keyEnv: string,
 *   state: "ready" | "waiting" | "unknown",
 *   want: "missing" | "logged_out" | "account" | "region" | "unknown_model" | "limited" | "unreachable" | "broken" | "unready" | null,
 *   reason: string | null, until: string | null, tasks: number, serves: string[]}} Engine
 * @typedef {{state: "waits" | "due" | "paused" | "blocked" | "cooling" | "running" | "broken" | "gone" | "unknown",
 *   headline: Record<string, string>, lines: Record<string, string>[], nodes: NodeExplanation[],
 *   slots: SlotExplanation[]}} Explanation
 * @typedef {{type: "file_changed", params: FileChangedParameters}} FileChanged
 * @typedef {{path: string, settle: number | null, fireOnInit: boolean}} FileChangedParameters
 * @typedef {{path: string, action: "added" | "modified" | "deleted" | "renamed",
 *   fromPath: string | null, added: number, removed: number, oldSize: number | null,
 *   newSize: number | null, oldMode: string | null, newMode: string | null,
 *   unshown: "binary" | "big" | "unknown" | null, cutLines: number, shared: boolean,
 *   attempt: number, hunks: DiffHunk[]}} FileDiff
 * @typedef {{type: "file_exists", params: FileExistsParameters}} FileExists
 * @typedef {{path: string, settle: number | null}} FileExistsParameters
 * @typedef {{needs: Needs, running: Run[], next: Trigger[], timeline: Run[], moreRuns: boolean,
 *   usage: UsageToday}} Home
 * @typedef {{kind: "inbox", id: string, item: InboxItem | null, gone: boolean}} InboxChange
 * @typedef {{id: string, kind: "user_input" | "answer", text: string, createdAt: string,
 *   quote: string | null, state: "queued" | "answering"}} InboxItem
 * @typedef {{text: string, cut: number, html: string | null, error: string,
 *   exitCode: number | null, failureReason: string | null}} JobOutcome
 * @typedef {{jobs: Job[], totals: Record<string, number>, found: number, before: string | null}}
 *   JobPage
 * @typedef {{id: string, title: string,
 *   state: "queued" | "running" | "asking" | "done" | "failed" | "canceled"}} JobStep
 * @typedef {{id: string, kind: "request" | "trigger", title: string,
 *   state: "asked" | "planning" | "running" | "waiting" | "done" | "failed" | "canceled",
 *   messageId: string | null, taskId: string, profile: string, askedAt: string,
 *   startedAt: string | null, endedAt: string | null, notBefore: string | null,
 *   waitsFor: string | null, failureReason: string | null, headline: string, tail: string,
 *   steps: JobStep[], runs: number, changes: number, failures: number, outcome: JobOutcome | null}}
 *   Job
 * @typedef {{conditions: (FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition)[]}}
 *   JoinedParameters
 * @typedef {{type: string | null}} LedgerEvent
 * @typedef {{type: "llm_eval", params: LlmEvalParameters}} LlmEvalCondition
 * @typedef {{prompt: string}} LlmEvalParameters
 * @typedef {{path: string, kind: "longTerm" | "raw" | "day" | "month" | "docs", title: string,
 *   day: string | null, size: number, modifiedAt: string | null, editable: boolean,
 *   hidden: boolean}} MemoryFile
 * @typedef {{kind: "message", message: Message}} MessageChange
 * @typedef {{id: string, role: "user" | "agent" | "system", text: string, html: string | null,
 *   createdAt: string, turnId: string | null, inReplyTo: string[], taskIds: string[],
 *   usage: Usage | null, durationMs: number | null, quote: string | null, engine: string | null,
 *   failed: boolean, stopped: boolean, error: string | null, questionId: string | null,
 *   options: string[], reminder: string | null, memory: number, triggerId: string | null,
 *   repeats: string[], since: string | null}} Message
 * @typedef {{question: Question | null, failures: Run[], triggers: Trigger[],
 *   engines: EngineStatus[]}} Needs
 * @typedef {{path: string, depth: number, type: string, words: Record<string, string>,
 *   holds: boolean | null, why: Record<string, string>, at: string | null}} NodeExplanation
 * @typedef {{type: "not", params: NotParameters}} NotCondition
 * @typedef {{condition: FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition}}
 *   NotParameters
 * @typedef {{path: string, kind: "longTerm" | "raw" | "day" | "month" | "docs", title: string,
 *   day: string | null, size: number, modifiedAt: string | null, editable: boolean,
 *   hidden: boolean, text: string, hash: string, html: string, cut: boolean}} Note
 * @typedef {{type: "or", params: JoinedParameters}} OrCondition
 * @typedef {{at: string, type: string, text: string, stream: string | null, data: Record<string,
 *   any>}} OutputEvent
 * @typedef {{kind: "question", question: Question | null}} QuestionChange
 * @typedef {{questionId: string, question: string, options: string[] | null,
 *   default: string | null, createdAt: string, expiresAt: string}} Question
 * @typedef {{status: string, text: string, html: string | null, error: string | null,
 *   failureReason: string | null, exitCode: number | null, data: Record<string, any>,
 *   engine: string, usage: Usage, resultType: "text" | "code_change" | "analysis" | "summary",
 *   hasDiff: boolean, completedAt: string}} Result
 * @typedef {{state: "idle" | "replying" | "planning", since: string | null, headline: string,
 *   turnId: string | null}} RoleStatus
 * @typedef {{id: string, title: string,
 *   state: "queued" | "running" | "asking" | "done" | "failed" | "canceled", createdAt: string,
 *   startedAt: string | null, completedAt: string | null, headline: string,
 *   failureReason: string | null, error: string | null, count: number}} Run
 * @typedef {{interval: number | null, cron: string | null, timezone: string | null,
 *   runAt: string | null, starting: string | null, until: string | null, times: number | null,
 *   lateness: number | null, everyDays: number | null, everyWeeks: number | null}} Schedule
 * @typedef {{source: string, kind: string, snippet: string, marks: [number, number][],
 *   score: number, day: string | null, line: number, messageId: string | null, role: string | null,
 *   taskId: string | null}} SearchHit
 * @typedef {{ok: true}} Session
 * @typedef {{at: string, slot: string | null, state: string | null, taskId: string | null,
 *   plannedAt: string | null, reason: Record<string, string> | null, missed: number | null}}
 *   SlotExplanation
 * @typedef {{cursor: string, version: string, now: string, timezone: string, messages: Message[],
 *   before: string | null, inbox: InboxItem[], question: Question | null, draft: Draft | null,
 *   jobs: Job[], totals: Record<string, number>, triggers: Trigger[], status: Status}} Snapshot
 * @typedef {{kind: "status", status: Status}} StatusChange
 * @typedef {{consumer: "ok" | "hung" | "down", beatAgeS: number | null, teller: RoleStatus,
 *   planner: RoleStatus, workers: WorkersStatus, queues: Record<string, number>,
 *   engines: Record<string, EngineStatus>, minds: Record<string, EngineStatus>, paused: boolean,
 *   question: boolean, degraded: string | null, quarantined: number, lastTick: string | null,
 *   usage: UsageToday, version: string}} Status
 * @typedef {{kind: "task", task: Task, job: Job | null, totals: Record<string, number>}} TaskChange
 * @typedef {{task: Task, result: Result | null, events: LedgerEvent[], trace: Task[],
 *   chain: ChainStep[], usage: TokenCounts}} TaskDetail
 * @typedef {{type: "task_done", params: TaskParameters}} TaskDone
 * @typedef {{type: "task_failed", params: TaskParameters}} TaskFailed
 * @typedef {{taskId: string}} TaskParameters
 * @typedef {{id: string, seat: "planner" | "worker",
 *   state: "queued" | "running" | "asking" | "done" | "failed" | "canceled", title: string,
 *   prompt: string, profile: string, priority: number, origin: string, createdAt: string,
 *   startedAt: string | null, completedAt: string | null, notBefore: string | null,
 *   waitsFor: string | null, attempts: number, maxAttempts: number, failureReason: string | null,
 *   error: string | null, traceId: string, parentTaskId: string | null,
 *   sourceTriggerId: string | null, retryOf: string | null, upstream: string[], internal: boolean,
 *   headline: string, waitMs: number | null, runMs: number | null}} Task
 * @typedef {{runs: number, estimated: number, inputTokens: number, cachedInputTokens: number,
 *   outputTokens: number, reasoningOutputTokens: number, cost: Record<string, number>}} TokenCounts
 * @typedef {{ok: boolean, models: string[], api: string | null, text: string, callsTools: boolean,
 *   tookS: number, message: string, field: string | null, trouble: string}} Trial
 * @typedef {{kind: "trigger", id: string, trigger: Trigger | null}} TriggerChange
 * @typedef {{type: string, schedule: Schedule | null,
 *   condition: FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null,
 *   cooldown: number, words: {en: string, zh: string}, next: string[], notes: {en: string,
 *   zh: string}[]}} TriggerPreview
 * @typedef {{id: string, title: string, prompt: string, profile: string, priority: number,
 *   type: "recurring" | "scheduled" | "conditional" | "broken", words: {en: string, zh: string},
 *   enabled: boolean, createdAt: string | "", schedule: Schedule | null,
 *   condition: FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null,
 *   cooldown: number, once: boolean, overlap: "skip" | "queue",
 *   notify: "teller" | "message" | "change" | "failure" | "none", notifyGiven: boolean,
 *   told: {en: string, zh: string}, timeout: number | null, maxAttempts: number, origin: string,
 *   traceId: string, lastRunAt: string | null, nextRunAt: string | null, fireCount: number,
 *   lastTaskId: string | null, lastVerdict: string | null, failureStreak: number,
 *   pausedBy: "breaker" | null, blockedBy: string | null, broken: string | null,
 *   headline: {en: string, zh: string}, last: {en: string, zh: string} | null}} Trigger
 * @typedef {{kind: "turn", state: "started" | "ended", turnId: string, headline: string,
 *   inputs: string[]}} TurnChange
 * @typedef {{inputTokens: number, cachedInputTokens: number, outputTokens: number,
 *   reasoningOutputTokens: number}} Usage
 * @typedef {{by: "day" | "engine" | "model" | "role" | "task" | "trigger" | "message",
 *   since: string, today: TokenCounts, total: TokenCounts, rows: UsageRow[], budget: BudgetStatus}}
 *   UsageReport
 * @typedef {{runs: number, estimated: number, inputTokens: number, cachedInputTokens: number,
 *   outputTokens: number, reasoningOutputTokens: number, cost: Record<string, number>, key: string,
 *   title: string}} UsageRow
 * @typedef {{runs: number, estimated: number, inputTokens: number, cachedInputTokens: number,
 *   outputTokens: number, reasoningOutputTokens: number, cost: Record<string, number>,
 *   budget: BudgetStatus}} UsageToday
 * @typedef {{busy: number, seats: number}} WorkersStatus
 * @typedef {ChangeList["events"][number]} Change
 */
