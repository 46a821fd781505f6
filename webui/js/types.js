/**
 * The shapes the page speaks in: the server's JSON, and the page's own state. Types only.
 *
 * @typedef {object} Message
 * @property {string} id
 * @property {"user" | "agent" | "system"} role
 * @property {string} text
 * @property {string | null} [html] rendered and sanitised by the server; null for user messages
 * @property {string} createdAt
 * @property {string | null} [turnId]
 * @property {string[]} [inReplyTo]
 * @property {string[]} [taskIds]
 * @property {{inputTokens: number, cachedInputTokens?: number, outputTokens: number} | null} [usage]
 * @property {number | null} [durationMs]
 * @property {string | null} [engine]
 * @property {number} [memory] how many hits of memory its turn was given
 *
 * @typedef {object} InboxItem a message that lies in the inbox and is not yet in the conversation
 * @property {string} id
 * @property {"user_input" | "answer"} kind
 * @property {string} text
 * @property {string} createdAt
 * @property {"queued" | "answering"} state
 *
 * @typedef {object} OutboxItem a message this tab has not yet handed over
 * @property {string} id
 * @property {"input" | "answer"} kind
 * @property {string} text
 * @property {string} createdAt
 * @property {string} [questionId]
 * @property {"sending" | "accepted" | "failed"} state
 * @property {string} [error]
 *
 * @typedef {object} Question
 * @property {string} questionId
 * @property {string} question
 * @property {string[]} options
 * @property {string | null} default
 * @property {string} createdAt
 * @property {string} expiresAt
 *
 * @typedef {"queued" | "running" | "done" | "failed" | "canceled"} TaskState
 *
 * @typedef {object} Task
 * @property {string} id
 * @property {"planner" | "worker"} seat
 * @property {TaskState} state
 * @property {string} title
 * @property {string} prompt
 * @property {string} profile
 * @property {number} priority
 * @property {string} origin
 * @property {string} createdAt
 * @property {string | null} startedAt
 * @property {string | null} completedAt
 * @property {string | null} [notBefore]
 * @property {number} attempts
 * @property {number} maxAttempts
 * @property {string | null} [failureReason]
 * @property {string | null} [error]
 * @property {string} traceId
 * @property {string | null} [parentTaskId]
 * @property {string | null} [sourceTriggerId]
 * @property {string | null} [retryOf]
 * @property {string} [headline]
 * @property {number | null} [waitMs]
 * @property {number | null} [runMs]
 *
 * @typedef {{en: string, zh: string}} Words said by the server in each language
 *
 * @typedef {{interval?: number | null, cron?: string | null, timezone?: string | null,
 *   runAt?: string | null}} Schedule
 *
 * @typedef {{type: string, params: Record<string, any>}} Condition
 *
 * @typedef {object} Trigger
 * @property {string} id
 * @property {string} title
 * @property {string} prompt
 * @property {string} profile
 * @property {string} type
 * @property {Words} words when it runs
 * @property {boolean} enabled
 * @property {string} createdAt
 * @property {string | null} lastRunAt
 * @property {string | null} nextRunAt
 * @property {number} fireCount
 * @property {string | null} lastTaskId
 * @property {string | null} lastVerdict
 * @property {string | null} [blockedBy] the task or trigger because of which it can never fire
 * @property {string | null} [broken] why its file cannot be read
 * @property {Words | null} [headline] why it waits, or what comes next
 * @property {Schedule | null} [schedule]
 * @property {Condition | null} [condition]
 * @property {number} [cooldown] seconds, as it is in force
 * @property {boolean} [once]
 * @property {"skip" | "queue"} [overlap]
 *
 * @typedef {object} ConditionNode one node of a condition, as it was judged last
 * @property {string} path `$`, its children `$.0`, `$.1`
 * @property {number} depth
 * @property {string} type
 * @property {Words} words
 * @property {boolean | null} holds null: not known, or not needed
 * @property {Words | null} why
 * @property {string | null} at
 *
 * @typedef {object} Slot a time at which a trigger was due
 * @property {string} at
 * @property {string} slot
 * @property {"ran" | "skipped" | "missed"} state
 * @property {Words | null} reason
 * @property {string | null} taskId
 * @property {number | null} missed how many
 *
 * @typedef {object} Explanation
 * @property {string} state
 * @property {Words} headline
 * @property {Words[]} lines
 * @property {ConditionNode[]} nodes
 * @property {Slot[]} slots newest first
 *
 * @typedef {object} GraphNode
 * @property {string} id
 * @property {"task" | "trigger"} kind
 * @property {string} title
 * @property {string} state
 * @property {number} layer
 * @property {"planner" | "worker"} [seat] of a task that is known here
 *
 * @typedef {{from: string, to: string, words?: Words | null}} GraphEdge
 * @typedef {{nodes: GraphNode[], edges: GraphEdge[]}} Graph what follows from what
 *
 * @typedef {object} TriggerDetail what GET /api/triggers/{id} says
 * @property {string} id
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {Trigger | null} trigger null: gone, but its past is remembered
 * @property {Explanation | null} explanation
 * @property {Graph} graph
 *
 * @typedef {"file_changed" | "file_exists" | "task" | "llm_eval" | "kept"} RowType
 *
 * @typedef {object} ConditionRow one condition as a form holds it; fields of other types wait
 * @property {string} key
 * @property {RowType} type
 * @property {string} path
 * @property {boolean} fireOnInit
 * @property {"done" | "failed"} outcome
 * @property {string} taskId
 * @property {boolean} byId the id is typed, not chosen
 * @property {string} question
 * @property {Condition | null} kept made elsewhere: shown in words, kept as it is
 * @property {Words | null} words of what is kept
 *
 * @typedef {"plain" | "every" | "cron" | "at" | Exclude<RowType, "kept"> | "several" | "kept"} When
 * @typedef {"second" | "minute" | "hour" | "day"} Unit
 *
 * @typedef {object} TriggerForm a trigger as it is typed
 * @property {string} key `new`, or the id of the trigger that is edited
 * @property {string} id of the trigger that is to be; made here, so that sending twice makes one
 * @property {Trigger | null} base what is edited
 * @property {string} prompt
 * @property {string} title
 * @property {string} profile
 * @property {When} when
 * @property {string} plain
 * @property {string} every
 * @property {Unit} everyUnit
 * @property {string} cron
 * @property {string} timezone
 * @property {string} at local, `2026-12-01T09:00`
 * @property {ConditionRow} single
 * @property {"and" | "or"} join
 * @property {ConditionRow[]} rows
 * @property {string} cooldown empty: the condition's own
 * @property {Unit} cooldownUnit
 * @property {boolean} once
 * @property {"skip" | "queue"} overlap
 * @property {Record<string, string>} errors by field
 * @property {Preview} preview
 * @property {boolean} busy
 * @property {boolean} over sent or given up: it goes when its page is left
 *
 * @typedef {object} Preview what the server makes of the form's times and conditions
 * @property {string} asked the request, as text; empty: there is nothing to ask yet
 * @property {"idle" | "asking" | "ready" | "failed"} state
 * @property {PreviewAnswer | null} answer the last one, shown until the next comes
 * @property {{field: string, text: string} | null} error
 *
 * @typedef {object} PreviewAnswer
 * @property {string} type
 * @property {number | null} cooldown
 * @property {Words} words
 * @property {string[]} next
 * @property {Words[]} notes
 *
 * @typedef {object} MemoryFile one in the list of memory
 * @property {string} path
 * @property {"longTerm" | "raw" | "day" | "month" | "docs"} kind
 * @property {string} title
 * @property {string | null} day
 * @property {number} size bytes
 * @property {string | null} modifiedAt
 * @property {boolean} editable
 * @property {boolean} [hidden] a day's summary behind its month's
 *
 * @typedef {object} Content
 * @property {string} text
 * @property {string} html rendered and sanitised by the server
 * @property {string} hash guards an edit
 * @property {boolean} [cut] it is longer than what is here
 *
 * @typedef {MemoryFile & Content} NoteFile what GET /api/memory/{path} says
 *
 * @typedef {"memory" | "summary" | "docs" | "transcript" | "result"} HitKind
 *
 * @typedef {object} Hit what a search found
 * @property {string} source
 * @property {HitKind} kind
 * @property {string} snippet
 * @property {[number, number][]} marks of the snippet's characters
 * @property {number} score
 * @property {string | null} day
 * @property {number} line 0: not in a text file
 * @property {string | null} messageId
 * @property {"user" | "agent" | "system" | null} role
 * @property {string | null} taskId
 *
 * @typedef {object} Search
 * @property {string} asked empty: nothing is looked for
 * @property {"idle" | "asking" | "ready" | "failed"} state
 * @property {Hit[]} hits the last ones, shown until the next come
 * @property {string | null} fallback why a plain scan served
 * @property {string} error
 *
 * @typedef {object} Memory
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {MemoryFile[]} files
 * @property {{files: number, passages: number, fresh?: boolean, words?: string,
 *   fallback?: string | null} | null} index
 * @property {string} query as it is typed
 * @property {Search} search
 * @property {string[]} whole the groups of which all files are shown
 *
 * @typedef {object} Note the opened file
 * @property {string} path
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {NoteFile | null} file as it was last heard of
 *
 * @typedef {object} NoteForm a file of memory as it is typed
 * @property {string} key `new`, or its path
 * @property {string} title of a new one
 * @property {string} text
 * @property {{hash: string, text: string | null} | null} base what is edited; its text may be
 *   known no more; null: there is no such file yet
 * @property {string} error
 * @property {{current: NoteFile | null, shown: boolean} | null} conflict another version was saved
 *   meanwhile; null in it: the file is gone
 * @property {boolean} restored what stands here was typed before the page was loaded
 * @property {boolean} unkept the browser does not keep what is typed
 * @property {boolean} busy
 * @property {boolean} over sent or given up: it goes when its page is left
 *
 * @typedef {object} Backlog
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {{text: string, done: boolean}[]} items
 * @property {string} draft
 * @property {string} busy what is being changed
 * @property {string} error
 *
 * @typedef {object} TurnHits what memory a reply was given
 * @property {boolean} open
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {{source: string, text?: string | null, line?: number | null, day?: string | null,
 *   kind?: HitKind | null}[]} hits
 *
 * @typedef {object} Status
 * @property {"ok" | "down" | "hung"} consumer
 * @property {number | null} [beatAgeS]
 * @property {{state: "idle" | "replying", since: string | null, headline?: string,
 *   turnId?: string | null}} teller
 * @property {{state: "idle" | "planning", since: string | null}} planner
 * @property {{busy: number, seats: number}} workers
 * @property {Record<string, number>} queues
 * @property {Record<string, string>} engines role or profile → who serves it and, if not, why
 * @property {boolean} paused
 * @property {string | null} [degraded]
 * @property {number} [quarantined]
 * @property {string} version
 *
 * @typedef {object} RunEvent
 * @property {string} at
 * @property {string} type
 * @property {string} text
 * @property {"stdout" | "stderr" | null} [stream]
 * @property {{stream?: "stdout" | "stderr"}} [data]
 *
 * @typedef {object} LedgerEvent
 * @property {string} at
 * @property {string} type
 * @property {string} [status] how it ended
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
 * @property {Task[]} tasks
 * @property {Trigger[]} triggers
 * @property {Status} status
 *
 * @typedef {{kind: "message", message: Message}
 *   | {kind: "inbox", id: string, item: InboxItem | null}
 *   | {kind: "task", task: Task}
 *   | {kind: "trigger", id: string, trigger: Trigger | null}
 *   | {kind: "question", question: Question | null}
 *   | {kind: "status", status: Status}
 *   | {kind: "turn", state: "started" | "ended", turnId: string, headline?: string,
 *      inputs?: string[]}
 *   | {kind: "delta", turnId: string, text: string}} Change
 *
 * @typedef {object} Turn the Teller's run that is going on
 * @property {string} turnId
 * @property {number} since milliseconds, the server's clock
 * @property {string} headline
 * @property {string[]} inputs
 * @property {string} draft the reply as far as it has come
 * @property {number | null} endedAt set when it is over
 * @property {boolean} partial we came in the middle: the draft lacks its beginning
 * @property {boolean} committed its message has come: the draft is no longer shown
 *
 * @typedef {object} TaskDetail what GET /api/tasks/{id} says beyond the task itself
 * @property {string} id
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {Task | null} task
 * @property {{text: string, html?: string | null, exitCode?: number | null,
 *   resultType?: string} | null} result
 * @property {LedgerEvent[]} events
 * @property {Task[]} trace
 * @property {Graph} graph
 * @property {Output} output
 *
 * @typedef {object} Output
 * @property {OutputBlock[]} blocks
 * @property {number} dropped characters that are no longer shown
 * @property {string | null} offset
 * @property {boolean} ended
 * @property {"idle" | "loading" | "failed"} load
 *
 * @typedef {object} OutputBlock
 * @property {string} type
 * @property {string | null} stream
 * @property {string} text
 *
 * @typedef {"connecting" | "online" | "reconnecting" | "polling" | "offline"} Connection
 *
 * @typedef {{view: "chat"} | {view: "tasks"} | {view: "triggers"}
 *   | {view: "task", id: string} | {view: "trigger", id: string}
 *   | {view: "triggerNew"} | {view: "triggerEdit", id: string}
 *   | {view: "memory"} | {view: "backlog"} | {view: "noteNew"}
 *   | {view: "note", path: string, line: number | null} | {view: "noteEdit", path: string}} Route
 *
 * @typedef {object} Notice
 * @property {number} id
 * @property {"info" | "error"} tone
 * @property {string} text
 *
 * @typedef {object} State
 * @property {"checking" | "out" | "in"} session
 * @property {{busy: boolean, error: string}} login
 * @property {"loading" | "ready" | "failed"} load
 * @property {string} loadError
 * @property {Connection} connection
 * @property {number} skewMs the server's clock minus ours
 * @property {number} now the server's clock, milliseconds; moved by ticks
 * @property {string} version
 * @property {string} zone the workspace's time zone; empty: not known yet
 * @property {boolean} outdated the server runs another version than the page was made by
 * @property {Message[]} messages
 * @property {string | null} before
 * @property {"idle" | "loading" | "failed"} older
 * @property {InboxItem[]} inbox
 * @property {OutboxItem[]} outbox
 * @property {Question | null} question
 * @property {{busy: boolean, error: string}} answering
 * @property {Record<string, Task>} tasks
 * @property {Record<string, Trigger>} triggers
 * @property {Status | null} status
 * @property {Turn | null} turn
 * @property {TaskDetail | null} detail
 * @property {TriggerDetail | null} triggerDetail
 * @property {Record<string, TriggerForm>} forms what is being typed, by `new` or the trigger's id
 * @property {Memory} memory
 * @property {Note | null} note
 * @property {Record<string, NoteForm>} notes files that are edited, by `new` or their path
 * @property {Backlog} backlog
 * @property {Record<string, TurnHits>} hits by the id of the turn
 * @property {boolean} chainListed a chain is shown as a list instead of a picture
 * @property {Record<string, string>} pending what was asked of a task or trigger and is under way
 * @property {string} confirming what is to be confirmed: a trigger's deletion by its id, `note`,
 *   or `backlog` and an item
 * @property {Route} route
 * @property {boolean} panelOpen the side panel, where there is room for one
 * @property {boolean} wide whether there is
 * @property {boolean} following
 * @property {number} unseen messages that came while the reader was further up
 * @property {string} draft
 * @property {Notice[]} notices
 * @property {"en" | "zh"} language
 * @property {"system" | "light" | "dark"} theme
 */

export {};
