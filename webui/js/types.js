/**
 * The shapes of the server's JSON. Made by scripts/make_http_docs.py; do not edit.
 *
 * @typedef {object} Accepted The message lies in the inbox.
 * @property {string} id
 * @property {string} state
 *
 * @typedef {object} AndCondition
 * @property {"and"} type
 * @property {JoinedParameters} params
 *
 * @typedef {object} BacklogConflict
 * @property {ErrorDetail} error
 * @property {Backlog} current
 *
 * @typedef {object} BacklogItem
 * @property {string} text
 * @property {boolean} done
 *
 * @typedef {object} Backlog
 * @property {BacklogItem[]} items
 * @property {string} hash
 *
 * @typedef {object} Budget The caps, and what was used today; null: no cap. Units: tokens.
 * @property {number | null} dailyTokens
 * @property {number | null} perTaskTokens
 * @property {number | null} perTriggerDailyTokens
 * @property {number} used
 * @property {string | null} until While something waits for tokens: when the day is over.
 * @property {number} messages
 * @property {number} tasks
 *
 * @typedef {object} ChainLink What a step follows, and why.
 * @property {string} id
 * @property {string} title
 * @property {{en: string, zh: string}} words
 *
 * @typedef {object} ChainStep
 * @property {string} id
 * @property {"task" | "trigger"} kind
 * @property {string} title
 * @property {string} state
 * @property {number} depth How far it is indented.
 * @property {ChainLink[]} after
 *
 * @typedef {object} ChangeList What changed since a cursor; `reset`: too much, load a new snapshot.
 * @property {string} cursor
 * @property {boolean} reset
 * @property {(MessageChange | InboxChange | InboxGone | TaskChange | TriggerChange | QuestionChange | StatusChange | TurnChange | DeltaChange)[]} events
 *
 * @typedef {object} CommandOutcome
 * @property {boolean} ok
 * @property {string} message
 * @property {string | null} resultId
 *
 * @typedef {object} CommandWaiting The command is stored and not applied yet.
 * @property {string} command Its id.
 *
 * @typedef {object} CreatedTrigger
 * @property {string} id
 * @property {{en: string, zh: string} | null} told Who is told of its runs.
 * @property {{en: string, zh: string}[]} notes Costs, and what keeps it from running.
 *
 * @typedef {object} Created
 * @property {string} id
 *
 * @typedef {object} DeltaChange A piece of the reply that is being written.
 * @property {"delta"} kind
 * @property {string} turnId
 * @property {string} text
 *
 * @typedef {object} Diff What a task changed in the workspace, attempt after attempt.
 * @property {FileDiff[]} files
 * @property {number} moreFiles Changed files that are not listed.
 * @property {string[]} unseen Folders that were not compared.
 * @property {number} interrupted Attempts that were cut off: their changes may be missing.
 *
 * @typedef {object} EngineList The programs, the endpoints in the order of the settings, then local and builtin.
 * @property {Engine[]} engines
 * @property {Record<string, string[]>} orders The order they are used in: `all`, and each role or profile with an order of its own.
 *
 * @typedef {object} EngineStatus The availability of an engine, in general or for a role or profile.
 * @property {string} engine
 * @property {"ready" | "waiting"} state
 * @property {"missing" | "logged_out" | "limited" | "unreachable" | "broken" | "unready" | null} want
 * @property {string | null} reason Why it is unavailable; if ready: why a better engine was skipped.
 * @property {string | null} since Since when work is waiting.
 * @property {string | null} until When its rate limit ends, if known.
 * @property {string | null} nextTryAt When it is tried again; a message or a command tries it earlier.
 * @property {number} messages
 * @property {number} tasks
 * @property {string | null} standIn The fallback engine used meanwhile.
 *
 * @typedef {object} Engine
 * @property {string} name
 * @property {"program" | "local" | "endpoint" | "builtin"} kind
 * @property {string} baseUrl
 * @property {string} model
 * @property {"none" | "kept" | "variable"} key
 * @property {string} keyEnv The variable that holds the key.
 * @property {"ready" | "waiting" | "unknown"} state Unknown while no consumer runs, and for an engine that was never used.
 * @property {"missing" | "logged_out" | "limited" | "unreachable" | "broken" | "unready" | null} want
 * @property {string | null} reason
 * @property {string | null} until
 * @property {number} tasks How many wait for it.
 * @property {string[]} serves The roles and profiles that use it now.
 *
 * @typedef {object} ErrorDetail
 * @property {string} message
 * @property {string | null} field Of the input that is not valid.
 *
 * @typedef {object} ErrorView What went wrong and what to do.
 * @property {ErrorDetail} error
 *
 * @typedef {object} Explanation What a trigger does now and why, and its past slots.
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
 * @property {boolean} fireOnInit
 *
 * @typedef {object} FileDiff The change of one file. Units: bytes; null where there was, or is, no such file.
 * @property {string} path
 * @property {"added" | "modified" | "deleted" | "renamed"} action
 * @property {string | null} fromPath Of one that was renamed.
 * @property {number} added
 * @property {number} removed Lines, also those that are not shown.
 * @property {number | null} oldSize
 * @property {number | null} newSize
 * @property {string | null} oldMode
 * @property {string | null} newMode Permissions, where they changed.
 * @property {"binary" | "big" | "unknown" | null} unshown Why its content is not shown.
 * @property {number} cutLines Lines that are left out.
 * @property {boolean} shared Other work ran at the same time and may have done some of it.
 * @property {number} attempt
 * @property {Hunk[]} hunks
 *
 * @typedef {object} FileExists
 * @property {"file_exists"} type
 * @property {FileExistsParameters} params
 *
 * @typedef {object} FileExistsParameters
 * @property {string} path
 *
 * @typedef {object} Healthz
 * @property {boolean} ok
 * @property {"ok" | "hung" | "down"} consumer
 *
 * @typedef {object} Hit A search hit, with the matching places in its snippet.
 * @property {string} source
 * @property {string} kind
 * @property {string} snippet
 * @property {[number, number][]} marks Begin and end of each. Units: characters; in order, none overlap.
 * @property {number} score
 * @property {string | null} day
 * @property {number} line 0: not in a text file.
 * @property {string | null} messageId
 * @property {string | null} role
 * @property {string | null} taskId
 *
 * @typedef {object} Hunk Lines that changed, with some around them. Numbers are 1-based; 0 where a side has none.
 * @property {number} oldStart
 * @property {number} oldLines
 * @property {number} newStart
 * @property {number} newLines
 * @property {string[]} lines Each begins with a space, `-` or `+`; a backslash means that the line before it has no line end. Invisible characters are written as `‹U+202E›`.
 *
 * @typedef {object} InboxChange
 * @property {"inbox"} kind
 * @property {string} id
 * @property {InboxItem} item
 *
 * @typedef {object} InboxGone
 * @property {"inbox"} kind
 * @property {string} id
 * @property {null} item
 * @property {true} gone
 *
 * @typedef {object} InboxItem A message of the user's that is not in the conversation yet.
 * @property {string} id
 * @property {"user_input" | "answer"} kind
 * @property {string} text
 * @property {string} createdAt
 * @property {string | null} quote
 * @property {"queued" | "answering"} state
 *
 * @typedef {object} Index
 * @property {number} files
 * @property {number} passages
 * @property {boolean} fresh
 * @property {string} words
 * @property {string | null} fallback Why a plain scan is used instead.
 *
 * @typedef {object} JoinedParameters
 * @property {(FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition)[]} conditions
 *
 * @typedef {object} LedgerEvent A line of the ledger about a task; further keys depend on its type.
 * @property {string | null} type
 *
 * @typedef {object} LlmEvalCondition
 * @property {"llm_eval"} type
 * @property {LlmEvalParameters} params
 *
 * @typedef {object} LlmEvalParameters
 * @property {string} prompt
 *
 * @typedef {object} Login
 * @property {true} ok
 * @property {string} key What each request of the session sends as `X-Mimikit-Session`.
 *
 * @typedef {object} MemoryFile One file in the list of memory. Units: bytes.
 * @property {string} path
 * @property {"longTerm" | "raw" | "day" | "month" | "docs"} kind
 * @property {string} title
 * @property {string | null} day
 * @property {number} size
 * @property {string | null} modifiedAt Null for a time that is out of range.
 * @property {boolean} editable
 * @property {boolean} hidden A day's summary that its month's contains.
 *
 * @typedef {object} MemoryList
 * @property {MemoryFile[]} files
 * @property {Index} index
 *
 * @typedef {object} MessageChange
 * @property {"message"} kind
 * @property {Message} message
 *
 * @typedef {object} Message
 * @property {string} id
 * @property {"user" | "agent" | "system"} role
 * @property {string} text
 * @property {string | null} html Rendered and sanitised by the server; null for a user's message, which is plain text.
 * @property {string} createdAt
 * @property {string | null} turnId
 * @property {string[]} inReplyTo
 * @property {string[]} taskIds
 * @property {Usage | null} usage
 * @property {number | null} durationMs
 * @property {string | null} quote
 * @property {string | null} engine
 * @property {string | null} reminder The text of the reminder it delivers; its task is in `task_ids`.
 * @property {number} memory Number of memory hits its turn was given.
 * @property {string | null} triggerId The trigger, where it reports runs of one and nothing else.
 * @property {string[]} repeats Ids of earlier messages of that trigger, which this one replaces; oldest first.
 * @property {string | null} since When the oldest of them was sent.
 *
 * @typedef {object} MessagesPage Some messages, oldest first, and the cursor of those before them.
 * @property {Message[]} messages
 * @property {string | null} before
 *
 * @typedef {object} NodeExplanation One node of a condition with its last verdict.
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
 * @typedef {object} NoteConflict Another text was saved meanwhile; null: the file is gone.
 * @property {ErrorDetail} error
 * @property {Note | null} current
 *
 * @typedef {object} Note
 * @property {string} path
 * @property {"longTerm" | "raw" | "day" | "month" | "docs"} kind
 * @property {string} title
 * @property {string | null} day
 * @property {number} size
 * @property {string | null} modifiedAt Null for a time that is out of range.
 * @property {boolean} editable
 * @property {boolean} hidden A day's summary that its month's contains.
 * @property {string} text
 * @property {string} html
 * @property {string} hash Guards an edit.
 * @property {boolean} cut Whether the file is longer than this text.
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
 * @typedef {object} Output A run's events from an offset on, the next offset, and whether the run has ended.
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
 * @typedef {object} Result How a task ended, as the page shows it.
 * @property {string} status
 * @property {string} text
 * @property {string | null} error
 * @property {string | null} failureReason
 * @property {number | null} exitCode
 * @property {Record<string, any>} data
 * @property {string} engine
 * @property {Usage} usage
 * @property {"text" | "code_change" | "analysis" | "summary"} resultType
 * @property {boolean} hasDiff Whether files of the workspace changed; `…/diff` has them.
 * @property {string | null} html Null without a text, and for a command's output, which is plain text.
 * @property {string} completedAt
 *
 * @typedef {object} Schedule Exactly one of interval (seconds), cron, runAt.
 * @property {number | null} interval
 * @property {string | null} cron
 * @property {string | null} timezone
 * @property {string | null} runAt
 *
 * @typedef {object} SearchAnswer
 * @property {string} query
 * @property {Hit[]} hits
 * @property {number} tookMs
 * @property {string | null} fallback Why a plain scan was used.
 *
 * @typedef {object} Session
 * @property {true} ok
 *
 * @typedef {object} SlotExplanation One ledger line. Times are text, as a user may have edited the file.
 * @property {string} at
 * @property {string | null} slot
 * @property {string | null} state
 * @property {string | null} taskId
 * @property {string | null} plannedAt
 * @property {Record<string, string> | null} reason
 * @property {number | null} missed
 *
 * @typedef {object} Snapshot
 * @property {string} cursor Where later changes begin.
 * @property {string} version
 * @property {string} now
 * @property {string} timezone
 * @property {Message[]} messages
 * @property {string | null} before
 * @property {InboxItem[]} inbox
 * @property {Question | null} question
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
 * @property {Record<string, number>} queues Queued tasks, by queue.
 * @property {Record<string, EngineStatus>} engines The engine of each role or profile.
 * @property {Record<string, EngineStatus>} minds By name: each engine that was used here, and what waits for it.
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
 * @typedef {object} TaskDetail One task with its result, its events, trace and chain.
 * @property {Task} task
 * @property {Result | null} result
 * @property {LedgerEvent[]} events
 * @property {Task[]} trace
 * @property {ChainStep[]} chain
 * @property {TokenCounts} usage Of all its attempts.
 *
 * @typedef {object} TaskDone
 * @property {"task_done"} type
 * @property {TaskParameters} params
 *
 * @typedef {object} TaskFailed
 * @property {"task_failed"} type
 * @property {TaskParameters} params
 *
 * @typedef {object} TaskList
 * @property {Task[]} tasks
 *
 * @typedef {object} TaskParameters
 * @property {string} taskId
 *
 * @typedef {object} Task One task now. Units: milliseconds.
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
 * @property {string | null} waitsFor The engine it waits for.
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
 * @property {string} headline What a running task does now.
 * @property {number | null} waitMs
 * @property {number | null} runMs
 *
 * @typedef {object} TellerStatus
 * @property {"idle" | "replying"} state
 * @property {string | null} since
 * @property {string} headline
 * @property {string | null} turnId
 *
 * @typedef {object} TokenCounts Tokens, number of runs, and costs, where a price is set.
 * @property {number} runs
 * @property {number} estimated Runs whose engine did not report all tokens.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 * @property {Record<string, number>} cost By currency, of runs whose engine has a price.
 *
 * @typedef {object} ToolUse One tool call; long arguments and replies are cut.
 * @property {string} name
 * @property {boolean} ok
 * @property {string} arguments
 * @property {string} reply
 *
 * @typedef {object} Trace
 * @property {Task[]} tasks
 * @property {Trigger[]} triggers
 * @property {ChainStep[]} chain
 *
 * @typedef {object} Trial The result of a trial; `message` and `field` where it failed.
 * @property {boolean} ok
 * @property {string[]} models
 * @property {string | null} api `responses` or `chat`, once a turn was tried.
 * @property {string} text What the model said.
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
 * @typedef {object} TriggerDetail One trigger, why it waits and what it did; null when it was removed.
 * @property {Trigger | null} trigger
 * @property {Explanation} explanation
 * @property {ChainStep[]} chain
 * @property {TokenCounts} usage Of its runs, today.
 *
 * @typedef {object} TriggerList
 * @property {Trigger[]} triggers
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
 * @typedef {object} Trigger One trigger now; of a broken one, what is known. Units: seconds.
 * @property {string} id
 * @property {string} title
 * @property {string} prompt
 * @property {string} profile
 * @property {number} priority
 * @property {"recurring" | "scheduled" | "conditional" | "broken"} type
 * @property {{en: string, zh: string}} words When it runs.
 * @property {boolean} enabled
 * @property {string | ""} createdAt
 * @property {Schedule | null} schedule
 * @property {FileChanged | FileExists | TaskDone | TaskFailed | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null} condition
 * @property {number} cooldown The one in force.
 * @property {boolean} once
 * @property {"skip" | "queue"} overlap
 * @property {"teller" | "message" | "change" | "failure" | "none"} notify Who is told of its runs: as chosen, else the usual for its kind.
 * @property {boolean} notifyGiven Whether that was chosen.
 * @property {{en: string, zh: string}} told The same in words.
 * @property {number | null} timeout
 * @property {number} maxAttempts
 * @property {string} origin
 * @property {string} traceId
 * @property {string | null} lastRunAt
 * @property {string | null} nextRunAt
 * @property {number} fireCount
 * @property {string | null} lastTaskId
 * @property {string | null} lastVerdict
 * @property {number} failureStreak Runs in a row that failed in the same way.
 * @property {"breaker" | null} pausedBy What paused it, where that was not its user.
 * @property {string | null} blockedBy The task or trigger because of which it can never fire.
 * @property {string | null} broken Why its file cannot be read.
 * @property {{en: string, zh: string}} headline Why it waits, or what comes next.
 * @property {{en: string, zh: string} | null} last How its last run went.
 *
 * @typedef {object} TurnChange The Teller's run began or ended.
 * @property {"turn"} kind
 * @property {"started" | "ended"} state
 * @property {string} turnId
 * @property {string} headline
 * @property {string[]} inputs Ids of the messages it answers.
 *
 * @typedef {object} TurnHit A passage that a turn was given; records of an earlier format have its source alone.
 * @property {string} source
 * @property {string | null} text
 * @property {number | null} line
 * @property {string | null} day
 * @property {string | null} kind
 *
 * @typedef {object} TurnHitList
 * @property {TurnHit[]} hits
 *
 * @typedef {object} TurnPrompt The whole prompt of a run, and the tools it called.
 * @property {string} id
 * @property {"teller" | "planner" | "worker"} role
 * @property {string} engine
 * @property {string | null} model
 * @property {number} attempt
 * @property {"done" | "failed" | "canceled"} status
 * @property {string} at When it ended.
 * @property {string} instructions
 * @property {string} prompt
 * @property {string[]} tools The tools it was offered.
 * @property {ToolUse[]} calls
 * @property {TurnHit[]} hits
 * @property {number | null} requests Number of model requests, where the engine counts them.
 * @property {Usage} usage
 *
 * @typedef {object} Usage
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 *
 * @typedef {object} UsageReport
 * @property {"day" | "engine" | "model" | "role" | "task" | "trigger" | "message"} by
 * @property {string} since The first day of it.
 * @property {TokenCounts} today
 * @property {TokenCounts} total
 * @property {UsageRow[]} rows All days in their order; else those that used most first.
 * @property {Budget} budget
 *
 * @typedef {object} UsageRow
 * @property {number} runs
 * @property {number} estimated Runs whose engine did not report all tokens.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 * @property {Record<string, number>} cost By currency, of runs whose engine has a price.
 * @property {string} key The day, engine, model, role or id; empty: no trigger, or no model named.
 * @property {string} title Of a task, trigger or message.
 *
 * @typedef {object} UsageToday Usage of today, by the user's calendar.
 * @property {number} runs
 * @property {number} estimated Runs whose engine did not report all tokens.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 * @property {Record<string, number>} cost By currency, of runs whose engine has a price.
 * @property {Budget} budget
 *
 * @typedef {object} WorkersStatus
 * @property {number} busy
 * @property {number} seats
 *
 * @typedef {ChangeList["events"][number]} Change
 */

export {};
