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
 * @typedef {object} Trigger
 * @property {string} id
 * @property {string} title
 * @property {string} prompt
 * @property {string} profile
 * @property {string} type
 * @property {{en: string, zh: string}} words
 * @property {boolean} enabled
 * @property {string} createdAt
 * @property {string | null} lastRunAt
 * @property {string | null} nextRunAt
 * @property {number} fireCount
 * @property {string | null} lastTaskId
 * @property {string | null} lastVerdict
 * @property {string | null} [broken] why its file cannot be read
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
 *   | {view: "task", id: string}} Route
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
 * @property {Record<string, string>} pending what was asked of a task or trigger and is under way
 * @property {string} confirming the trigger whose deletion is to be confirmed
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
