/**
 * The shapes of the page's own state; those of the server's JSON are in types.js. Types only.
 *
 * @typedef {object} OutboxItem a message this tab has not yet handed over
 * @property {string} id
 * @property {"input" | "answer" | "retry"} kind
 * @property {string} text
 * @property {string} createdAt
 * @property {string} [questionId]
 * @property {string} [quote]
 * @property {string} [edits] the earlier message that this one says anew
 * @property {string | null} [retryOf] the message that is to be answered again
 * @property {import("./types.js").SentFile[]} [files]
 * @property {"sending" | "accepted" | "failed"} state
 * @property {string} [error]
 *
 * @typedef {object} Attachment a file that is to go with what is being written
 * @property {string} key
 * @property {string} name
 * @property {number} size bytes
 * @property {string} mediaType as the browser has it, then as the server found it
 * @property {"waiting" | "sending" | "ready" | "failed" | "lost"} state lost: the page was loaded anew before it was sent
 * @property {number} part how much of it is on the server, up to 1
 * @property {import("./types.js").SentFile | null} sent
 * @property {string} error
 * @property {string} preview where the page has the picture; empty: it is none
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
 * @property {import("./types.js").Graph} graph
 * @property {import("./types.js").TokenCounts | null} usage of its runs of today
 *
 * @typedef {"file_changed" | "file_exists" | "task" | "webhook" | "llm_eval" | "kept"} RowType
 *
 * @typedef {object} ConditionRow one condition as a form holds it; fields of other types wait
 * @property {string} key
 * @property {RowType} type
 * @property {string} path
 * @property {boolean} fireOnInit
 * @property {"done" | "failed"} outcome
 * @property {string} taskId
 * @property {boolean} byId the id is typed, not chosen
 * @property {string} hook a webhook's name
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
 * @property {string} notify who is told; empty: what is usual
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
 * @typedef {"all" | "messages" | "memory" | "work"} SearchKind
 *
 * @typedef {object} Search
 * @property {string} query as it is typed
 * @property {SearchKind} kind
 * @property {string} asked the kind and what is looked for; empty: nothing
 * @property {"idle" | "asking" | "ready" | "failed"} state
 * @property {import("./types.js").SearchHit[]} hits the last ones, shown until the next come
 * @property {import("./types.js").SearchCounts} counts
 * @property {string | null} fallback why a plain scan served
 * @property {string} error
 *
 * @typedef {object} Memory
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {import("./types.js").MemoryFile[]} files
 * @property {{files: number, passages: number, fresh?: boolean, words?: string,
 *   fallback?: string | null} | null} index
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
 * @property {import("./types.js").BacklogItem[]} items
 * @property {string} draft
 * @property {string} due when the new one is due, as it is typed
 * @property {string} dating the item whose date is being typed; "": none's
 * @property {string} date
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
 * @typedef {object} ChannelForm a channel as it is typed; its address goes when the form does
 * @property {import("./types.js").Channel | null} base what is changed; null: a new one
 * @property {string} name
 * @property {string} url
 * @property {import("./types.js").Channel["events"]} events
 * @property {Record<string, string>} errors by field; `form`: of none
 * @property {boolean} busy
 *
 * @typedef {object} ChannelsPage
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {string} error
 * @property {import("./types.js").ChannelList | null} list
 * @property {ChannelForm | null} form
 * @property {string} removing the channel whose removal is to be confirmed
 * @property {string} busy the one that is tried
 * @property {Record<string, import("./types.js").ChannelTest | null>} tests what came of each last test
 *
 * @typedef {object} Composing what the text in the field is for
 * @property {{how: "quote" | "edit", id: string, text: string, before: string, files: Attachment[]} | null}
 *   about the message that it quotes or says anew, and what was being written before, with its files
 * @property {string} answers the question that it answers; empty: none
 *
 * @typedef {object} Tools the messages whose actions are shown, by their ids; empty: none
 * @property {string} hover
 * @property {string} focus
 * @property {string} sheet
 * @property {string} copied
 *
 * @typedef {object} Reason why a reply says what it says
 * @property {string} id of its turn, or task
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {import("./types.js").TurnPrompt | null} told
 *
 * @typedef {object} Turn the Teller's run that is going on
 * @property {string} turnId
 * @property {number} since milliseconds, the server's clock
 * @property {string} headline
 * @property {string[]} inputs
 * @property {number} part which of its texts is written; 0: nothing is said yet
 * @property {import("./types.js").DraftBlock[]} blocks of that what is whole
 * @property {number} at where in it what follows them begins
 * @property {string} text what follows them
 * @property {number | null} endedAt set when it is over
 * @property {boolean} committed its message has come: what was written is no longer shown
 * @property {boolean} gap a piece of it was missed
 *
 * @typedef {object} TaskDetail what GET /api/tasks/{id} says beyond the task itself
 * @property {string} id
 * @property {"loading" | "ready" | "missing" | "failed"} load
 * @property {import("./types.js").Task | null} task
 * @property {string} prompt what was asked
 * @property {{text: string, html?: string | null, exitCode?: number | null,
 *   resultType?: string, hasDiff?: boolean} | null} result
 * @property {import("./types.js").LedgerEvent[]} events
 * @property {import("./types.js").Task[]} trace
 * @property {import("./types.js").Graph} graph
 * @property {import("./types.js").TokenCounts | null} usage of all its attempts
 * @property {import("./types.js").Diff | null} diff what it changed
 * @property {"idle" | "failed"} diffLoad
 * @property {Record<string, boolean>} unfolded files of the diff and their parts: open, or closed
 * @property {Output} output
 * @property {import("./types.js").Job | null} job the work it is a step of
 *
 * @typedef {object} UsagePage what was used, by each of these
 * @property {"loading" | "ready" | "failed"} load
 * @property {import("./types.js").UsageReport} [day]
 * @property {import("./types.js").UsageReport} [engine]
 * @property {import("./types.js").UsageReport} [role]
 * @property {import("./types.js").UsageReport} [trigger]
 *
 * @typedef {object} HomePage
 * @property {"loading" | "ready" | "failed"} load
 * @property {import("./types.js").Home | null} view
 * @property {number} at when it was asked for, the server's clock; 0: never
 *
 * @typedef {object} DayPage the last hours as bars
 * @property {"loading" | "ready" | "failed"} load
 * @property {import("./types.js").Timeline | null} view
 * @property {number} at
 * @property {string} pointed the bar whose times are told
 * @property {boolean} listed as a table
 *
 * @typedef {object} LogsPage
 * @property {"loading" | "ready" | "failed"} load
 * @property {import("./types.js").LogLine[]} lines oldest first
 * @property {string | null} before
 * @property {string | null} after
 * @property {string} type only lines of it; empty: all
 * @property {string} q
 * @property {string} id of a task, trigger or trace
 * @property {boolean} paused what comes is not shown
 * @property {number} held how much that is
 * @property {"idle" | "loading" | "failed"} older
 *
 * @typedef {object} Firings what the runs of a trigger told, opened
 * @property {"loading" | "ready" | "failed"} load
 * @property {import("./types.js").Message[]} messages the newest first
 * @property {string | null} before of those before them
 *
 * @typedef {object} Finding what is looked for in the conversation
 * @property {string} query
 * @property {string | null} at the key of the entry one is at
 * @property {boolean} busy older messages are being loaded to look there
 *
 * @typedef {object} Output
 * @property {OutputPage[]} pages what is loaded, in its order
 * @property {number} size of the record, as far as it is known; bytes
 * @property {boolean} ended
 * @property {"idle" | "loading" | "failed"} load
 * @property {number | null} busy where a place that is not loaded begins, while it is being filled
 *
 * @typedef {object} OutputPage
 * @property {number} start bytes of the record
 * @property {number} end
 * @property {OutputBlock[]} blocks
 *
 * @typedef {object} OutputBlock
 * @property {string} type
 * @property {string | null} stream
 * @property {string} text
 * @property {number} [bytes] that are not kept here
 * @property {boolean} [open] they are still being counted
 * @property {number} [attempt] which one begins here
 * @property {string} [call] what a command or tool call is known by
 * @property {string} [printed] what a command of an agent printed
 *
 * @typedef {"connecting" | "online" | "reconnecting" | "polling" | "offline"} Connection
 *
 * @typedef {{view: "chat"}
 *   | {view: "tasks"} & ListFilter | {view: "triggers"} & ListFilter
 *   | {view: "task", id: string} | {view: "trigger", id: string}
 *   | {view: "triggerNew"} | {view: "triggerEdit", id: string}
 *   | {view: "home"} | {view: "settings"} | {view: "logs", type?: string, id?: string}
 *   | {view: "engines"} | {view: "channels"} | {view: "usage"} | {view: "reason", id: string} | {view: "memory"} | {view: "backlog"}
 *   | {view: "search", q: string, kind: SearchKind} | {view: "noteNew"}
 *   | {view: "note", path: string, line: number | null} | {view: "noteEdit", path: string}} Route
 *
 * @typedef {"loading" | "failed" | ((state: State, act: import("./actions.js").Actions) => unknown)} Place
 *
 * @typedef {object} Work the list of work, narrowed
 * @property {string} asked what was asked for, as text
 * @property {"idle" | "loading" | "ready" | "failed"} load
 * @property {string | null} error
 * @property {import("./types.js").Job[]} jobs in the server's order
 * @property {string | null} before the cursor of older ones
 * @property {"idle" | "loading" | "failed"} older
 * @property {number} total of all that was asked for
 * @property {Partial<import("./types.js").JobCounts>} counts by state
 * @property {Record<string, boolean>} open jobs whose steps are shown
 * @property {Record<string, import("./types.js").Job>} whole jobs with all of their steps
 *
 * @typedef {object} ListFilter what a list is narrowed to, as its address says; not given: all
 * @property {string} [state] of work
 * @property {string} [trigger] by whose runs
 * @property {string} [show] the group of triggers
 * @property {string} [sort] the order of triggers
 * @property {string} [q] a text
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
 * @property {string | null} after the cursor of what was said after them; null: they reach to now
 * @property {"idle" | "loading" | "failed"} newer
 * @property {import("./types.js").InboxItem[]} inbox
 * @property {OutboxItem[]} outbox
 * @property {Attachment[]} files what is to go with the draft
 * @property {boolean} dropping files are held over the page
 * @property {import("./types.js").Question | null} question
 * @property {{busy: boolean, error: string}} answering
 * @property {Record<string, import("./types.js").Job>} jobs work as it is shown, by id
 * @property {Record<string, import("./types.js").Task>} tasks
 * @property {string[]} ended ids of those that ended, the last first: as told, not by a clock
 * @property {Record<string, import("./types.js").Trigger>} triggers
 * @property {import("./types.js").Status | null} status
 * @property {Turn | null} turn
 * @property {TaskDetail | null} detail
 * @property {TriggerDetail | null} triggerDetail
 * @property {Record<string, TriggerForm>} forms what is being typed, by `new` or the trigger's id
 * @property {Memory} memory
 * @property {Search} search
 * @property {Note | null} note
 * @property {Record<string, NoteForm>} notes files that are edited, by `new` or their path
 * @property {Backlog} backlog
 * @property {EnginesPage} engines
 * @property {ChannelsPage} channels
 * @property {UsagePage} usage
 * @property {Composing} composing
 * @property {Tools} tools
 * @property {Reason | null} reason
 * @property {boolean} touch fingers serve this page
 * @property {Work} work the list of it
 * @property {HomePage} home
 * @property {DayPage} day
 * @property {LogsPage} logs
 * @property {boolean} wraps long lines of output go on in the next
 * @property {Record<string, boolean>} opened what is shown in full: `steps-`, `whole-` and `fold-`
 *   with what it belongs to
 * @property {Record<string, Firings>} firings by the key of their entry
 * @property {import("./span.js").Sight} sight the part of the conversation that is drawn
 * @property {Finding | null} finding
 * @property {boolean} chainListed a chain is shown as a list instead of a picture
 * @property {Record<string, string>} pending what was asked of a task or trigger and is under way
 * @property {string} confirming what is to be confirmed: a trigger's deletion by its id, `note`,
 *   or `backlog` and an item
 * @property {Route} route
 * @property {Record<string, Place>} places the views that were fetched, by the name of their place
 * @property {boolean} panelOpen the side panel, where there is room for one
 * @property {import("./notifier.js").Standing} notify whether the browser tells while hidden
 * @property {import("./app-install.js").Installing} install
 * @property {boolean} panelFull it alone is shown
 * @property {number | null} panelWidth as its reader drew it, in CSS pixels
 * @property {boolean} wide whether there is
 * @property {boolean} following
 * @property {number} unseen messages that came while the reader was further up
 * @property {string} draft
 * @property {Notice[]} notices
 * @property {"en" | "zh"} language
 * @property {"system" | "light" | "dark"} theme
 */

export {};
