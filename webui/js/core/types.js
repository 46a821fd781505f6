/**
 * Shapes of the server's JSON that the page uses.
 * Made by scripts/make_http_docs.py; do not edit.
 *
 * @typedef {object} AndCondition
 * @property {"and"} type
 * @property {JoinedParameters} params
 *
 * @typedef {object} BacklogItem
 * @property {string} text
 * @property {boolean} done
 *
 * @typedef {object} Backlog
 * @property {BacklogItem[]} items
 * @property {string} hash
 *
 * @typedef {object} BudgetStatus The caps, today's usage, and the work that waits for the budget. Units: tokens.
 * @property {number | null} dailyTokens
 * @property {number | null} perTaskTokens
 * @property {number | null} perTriggerDailyTokens
 * @property {number} used
 * @property {string | null} until When the budget resets, while work waits.
 * @property {number} messages
 * @property {number} tasks
 *
 * @typedef {object} ChainLink
 * @property {string} id
 * @property {string} title
 * @property {{en: string, zh: string}} words
 *
 * @typedef {object} ChainStep
 * @property {string} id
 * @property {"task" | "trigger"} kind
 * @property {string} title
 * @property {string} state
 * @property {number} depth
 * @property {ChainLink[]} after
 *
 * @typedef {object} ChangeList Changes since a cursor; `reset`: too many, load a new snapshot.
 * @property {string} cursor
 * @property {boolean} reset
 * @property {(MessageChange | InboxChange | TaskChange | TriggerChange | QuestionChange | StatusChange | TurnChange | DeltaChange)[]} events
 *
 * @typedef {object} DeltaChange A part of a reply in progress.
 * @property {"delta"} kind
 * @property {string} turnId
 * @property {string} text
 * @property {number | null} offset The number of UTF-16 code units that this attempt has streamed before it.
 * @property {boolean} reset The parts before it are withdrawn.
 *
 * @typedef {object} DiffHunk Changed lines with context. Numbers are 1-based; 0 where a side has none.
 * @property {number} oldStart
 * @property {number} oldLines
 * @property {number} newStart
 * @property {number} newLines
 * @property {string[]} lines Each begins with a space, `-`, `+`, or `\` (no newline at the end of the line before). Bytes that are not UTF-8 are written as `\xe9`.
 *
 * @typedef {object} Diff The changes of a task in the workspace, by attempt.
 * @property {FileDiff[]} files
 * @property {number} moreFiles Changed files that are not listed.
 * @property {string[]} unseen Folders that were not compared.
 * @property {number} interrupted Number of interrupted attempts, whose changes may be missing.
 *
 * @typedef {object} Draft What has come of the reply in progress.
 * @property {string} turnId
 * @property {string} text
 * @property {number} end The offset of the delta that comes next.
 *
 * @typedef {object} EngineList The programs, the endpoints in the order of the settings, then local and builtin.
 * @property {Engine[]} engines
 * @property {Record<string, string[]>} orders The order of use by role or profile; `all` is the default.
 *
 * @typedef {object} EngineStatus The availability of an engine, in general or for a role or profile.
 * @property {string} engine
 * @property {"ready" | "waiting"} state
 * @property {"missing" | "logged_out" | "account" | "region" | "unknown_model" | "limited" | "unreachable" | "broken" | "unready" | null} want
 * @property {string | null} reason Why it is unavailable; if ready: why a better engine was skipped.
 * @property {string | null} since Since when work is waiting.
 * @property {string | null} until When its rate limit ends, if known.
 * @property {string | null} nextTryAt When it is tried again; a message or a command tries it earlier.
 * @property {number} messages
 * @property {number} tasks
 * @property {string | null} standIn The engine used meanwhile.
 *
 * @typedef {object} Engine
 * @property {string} name
 * @property {"program" | "local" | "endpoint" | "builtin"} kind
 * @property {string} baseUrl
 * @property {string} model
 * @property {"none" | "kept" | "variable"} key
 * @property {string} keyEnv
 * @property {"ready" | "waiting" | "unknown"} state Unknown without a consumer, and for an engine that was never used.
 * @property {"missing" | "logged_out" | "account" | "region" | "unknown_model" | "limited" | "unreachable" | "broken" | "unready" | null} want
 * @property {string | null} reason
 * @property {string | null} until
 * @property {number} tasks
 * @property {string[]} serves The roles and profiles that use it now.
 *
 * @typedef {object} Explanation The current state of a trigger with its reasons, and its past slots.
 * @property {"waits" | "due" | "paused" | "blocked" | "cooling" | "running" | "broken" | "gone" | "unknown"} state
 * @property {Record<string, string>} headline
 * @property {Record<string, string>[]} lines
 * @property {NodeExplanation[]} nodes
 * @property {SlotExplanation[]} slots
 *
 * @typedef {object} FileChanged
 * @property {"file_changed"} type
 * @property {FileChangedParameters} params
 *
 * @typedef {object} FileChangedParameters
 * @property {string} path
 * @property {number | null} settle
 * @property {boolean} fireOnInit
 *
 * @typedef {object} FileDiff The change of one file. Sizes in bytes; None where the file did not, or does not, exist.
 * @property {string} path Relative to the workspace.
 * @property {"added" | "modified" | "deleted" | "renamed"} action
 * @property {string | null} fromPath
 * @property {number} added
 * @property {number} removed
 * @property {number | null} oldSize
 * @property {number | null} newSize
 * @property {string | null} oldMode
 * @property {string | null} newMode Permissions (`644`), where they changed.
 * @property {"binary" | "big" | "unknown" | null} unshown Why its content is not shown; unknown: the old content was not recorded.
 * @property {number} cutLines
 * @property {boolean} shared Other tasks ran at the same time and may have made this change.
 * @property {number} attempt
 * @property {DiffHunk[]} hunks
 *
 * @typedef {object} FileExists
 * @property {"file_exists"} type
 * @property {FileExistsParameters} params
 *
 * @typedef {object} FileExistsParameters
 * @property {string} path
 * @property {number | null} settle
 *
 * @typedef {object} InboxChange
 * @property {"inbox"} kind
 * @property {string} id
 * @property {InboxItem | null} item
 * @property {boolean} gone Whether it has left the inbox.
 *
 * @typedef {object} InboxItem A user's message that is not in the conversation yet.
 * @property {string} id
 * @property {"user_input" | "answer"} kind
 * @property {string} text
 * @property {string} createdAt
 * @property {string | null} quote
 * @property {"queued" | "answering"} state
 *
 * @typedef {object} JoinedParameters
 * @property {(FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition)[]} conditions
 *
 * @typedef {object} LedgerEvent An entry of the ledger; further keys depend on its type.
 * @property {string | null} type
 *
 * @typedef {object} LlmEvalCondition
 * @property {"llm_eval"} type
 * @property {LlmEvalParameters} params
 *
 * @typedef {object} LlmEvalParameters
 * @property {string} prompt
 *
 * @typedef {object} MemoryFile
 * @property {string} path
 * @property {"longTerm" | "raw" | "day" | "month" | "docs"} kind
 * @property {string} title
 * @property {string | null} day
 * @property {number} size
 * @property {string | null} modifiedAt
 * @property {boolean} editable
 * @property {boolean} hidden A day's summary that the month's summary contains.
 *
 * @typedef {object} MessageChange
 * @property {"message"} kind
 * @property {Message} message
 *
 * @typedef {object} Message
 * @property {string} id
 * @property {"user" | "agent" | "system"} role
 * @property {string} text
 * @property {string | null} html Sanitised HTML; null for a user's message, which is plain text.
 * @property {string} createdAt
 * @property {string | null} turnId
 * @property {string[]} inReplyTo
 * @property {string[]} taskIds
 * @property {Usage | null} usage
 * @property {number | null} durationMs
 * @property {string | null} quote
 * @property {string | null} engine
 * @property {boolean} failed
 * @property {boolean} stopped
 * @property {string | null} error
 * @property {string | null} reminder The text of the reminder that it delivers.
 * @property {number} memory Number of memory hits in its prompt.
 * @property {string | null} triggerId The trigger that it is only about.
 * @property {string[]} repeats Ids of earlier messages of that trigger, which this one replaces; oldest first.
 * @property {string | null} since When the oldest of them was sent.
 *
 * @typedef {object} NodeExplanation
 * @property {string} path
 * @property {number} depth
 * @property {string} type
 * @property {Record<string, string>} words
 * @property {boolean | null} holds
 * @property {Record<string, string>} why
 * @property {string | null} at
 *
 * @typedef {object} NotCondition
 * @property {"not"} type
 * @property {NotParameters} params
 *
 * @typedef {object} NotParameters
 * @property {FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition} condition
 *
 * @typedef {object} Note
 * @property {string} path
 * @property {"longTerm" | "raw" | "day" | "month" | "docs"} kind
 * @property {string} title
 * @property {string | null} day
 * @property {number} size
 * @property {string | null} modifiedAt
 * @property {boolean} editable
 * @property {boolean} hidden A day's summary that the month's summary contains.
 * @property {string} text
 * @property {string} hash To be sent with an edit.
 * @property {string} html
 * @property {boolean} cut Whether the file is longer than `text`.
 *
 * @typedef {object} OrCondition
 * @property {"or"} type
 * @property {JoinedParameters} params
 *
 * @typedef {object} OutputEvent
 * @property {string} at
 * @property {string} type
 * @property {string} text
 * @property {string | null} stream
 * @property {Record<string, any>} data
 *
 * @typedef {object} Output Events of a run from an offset on, the next offset, and whether the run has ended.
 * @property {OutputEvent[]} events
 * @property {string} offset
 * @property {boolean} ended
 *
 * @typedef {object} PlannerStatus
 * @property {"idle" | "planning"} state
 * @property {string | null} since
 * @property {string} headline
 *
 * @typedef {object} QuestionChange
 * @property {"question"} kind
 * @property {Question | null} question
 *
 * @typedef {object} Question
 * @property {string} questionId
 * @property {string} question
 * @property {string[] | null} options
 * @property {string | null} default
 * @property {string} createdAt
 * @property {string} expiresAt
 *
 * @typedef {object} Result
 * @property {string} status
 * @property {string} text
 * @property {string | null} error
 * @property {string | null} failureReason
 * @property {number | null} exitCode
 * @property {Record<string, any>} data
 * @property {string} engine
 * @property {Usage} usage
 * @property {"text" | "code_change" | "analysis" | "summary"} resultType
 * @property {boolean} hasDiff Whether files of the workspace changed; see `…/diff`.
 * @property {string | null} html Null without a text, and for the output of a command, which is plain text.
 * @property {string} completedAt
 *
 * @typedef {object} Schedule Exactly one of interval (seconds), cron, runAt; and limits of its slots.
 * @property {number | null} interval
 * @property {string | null} cron
 * @property {string | null} timezone
 * @property {string | null} runAt
 * @property {string | null} starting The earliest slot.
 * @property {string | null} until The latest slot; then the trigger is removed.
 * @property {number | null} times The number of runs; then the trigger is removed.
 * @property {number | null} lateness A slot later than this many seconds is recorded as missed and not run.
 * @property {number | null} everyDays Of a cron line: on every Nth day only, counted from the local date of `starting`.
 * @property {number | null} everyWeeks Of a cron line: in every Nth week (from Monday) only, counted from the week of `starting`.
 *
 * @typedef {object} SearchHit A search hit with its snippet.
 * @property {string} source
 * @property {string} kind
 * @property {string} snippet
 * @property {[number, number][]} marks Begin and end of each match in the snippet. Units: characters; sorted, disjoint.
 * @property {number} score
 * @property {string | null} day
 * @property {number} line 0 for a hit that is not in a text file.
 * @property {string | null} messageId
 * @property {string | null} role
 * @property {string | null} taskId
 *
 * @typedef {object} SlotExplanation A past slot, from the ledger. Times are unparsed: a user may have edited the file.
 * @property {string} at
 * @property {string | null} slot
 * @property {string | null} state
 * @property {string | null} taskId
 * @property {string | null} plannedAt
 * @property {Record<string, string> | null} reason
 * @property {number | null} missed
 *
 * @typedef {object} Snapshot
 * @property {string} cursor
 * @property {string} version
 * @property {string} now
 * @property {string} timezone
 * @property {Message[]} messages
 * @property {string | null} before
 * @property {InboxItem[]} inbox
 * @property {Question | null} question
 * @property {Draft | null} draft
 * @property {Task[]} tasks
 * @property {Trigger[]} triggers
 * @property {Status} status
 *
 * @typedef {object} StatusChange
 * @property {"status"} kind
 * @property {Status} status
 *
 * @typedef {object} Status
 * @property {"ok" | "hung" | "down"} consumer
 * @property {number | null} beatAgeS
 * @property {TellerStatus} teller
 * @property {PlannerStatus} planner
 * @property {WorkersStatus} workers
 * @property {Record<string, number>} queues Number of queued tasks, by queue.
 * @property {Record<string, EngineStatus>} engines By role or profile.
 * @property {Record<string, EngineStatus>} minds By engine: each that was used, and what waits for it.
 * @property {boolean} paused
 * @property {boolean} question Whether a question is open.
 * @property {string | null} degraded
 * @property {number} quarantined
 * @property {string | null} lastTick
 * @property {UsageToday} usage
 * @property {string} version
 *
 * @typedef {object} TaskChange
 * @property {"task"} kind
 * @property {Task} task
 *
 * @typedef {object} TaskDetail A task with its result, events, trace and chain.
 * @property {Task} task
 * @property {LedgerEvent[]} events
 * @property {Task[]} trace
 * @property {ChainStep[]} chain
 * @property {Result | null} result
 * @property {TokenCounts} usage
 *
 * @typedef {object} TaskDone
 * @property {"task_done"} type
 * @property {TaskParameters} params
 *
 * @typedef {object} TaskFailed
 * @property {"task_failed"} type
 * @property {TaskParameters} params
 *
 * @typedef {object} TaskParameters
 * @property {string} taskId
 *
 * @typedef {object} Task A task and its state. Units: milliseconds.
 * @property {string} id
 * @property {"planner" | "worker"} seat
 * @property {"queued" | "running" | "asking" | "done" | "failed" | "canceled"} state
 * @property {string} title
 * @property {string} prompt
 * @property {string} profile
 * @property {number} priority
 * @property {string} origin
 * @property {string} createdAt
 * @property {string | null} startedAt
 * @property {string | null} completedAt
 * @property {string | null} notBefore
 * @property {string | null} waitsFor
 * @property {number} attempts
 * @property {number} maxAttempts
 * @property {string | null} failureReason
 * @property {string | null} error
 * @property {string} traceId
 * @property {string | null} parentTaskId
 * @property {string | null} sourceTriggerId
 * @property {string | null} retryOf
 * @property {string[]} upstream
 * @property {boolean} internal
 * @property {string} headline
 * @property {number | null} waitMs
 * @property {number | null} runMs
 *
 * @typedef {object} TellerStatus
 * @property {"idle" | "replying"} state
 * @property {string | null} since
 * @property {string} headline
 * @property {string | null} turnId
 *
 * @typedef {object} TokenCounts
 * @property {number} runs
 * @property {number} estimated Runs whose engine did not report all tokens.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Included in the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Included in the output.
 * @property {Record<string, number>} cost By currency, for engines with a price.
 *
 * @typedef {object} Trial
 * @property {boolean} ok
 * @property {string[]} models
 * @property {string | null} api `responses` or `chat`; null without a turn.
 * @property {string} text
 * @property {boolean} callsTools
 * @property {number} tookS
 * @property {string} message
 * @property {string | null} field
 *
 * @typedef {object} TriggerChange Without the trigger when it was removed.
 * @property {"trigger"} kind
 * @property {string} id
 * @property {Trigger | null} trigger
 *
 * @typedef {object} TriggerDetail A trigger with the explanation of its state, its chain, and its usage today.
 * @property {Trigger | null} trigger
 * @property {Explanation} explanation
 * @property {ChainStep[]} chain
 * @property {TokenCounts} usage
 *
 * @typedef {object} TriggerPreview
 * @property {string} type
 * @property {Schedule | null} schedule
 * @property {FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null} condition
 * @property {number} cooldown
 * @property {{en: string, zh: string}} words
 * @property {string[]} next
 * @property {{en: string, zh: string}[]} notes
 *
 * @typedef {object} Trigger A trigger and its state. Units: seconds.
 * @property {string} id
 * @property {string} title
 * @property {string} prompt
 * @property {string} profile
 * @property {number} priority
 * @property {"recurring" | "scheduled" | "conditional" | "broken"} type
 * @property {{en: string, zh: string}} words
 * @property {boolean} enabled
 * @property {string | ""} createdAt
 * @property {Schedule | null} schedule
 * @property {FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null} condition
 * @property {number} cooldown Minimum time between firings, with the default filled in.
 * @property {boolean} once
 * @property {"skip" | "queue"} overlap
 * @property {"teller" | "message" | "change" | "failure" | "none"} notify Who is notified of its runs, with the default filled in.
 * @property {boolean} notifyGiven
 * @property {{en: string, zh: string}} told `notify` in words.
 * @property {number | null} timeout
 * @property {number} maxAttempts
 * @property {string} origin
 * @property {string} traceId
 * @property {string | null} lastRunAt
 * @property {string | null} nextRunAt
 * @property {number} fireCount
 * @property {string | null} lastTaskId
 * @property {string | null} lastVerdict
 * @property {number} failureStreak Number of consecutive failures with the same error.
 * @property {"breaker" | null} pausedBy `breaker`: paused automatically after repeated failures.
 * @property {string | null} blockedBy The task or trigger because of which it can never fire.
 * @property {string | null} broken
 * @property {{en: string, zh: string}} headline Why it waits, or when it runs next.
 * @property {{en: string, zh: string} | null} last
 *
 * @typedef {object} TurnChange
 * @property {"turn"} kind
 * @property {"started" | "ended"} state
 * @property {string} turnId
 * @property {string} headline
 * @property {string[]} inputs
 *
 * @typedef {object} Usage
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 *
 * @typedef {object} UsageReport
 * @property {"day" | "engine" | "model" | "role" | "task" | "trigger" | "message"} by
 * @property {string} since The first day.
 * @property {TokenCounts} today
 * @property {TokenCounts} total
 * @property {UsageRow[]} rows By day in order, else by tokens, most first.
 * @property {BudgetStatus} budget
 *
 * @typedef {object} UsageRow
 * @property {number} runs
 * @property {number} estimated Runs whose engine did not report all tokens.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Included in the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Included in the output.
 * @property {Record<string, number>} cost By currency, for engines with a price.
 * @property {string} key The day, engine, model, role or id; empty for no trigger and the engine's default model.
 * @property {string} title Of a task, trigger or message.
 *
 * @typedef {object} UsageToday Usage of today, in the user's time zone.
 * @property {number} runs
 * @property {number} estimated Runs whose engine did not report all tokens.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Included in the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Included in the output.
 * @property {Record<string, number>} cost By currency, for engines with a price.
 * @property {BudgetStatus} budget
 *
 * @typedef {object} WorkersStatus
 * @property {number} busy
 * @property {number} seats
 * @typedef {ChangeList["events"][number]} Change
 */
export {};
