/**
 * The shapes of the page's own state; those of the server's JSON are in types.js. Types only.
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
 * @typedef {"queued" | "running" | "asking" | "done" | "failed" | "canceled"} TaskState
 *
 * @typedef {{en: string, zh: string}} Words said by the server in each language
 *
 * @typedef {{type: string, params: Record<string, any>}} Condition
 *
 * @typedef {object} TriggerDetail what GET /api/triggers/{id} says
 * @property {string} id
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {import("./types.js").Trigger | null} trigger null: gone, but its past is remembered
 * @property {import("./types.js").Explanation | null} explanation
 * @property {import("./types.js").ChainStep[]} chain
 * @property {import("./types.js").TokenCounts | null} usage of its runs of today
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
 * @property {import("./types.js").Trigger | null} base what is edited
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
 * @property {string} notify who is notified; empty: the default
 * @property {Record<string, string>} errors by field
 * @property {Preview} preview
 * @property {boolean} busy
 * @property {boolean} over sent or given up: it goes when its page is left
 *
 * @typedef {object} Preview what the server makes of the form's times and conditions
 * @property {string} asked the request, as text; empty: there is nothing to ask yet
 * @property {"idle" | "asking" | "ready" | "failed"} state
 * @property {import("./types.js").TriggerPreview | null} answer the last one, shown until the next comes
 * @property {{field: string, text: string} | null} error
 *
 * @typedef {"memory" | "summary" | "docs" | "transcript" | "result"} HitKind
 *
 * @typedef {object} Search
 * @property {string} asked empty: nothing is looked for
 * @property {"idle" | "asking" | "ready" | "failed"} state
 * @property {import("./types.js").SearchHit[]} hits the last ones, shown until the next come
 * @property {string | null} fallback why a plain scan served
 * @property {string} error
 *
 * @typedef {object} Memory
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {import("./types.js").MemoryFile[]} files
 * @property {{files: number, passages: number, fresh?: boolean, words?: string,
 *   fallback?: string | null} | null} index
 * @property {string} query as it is typed
 * @property {Search} search
 * @property {string[]} whole the groups of which all files are shown
 *
 * @typedef {object} Note the opened file
 * @property {string} path
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {import("./types.js").Note | null} file as it was last heard of
 *
 * @typedef {object} NoteForm a file of memory as it is typed
 * @property {string} key `new`, or its path
 * @property {string} title of a new one
 * @property {string} text
 * @property {{hash: string, text: string | null} | null} base what is edited; its text may be
 *   known no more; null: there is no such file yet
 * @property {string} error
 * @property {{current: import("./types.js").Note | null, shown: boolean} | null} conflict another version was saved
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
 * @typedef {object} EngineForm an endpoint as it is typed; its key goes when the form does
 * @property {import("./types.js").Engine | null} base what is changed; null: a new one
 * @property {string} name
 * @property {string} baseUrl
 * @property {string} model
 * @property {"none" | "kept" | "key" | "variable"} keyIs
 * @property {string} key
 * @property {string} keyEnv
 * @property {Record<string, string>} errors by field; `form`: of none
 * @property {"" | "trial" | "save"} busy
 * @property {import("./types.js").Trial | null} trial what came of the last one
 *
 * @typedef {object} EnginesPage
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {string} error
 * @property {import("./types.js").EngineList | null} list
 * @property {EngineForm | null} form
 * @property {string} removing the endpoint whose removal is to be confirmed
 * @property {string} seat the one whose order is shown
 * @property {string} busy what is being changed
 *
 * @typedef {object} TurnHits what memory a reply was given
 * @property {boolean} open
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {{source: string, text?: string | null, line?: number | null, day?: string | null,
 *   kind?: HitKind | null}[]} hits
 *
 * @typedef {object} Turn the Teller's run that is going on
 * @property {string} turnId
 * @property {number} since milliseconds, the server's clock
 * @property {string} headline
 * @property {string[]} inputs
 * @property {string} draft the reply as far as it has come
 * @property {number | null} endedAt set when it is over
 * @property {number} end the offset of the delta that comes next
 * @property {"" | "found" | "filled"} gap a part of the draft is missing; it was asked for
 * @property {boolean} committed its message has come: the draft is no longer shown
 *
 * @typedef {object} TaskDetail what GET /api/tasks/{id} says beyond the task itself
 * @property {string} id
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {import("./types.js").Task | null} task
 * @property {{text: string, html?: string | null, exitCode?: number | null,
 *   resultType?: string, hasDiff?: boolean} | null} result
 * @property {import("./types.js").LedgerEvent[]} events
 * @property {import("./types.js").Task[]} trace
 * @property {import("./types.js").ChainStep[]} chain
 * @property {import("./types.js").TokenCounts | null} usage of all its attempts
 * @property {import("./types.js").Diff | null} diff what it changed
 * @property {"idle" | "failed"} diffLoad
 * @property {Record<string, boolean>} unfolded files of the diff and their parts: open, or closed
 * @property {Output} output
 *
 * @typedef {object} UsagePage what was used, by each of these
 * @property {"loading" | "ready" | "failed"} load
 * @property {import("./types.js").UsageReport} [day]
 * @property {import("./types.js").UsageReport} [engine]
 * @property {import("./types.js").UsageReport} [role]
 * @property {import("./types.js").UsageReport} [trigger]
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
 *   | {view: "engines"} | {view: "usage"} | {view: "memory"} | {view: "backlog"} | {view: "noteNew"}
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
 * @property {import("./types.js").Message[]} messages
 * @property {string | null} before
 * @property {"idle" | "loading" | "failed"} older
 * @property {import("./types.js").InboxItem[]} inbox
 * @property {OutboxItem[]} outbox
 * @property {import("./types.js").Question | null} question
 * @property {{busy: boolean, error: string}} answering
 * @property {Record<string, import("./types.js").Task>} tasks
 * @property {string[]} ended ids of those that ended, the last first: as told, not by a clock
 * @property {Record<string, import("./types.js").Trigger>} triggers
 * @property {import("./types.js").Status | null} status
 * @property {Turn | null} turn
 * @property {TaskDetail | null} detail
 * @property {TriggerDetail | null} triggerDetail
 * @property {Record<string, TriggerForm>} forms what is being typed, by `new` or the trigger's id
 * @property {Memory} memory
 * @property {Note | null} note
 * @property {Record<string, NoteForm>} notes files that are edited, by `new` or their path
 * @property {Backlog} backlog
 * @property {EnginesPage} engines
 * @property {UsagePage} usage
 * @property {Record<string, TurnHits>} hits by the id of the turn
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
