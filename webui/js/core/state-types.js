/**
 * The shapes of the page's own state; those of the server's JSON are in types.js. Neither imports
 * or exports anything, so that every script sees their types without an import.
 *
 * @typedef {Actions} Actions
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./api.js").Api} Api
 * @typedef {DraftEntry} DraftEntry
 * @typedef {Entry} Entry
 * @typedef {Live} Live
 * @typedef {MessageEntry} MessageEntry
 *
 * @typedef {{id: string, kind: "input" | "answer", text: string, createdAt: string,
 *   questionId?: string, state: "sending" | "accepted" | "failed", error?: string}}
 *   OutboxItem a message this tab has not yet handed over
 *
 * @typedef {"queued" | "running" | "asking" | "done" | "failed" | "canceled"} TaskState
 *
 * @typedef {Record<string, string>} Words said by the server in each language
 *
 * @typedef {{type: string, params: Record<string, any>}} Condition
 *
 * @typedef {object} TriggerPage what GET /api/triggers/{id} says
 * @property {string} id
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {Trigger | null} trigger null: gone, but its past is remembered
 * @property {Explanation | null} explanation
 * @property {ChainStep[]} chain
 * @property {TokenCounts | null} usage of its runs of today
 *
 * @typedef {"file_changed" | "file_exists" | "task_done" | "task_failed" | "llm_eval" | "kept"} RowType
 *
 * @typedef {object} ConditionRow one condition as a form holds it; fields of other types wait
 * @property {string} key
 * @property {RowType} type
 * @property {string} path
 * @property {boolean} fireOnInit
 * @property {string} taskId or that it is typed below
 * @property {string} typedId
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
 * @property {"and" | "or"} join
 * @property {ConditionRow[]} rows only the first counts, unless there are to be several
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
 * @property {TriggerPreview | null} answer the last one, shown until the next comes
 * @property {{field: string, text: string} | null} error
 *
 * @typedef {"memory" | "summary" | "docs" | "transcript" | "result"} HitKind
 *
 * @typedef {object} MemorySearch
 * @property {string} asked empty: nothing is looked for
 * @property {"idle" | "asking" | "ready" | "failed"} state
 * @property {SearchHit[]} hits the last ones, shown until the next come
 * @property {string | null} fallback why a plain scan served
 * @property {string} error
 *
 * @typedef {object} MemoryPage
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {MemoryFile[]} files
 * @property {{files: number, passages: number, fresh?: boolean, words?: string,
 *   fallback?: string | null} | null} index
 * @property {string} query as it is typed
 * @property {MemorySearch} search
 * @property {string[]} whole the groups of which all files are shown
 *
 * @typedef {object} NotePage the opened file
 * @property {string} path
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {Note | null} file as it was last heard of
 *
 * @typedef {object} NoteForm a file of memory as it is typed
 * @property {string} key `new`, or its path
 * @property {string} title of a new one
 * @property {string} text
 * @property {{hash: string, text: string | null} | null} base what is edited; its text may be
 *   known no more; null: there is no such file yet
 * @property {string} error
 * @property {{current: Note | null, shown: boolean} | null} conflict another version was saved
 *   meanwhile; null in it: the file is gone
 * @property {boolean} restored what stands here was typed before the page was loaded
 * @property {boolean} unkept the browser does not keep what is typed
 * @property {boolean} busy
 * @property {boolean} over sent or given up: it goes when its page is left
 *
 * @typedef {object} BacklogPage
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {{text: string, done: boolean}[]} items
 * @property {string} draft
 * @property {string} busy what is being changed
 * @property {string} error
 *
 * @typedef {object} EngineForm an endpoint as it is typed; its key goes when the form does
 * @property {Engine | null} base what is changed; null: a new one
 * @property {string} name
 * @property {string} baseUrl
 * @property {string} model
 * @property {"none" | "kept" | "key" | "variable"} keyIs
 * @property {string} key
 * @property {string} keyEnv
 * @property {Record<string, string>} errors by field; `form`: of none
 * @property {"" | "trial" | "save"} busy
 * @property {Trial | null} trial what came of the last one
 *
 * @typedef {object} EnginesPage
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {string} error
 * @property {EngineList | null} list
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
 * @typedef {object} TaskPage what GET /api/tasks/{id} says beyond the task itself
 * @property {string} id
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {Task | null} task
 * @property {{text: string, html?: string | null, exitCode?: number | null,
 *   resultType?: string, hasDiff?: boolean} | null} result
 * @property {LedgerEvent[]} events
 * @property {Task[]} trace
 * @property {ChainStep[]} chain
 * @property {TokenCounts | null} usage of all its attempts
 * @property {Diff | null} diff what it changed
 * @property {"idle" | "failed"} diffLoad
 * @property {Record<string, boolean>} unfolded files of the diff and their parts: open, or closed
 * @property {TaskOutput} output
 *
 * @typedef {{load: "loading" | "ready" | "failed", day?: UsageReport, engine?: UsageReport,
 *   role?: UsageReport, trigger?: UsageReport}} UsagePage what was used, by each of these
 *
 * @typedef {object} TaskOutput
 * @property {OutputBlock[]} blocks
 * @property {number} dropped characters that are no longer shown
 * @property {string | null} offset
 * @property {boolean} ended
 * @property {"idle" | "loading" | "failed"} load
 * @property {boolean} whole nothing is to be left out
 *
 * @typedef {{load: "idle" | "loading" | "ready" | "failed", q: string, chip: string, ids: string[],
 *   before: string | null}} JobList its filter, and the ended jobs that are loaded
 *
 * @typedef {{type: string, stream: string | null, text: string}} OutputBlock
 *
 * @typedef {"connecting" | "online" | "reconnecting" | "polling" | "offline"} Connection
 *
 * @typedef {{view: "chat"} | {view: "home"} | {view: "tasks"} | {view: "triggers"}
 *   | {view: "task", id: string} | {view: "trigger", id: string}
 *   | {view: "triggerNew"} | {view: "triggerEdit", id: string}
 *   | {view: "engines"} | {view: "usage"} | {view: "memory"} | {view: "backlog"} | {view: "noteNew"}
 *   | {view: "note", path: string, line: number | null} | {view: "noteEdit", path: string}} Route
 *
 * @typedef {{id: number, tone: "info" | "error", text: string}} Notice
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
 * @property {Record<string, Task>} tasks those that changed since the page was loaded
 * @property {Record<string, Job>} jobs
 * @property {Record<string, number>} totals of all jobs, by state
 * @property {JobList} list
 * @property {Record<string, {open: boolean, jobs: Job[], before: string | null}>} runs of triggers
 *   whose line was opened
 * @property {Record<string, Trigger>} triggers
 * @property {Status | null} status
 * @property {Turn | null} turn
 * @property {TaskPage | null} detail
 * @property {TriggerPage | null} triggerDetail
 * @property {Record<string, TriggerForm>} forms what is being typed, by `new` or the trigger's id
 * @property {MemoryPage} memory
 * @property {NotePage | null} note
 * @property {Record<string, NoteForm>} notes files that are edited, by `new` or their path
 * @property {BacklogPage} backlog
 * @property {EnginesPage} engines
 * @property {UsagePage} usage
 * @property {{load: "loading" | "ready" | "failed", data?: Home}} home
 * @property {Record<string, TurnHits>} hits by the id of the turn
 * @property {Record<string, string>} pending what was asked of a task or trigger and is under way
 * @property {string} confirming what is to be confirmed: a trigger's deletion by its id, `note`,
 *   or `backlog` and an item
 * @property {Route} route
 * @property {boolean} panelOpen the side panel, where there is room for one
 * @property {boolean} wide whether there is
 * @property {{query: string, at: number} | null} palette the open command palette
 * @property {boolean} notifying the browser may show what is urgent while the page is hidden
 * @property {boolean} following
 * @property {number} unseen messages that came while the reader was further up
 * @property {string} draft
 * @property {Notice[]} notices
 * @property {"en" | "zh"} language
 * @property {"system" | "light" | "dark"} theme
 */
