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
 * @typedef {object} Answered A question with its answer; without one it was let go.
 * @property {string} questionId
 * @property {string} question
 * @property {string[]} options
 * @property {string | null} default
 * @property {string | null} answer
 * @property {boolean} byUser Else the time was over, and the default was taken.
 *
 * @typedef {object} BacklogConflict
 * @property {ErrorDetail} error
 * @property {Backlog} current
 *
 * @typedef {object} BacklogItem
 * @property {string} text
 * @property {boolean} done
 * @property {string | null} due In the workspace's time: `2026-12-01 09:00`.
 *
 * @typedef {object} Backlog Every item, in the file's order.
 * @property {BacklogItem[]} items
 * @property {string} hash
 *
 * @typedef {object} Budget How today stands; null: no cap. Units: tokens.
 * @property {number | null} dailyTokens
 * @property {number | null} perTaskTokens
 * @property {number | null} perTriggerDailyTokens
 * @property {number} used
 * @property {number} reserved By runs under way.
 * @property {string | null} until While something waits for tokens: until when.
 * @property {number} messages
 * @property {number} tasks
 *
 * @typedef {object} ChangeList What changed since a cursor; `reset`: too much, load a new snapshot.
 * @property {string} cursor
 * @property {boolean} reset
 * @property {(MessageChange | InboxChange | InboxGone | TaskChange | JobChange | TriggerChange | QuestionChange | StatusChange | TurnChange | DeltaChange)[]} events
 *
 * @typedef {object} ChannelList The channels in the order of the settings, and when none is used.
 * @property {boolean} installed Whether the package is there that knows the services; `desktop` needs none.
 * @property {string} quiet Quiet hours, such as `22:30-08:00`; empty: none.
 * @property {("reminder" | "question" | "failed" | "breaker" | "canceled" | "done")[]} quietEvents
 * @property {Channel[]} channels
 *
 * @typedef {object} ChannelTest What came of a test; `message` says why it did not arrive.
 * @property {boolean} ok
 * @property {string} message
 *
 * @typedef {object} Channel One channel. Of its address only what service it leads to.
 * @property {string} name
 * @property {string} service `ntfy`, `mailto`, `desktop` …; empty: its address can not be read.
 * @property {("reminder" | "question" | "failed" | "breaker" | "canceled" | "done")[]} events
 * @property {number} waiting Events that wait for it.
 * @property {string | null} sentAt When something last arrived.
 * @property {string | null} failedAt
 * @property {string | null} error Why its last failure was one.
 * @property {boolean} failing Whether the last try failed.
 *
 * @typedef {object} CommandOutcome What came of a command; `code`: what was in the way.
 * @property {boolean} ok
 * @property {string} code
 * @property {Record<string, string | number>} params What belongs to its words.
 * @property {Record<string, {en: string, zh: string}>} words Of those the ones that code says of what went wrong, in each language.
 * @property {string} message
 * @property {string | null} resultId
 *
 * @typedef {object} CommandWaiting The command is kept; nothing has come of it yet.
 * @property {string} command Its id.
 *
 * @typedef {object} CreatedTrigger
 * @property {string} id
 * @property {{en: string, zh: string} | null} told Who is told of its runs.
 * @property {{en: string, zh: string}[]} notes What its maker should know: costs, and what is in its way.
 *
 * @typedef {object} Created
 * @property {string} id
 *
 * @typedef {object} Delivery A delivery that is on disk; `repeated`: it came before, and nothing more comes of it.
 * @property {string} id
 * @property {boolean} repeated
 *
 * @typedef {object} DeltaChange A piece of the reply that is being written. Units: UTF-16.
 * @property {"delta"} kind
 * @property {string} turnId
 * @property {number} part Which text of the turn it belongs to; a later one takes the place of those before.
 * @property {number} at Where in that it stands.
 * @property {string} text
 * @property {DraftBlock[]} blocks What is whole with it.
 *
 * @typedef {object} Diff What a task changed in the workspace, attempt after attempt.
 * @property {FileDiff[]} files
 * @property {number} moreFiles So many more changed, and are not listed.
 * @property {string[]} unseen Folders in which nobody looked.
 * @property {number} interrupted So many attempts were cut off: what they changed may be missing.
 *
 * @typedef {object} DraftBlock A part of the reply that is whole. Units: UTF-16.
 * @property {number} start
 * @property {number} end
 * @property {string} html
 *
 * @typedef {object} Draft What has come of the reply that is being written.
 * @property {string} turnId
 * @property {string} since
 * @property {string[]} inputs Ids of the messages it answers.
 * @property {number} part Which text of the turn this is; a later one takes its place.
 * @property {number} at Where `text` begins: after the blocks.
 * @property {string} text
 * @property {DraftBlock[]} blocks
 *
 * @typedef {object} EngineList The programs, the endpoints in the order of the settings, what this machine has.
 * @property {Engine[]} engines
 * @property {Record<string, string[]>} orders Who is to serve, the best first: `all`, and each role or profile that says so itself.
 *
 * @typedef {object} EngineStatus An engine, of itself or as it serves a role or profile, and whether it can now.
 * @property {string} engine
 * @property {"ready" | "waiting"} state
 * @property {"missing" | "logged_out" | "limited" | "unreachable" | "broken" | "unready" | null} want Of one that is waited for: what kind of trouble it is.
 * @property {string | null} reason Why it waits; of one that is ready: why a better one was passed over.
 * @property {string | null} since When what waits for it began to, where that is known.
 * @property {string | null} until When the limit it waits for is known to end.
 * @property {string | null} nextTryAt When it is tried again by itself; at once when somebody asks for it, or a message comes.
 * @property {number} messages How many messages and results wait for it, where that is told.
 * @property {number} tasks How many tasks do.
 * @property {string | null} standIn The engine that serves in its place meanwhile.
 *
 * @typedef {object} Engine One engine.
 * @property {string} name
 * @property {"program" | "local" | "endpoint" | "builtin"} kind
 * @property {string} baseUrl
 * @property {string} model
 * @property {"none" | "kept" | "variable"} key
 * @property {string} keyEnv The variable that holds the key.
 * @property {"ready" | "waiting" | "unknown"} state Unknown while no consumer runs, and of what was never used.
 * @property {"missing" | "logged_out" | "limited" | "unreachable" | "broken" | "unready" | null} want
 * @property {string | null} reason
 * @property {{en: string, zh: string} | null} why The reason in each language, where code has said it.
 * @property {string | null} until
 * @property {number} tasks So many wait for it.
 * @property {string[]} serves The roles and profiles that it serves now.
 *
 * @typedef {object} ErrorDetail What went wrong: for a program, which has words of its own for it, and in English.
 * @property {string} code
 * @property {string | null} field Of the input that can not be used.
 * @property {Record<string, string | number>} params What the words of `code` speak of.
 * @property {string} message
 *
 * @typedef {object} ErrorView What went wrong and what to do.
 * @property {ErrorDetail} error
 *
 * @typedef {object} Explanation What a trigger does now and why, what it did before.
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
 * @typedef {object} FileDiff What became of one file. Units: bytes; null where there was, or is, no such file.
 * @property {string} path
 * @property {"added" | "modified" | "deleted" | "renamed"} action
 * @property {string | null} fromPath Of one that was renamed.
 * @property {number} added
 * @property {number} removed Lines; also of those that are not shown.
 * @property {number | null} oldSize
 * @property {number | null} newSize
 * @property {string | null} oldMode
 * @property {string | null} newMode Permissions where these changed.
 * @property {"binary" | "big" | "unknown" | null} unshown Why there is nothing of its content.
 * @property {number} cutLines So many lines are left out.
 * @property {boolean} shared Other work ran meanwhile, and may have done some of it.
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
 * @typedef {object} FiringPage What runs of a trigger told, each by itself, oldest first.
 * @property {Message[]} messages
 * @property {string | null} before When the one before these was told; null at the first.
 *
 * @typedef {object} GraphEdge
 * @property {string} from
 * @property {string} to
 * @property {{en: string, zh: string}} words
 *
 * @typedef {object} GraphNode
 * @property {string} id
 * @property {"task" | "trigger"} kind
 * @property {string} title
 * @property {string} state
 * @property {number} layer The longest way to it from a root.
 *
 * @typedef {object} Graph What follows from what.
 * @property {GraphNode[]} nodes
 * @property {GraphEdge[]} edges
 *
 * @typedef {object} Health How the whole is doing.
 * @property {"ok" | "hung" | "down"} consumer
 * @property {number | null} beatAgeS
 * @property {string | null} startedAt
 * @property {number} busy Places for work in which something runs.
 * @property {number} seats All of them.
 * @property {number} waiting Tasks in the queues.
 * @property {boolean} paused
 * @property {LogLine | null} lastError
 * @property {number | null} freeBytes Of the disk; null where that is not told.
 *
 * @typedef {object} Healthz Whether web and consumer work.
 * @property {boolean} ok
 * @property {"ok" | "hung" | "down"} consumer
 *
 * @typedef {object} Home In the order in which it is shown.
 * @property {string} now
 * @property {Need[]} needs
 * @property {Job[]} running
 * @property {NextFiring[]} next
 * @property {number} moreNext Further triggers that have a time to come.
 * @property {UsageToday} usage
 * @property {SelfAwake} selfAwake With the last few of what it did.
 * @property {Health} health
 *
 * @typedef {object} Hunk Lines that changed, with some around them. Numbers are 1-based; 0 where a side has none.
 * @property {number} oldStart
 * @property {number} oldLines
 * @property {number} newStart
 * @property {number} newLines
 * @property {string[]} lines Each begins with a space, `-` or `+`; one with a backslash tells that the line before it has no end. What is not seen stands as its number: `‹U+202E›`.
 *
 * @typedef {object} Improvement The improvement in progress.
 * @property {string} id
 * @property {"retry" | "lint" | "types" | "docs" | "memory" | "quality" | "dependencies" | "clean_up" | "backlog"} kind
 * @property {"look" | "plan" | "make" | "work" | "inspect" | "check" | "weigh" | "review" | "commit" | "tidy" | "remove" | "tell"} stage
 * @property {string} title Empty until its task is written.
 * @property {string} branch
 * @property {boolean} asked Somebody asked for it.
 * @property {string} startedAt
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
 * @typedef {object} InboxItem What the user sent and no message shows yet.
 * @property {string} id
 * @property {"user_input" | "answer"} kind
 * @property {string} text
 * @property {string} createdAt
 * @property {string | null} quote
 * @property {string | null} edits
 * @property {string | null} retryOf
 * @property {SentFile[]} files
 * @property {"queued" | "answering"} state
 *
 * @typedef {object} Index How the search index is.
 * @property {number} files
 * @property {number} passages
 * @property {boolean} fresh
 * @property {string} words
 * @property {string | null} fallback Why a plain scan serves.
 *
 * @typedef {object} JobChange One of its tasks moved, or what it does now.
 * @property {"job"} kind
 * @property {Job} job
 *
 * @typedef {object} JobCounts Jobs by state: all there are.
 * @property {number} planning
 * @property {number} waiting
 * @property {number} running
 * @property {number} asking
 * @property {number} done
 * @property {number} failed
 * @property {number} canceled
 *
 * @typedef {object} JobList Some jobs: those at work in the order they are taken, then those that ended last.
 * @property {Job[]} jobs
 * @property {string | null} before The cursor of those that come after them in this order.
 * @property {number} total How many there are under what was asked for.
 * @property {JobCounts} counts The same by state, whichever state was asked for.
 *
 * @typedef {object} Job One job as it stands now.
 * @property {string} id The trace of a request; the trigger whose firings it is.
 * @property {"request" | "trigger" | "firing"} kind
 * @property {string} title
 * @property {"planning" | "waiting" | "running" | "asking" | "done" | "failed" | "canceled"} state Of the whole; waiting: queued, for an engine or its time, or for what comes before.
 * @property {string} createdAt
 * @property {string | null} startedAt
 * @property {string | null} endedAt
 * @property {string} headline What runs does now.
 * @property {string[]} lines The last lines of output of what runs now.
 * @property {string | null} waitsFor The engine that it waits for.
 * @property {string | null} notBefore The time that it waits for.
 * @property {Step[]} steps The last ones, oldest first; none of a trigger.
 * @property {number} total Of a trigger: all its firings that are known.
 * @property {StepCounts} counts
 * @property {number} changed Of a trigger: how often today a firing came out otherwise than the one before.
 * @property {string | null} lastAt Of a trigger: when a firing ended last.
 * @property {string} taskId The task to open, cancel or retry: what runs, else what failed last, else the last.
 * @property {string | null} failedTaskId The one that failed last: of a trigger, today, and none has succeeded since.
 * @property {string | null} error Of a job that failed: why, in one line.
 *
 * @typedef {object} JoinedParameters
 * @property {(FileChanged | FileExists | TaskDone | TaskFailed | WebhookCondition | LlmEvalCondition | AndCondition | OrCondition | NotCondition)[]} conditions
 *
 * @typedef {object} LedgerEvent A line of the ledger about a task; what else stands on it differs by its type.
 * @property {string | null} type
 *
 * @typedef {object} LlmEvalCondition
 * @property {"llm_eval"} type
 * @property {LlmEvalParameters} params
 *
 * @typedef {object} LlmEvalParameters
 * @property {string} prompt
 *
 * @typedef {object} LogLine One thing that happened.
 * @property {string} id Its cursor.
 * @property {string} at
 * @property {string} type `task`, `audit`, `error` …
 * @property {string} event
 * @property {Record<string, string>} facts What else stands on the line.
 * @property {Record<string, {en: string, zh: string}>} words Of its facts those that code says of what went wrong, in each language.
 *
 * @typedef {object} LogPage Some lines, oldest first; there may be fewer than asked for and yet more before them.
 * @property {LogLine[]} lines
 * @property {string | null} before Where those before these begin; null at the beginning of what is kept.
 * @property {string} after Where to go on with those to come.
 *
 * @typedef {object} Login
 * @property {true} ok
 * @property {string} key What each request of the session needs as `X-Mimikit-Session`, beside the cookie.
 *
 * @typedef {object} MemoryFile One file in the list of memory. Units: bytes.
 * @property {string} path
 * @property {"longTerm" | "raw" | "day" | "month" | "docs"} kind
 * @property {string} title
 * @property {string | null} day
 * @property {number} size
 * @property {string | null} modifiedAt Null for a time no calendar has.
 * @property {boolean} editable
 * @property {boolean} hidden A day's summary behind its month's.
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
 * @property {string | null} html Rendered and sanitised by the server; null for a user's words, which are no markdown.
 * @property {string} createdAt
 * @property {string | null} turnId
 * @property {string[]} inReplyTo
 * @property {string[]} taskIds
 * @property {Usage | null} usage
 * @property {number | null} durationMs
 * @property {string | null} quote
 * @property {string | null} edits The earlier message that this one says anew.
 * @property {string | null} engine
 * @property {string | null} reminder The words of the reminder that it tells, whose task `task_ids` names.
 * @property {string | null} jobId The job that it speaks of, of which the first such message shows the card.
 * @property {SentFile[]} files What the user sent with it.
 * @property {number} memory How many hits of memory its turn was given.
 * @property {"stopped" | "failed" | null} ended How its turn ended, of which no whole reply came: of the user's message, of what had been said of the reply, and of the system's line, for which the user's message stands.
 * @property {{en: string, zh: string} | null} why Of a user's message: why it could not be answered.
 * @property {string | null} retryOf Of a user's message: the one that it has answered again.
 * @property {string | null} questionId The question that it asks; what answers that shows it as well.
 * @property {Answered | null} answered
 * @property {string | null} triggerId The trigger whose runs it tells, and nothing else.
 * @property {string[]} repeats Messages of that trigger before this one, which stands for them: their ids, oldest first.
 * @property {string | null} since When the oldest of them was said.
 *
 * @typedef {object} MessagesPage Some messages, oldest first, and the cursors of those before and after them.
 * @property {Message[]} messages
 * @property {string | null} before
 * @property {string | null} after
 * @property {Job[]} jobs Those that they speak of.
 *
 * @typedef {object} Need One thing that waits for its user.
 * @property {"consumer" | "question" | "failure" | "breaker" | "late" | "broken" | "blocked" | "engine" | "budget" | "paused" | "degraded" | "corrupt" | "disk"} kind
 * @property {string} id Of the same thing the same.
 * @property {string | null} at Since when; of a failure its end.
 * @property {string} title
 * @property {{en: string, zh: string} | null} why
 * @property {string | null} error In the words of whoever told it.
 * @property {string | null} failureReason
 * @property {string | null} taskId
 * @property {string | null} triggerId
 * @property {number} count How many failures, late triggers or files this stands for; of the disk, the free bytes.
 * @property {EngineStatus | null} engine
 * @property {Question | null} question
 *
 * @typedef {object} NextFiring A trigger and when it fires next.
 * @property {string} triggerId
 * @property {string} title
 * @property {string} at
 * @property {{en: string, zh: string}} words When it runs.
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
 * @property {FileChanged | FileExists | TaskDone | TaskFailed | WebhookCondition | LlmEvalCondition | AndCondition | OrCondition | NotCondition} condition
 *
 * @typedef {object} NoteConflict Another text was saved meanwhile; null: the file is gone.
 * @property {ErrorDetail} error
 * @property {Note | null} current
 *
 * @typedef {object} Note One file with its text.
 * @property {string} path
 * @property {"longTerm" | "raw" | "day" | "month" | "docs"} kind
 * @property {string} title
 * @property {string | null} day
 * @property {number} size
 * @property {string | null} modifiedAt Null for a time no calendar has.
 * @property {boolean} editable
 * @property {boolean} hidden A day's summary behind its month's.
 * @property {string} text
 * @property {string} html
 * @property {string} hash Guards an edit.
 * @property {boolean} cut Whether the file is longer than what is here.
 *
 * @typedef {object} OrCondition
 * @property {"or"} type
 * @property {JoinedParameters} params
 *
 * @typedef {object} OutputEvent What a run did at a time; `gap`: here so many `bytes` (in its data) are not kept.
 * @property {string} at
 * @property {string} type
 * @property {string} text
 * @property {string | null} stream
 * @property {Record<string, any>} data
 *
 * @typedef {object} Output A page of a run's events. Offsets are of its record; `size` is how far that reaches now.
 * @property {OutputEvent[]} events
 * @property {string} start
 * @property {string} offset Where to go on.
 * @property {number} size
 * @property {boolean} ended Whether nothing more will come after `offset`.
 *
 * @typedef {object} PastImprovement One that has ended.
 * @property {string} id
 * @property {"retry" | "lint" | "types" | "docs" | "memory" | "quality" | "dependencies" | "clean_up" | "backlog"} kind
 * @property {string} title
 * @property {"committed" | "proposed" | "nothing" | "dropped"} end
 * @property {string} why Why it ended so, in the words of whoever said it.
 * @property {{en: string, zh: string} | null} whyWords The same in each language, where code has said it.
 * @property {string} branch Where it was committed; empty: nothing is left of it.
 * @property {number} files
 * @property {string | null} taskId The Worker's, which has the rest.
 * @property {string} left The path of its worktree, if that stayed as somebody else worked there.
 * @property {string} endedAt
 *
 * @typedef {object} PlannerStatus
 * @property {"idle" | "planning"} state
 * @property {string | null} since
 * @property {string} headline
 *
 * @typedef {object} PromptSection A part of a prompt.
 * @property {string} label Of a block, as the prompt has it: `Conversation`; empty: what stands between blocks.
 * @property {string} text
 * @property {number} tokens Counted or estimated here; the engine may count otherwise.
 *
 * @typedef {object} QuestionChange
 * @property {"question"} kind
 * @property {Question | null} question
 *
 * @typedef {object} Question The question that waits for an answer.
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
 * @property {boolean} hasDiff Whether files of the workspace changed, as `…/diff` tells.
 * @property {string | null} html Null where there is no text, and for a command's output, which is no markdown.
 * @property {string} completedAt
 *
 * @typedef {object} Schedule When a trigger is due. Exactly one of interval, cron, runAt. Units: seconds.
 * @property {number | null} interval
 * @property {string | null} cron
 * @property {string | null} timezone
 * @property {string | null} runAt
 *
 * @typedef {object} SearchAnswer
 * @property {string} query
 * @property {SearchHit[]} hits
 * @property {SearchCounts} counts
 * @property {number} tookMs
 * @property {string | null} fallback Why a plain scan served.
 *
 * @typedef {object} SearchCounts How many of each kind were found; 100 is so many or more.
 * @property {number} messages
 * @property {number} memory
 * @property {number} work
 *
 * @typedef {object} SearchHit
 * @property {string} source
 * @property {string} kind
 * @property {string} snippet Plain words, whatever markdown they stood in.
 * @property {[number, number][]} marks Begin and end of each. Units: characters; in order, none overlap.
 * @property {number} score
 * @property {string | null} day
 * @property {number} line 0: not in a text file.
 * @property {string | null} messageId
 * @property {string | null} role
 * @property {string | null} taskId
 * @property {string | null} title Of the task whose result it is.
 * @property {"queued" | "running" | "asking" | "done" | "failed" | "canceled" | "planning" | "waiting" | "running" | "asking" | "done" | "failed" | "canceled" | null} state
 *
 * @typedef {object} SeatEngine The engine that serves a role or profile, as it is shown.
 * @property {string} engine
 * @property {"ready" | "waiting"} state
 * @property {"missing" | "logged_out" | "limited" | "unreachable" | "broken" | "unready" | null} want Of one that is waited for: what kind of trouble it is.
 * @property {string | null} reason Why it waits; of one that is ready: why a better one was passed over.
 * @property {string | null} since When what waits for it began to, where that is known.
 * @property {string | null} until When the limit it waits for is known to end.
 * @property {string | null} nextTryAt When it is tried again by itself; at once when somebody asks for it, or a message comes.
 * @property {number} messages How many messages and results wait for it, where that is told.
 * @property {number} tasks How many tasks do.
 * @property {string | null} standIn The engine that serves in its place meanwhile.
 * @property {{en: string, zh: string} | null} why The reason in each language, where code has said it.
 *
 * @typedef {object} SelfAwake All of it.
 * @property {boolean} enabled
 * @property {number} idleMinutes
 * @property {("retry" | "lint" | "types" | "docs" | "memory" | "quality" | "dependencies" | "clean_up" | "backlog")[]} items
 * @property {string[]} checks
 * @property {Improvement | null} run
 * @property {string[]} left Paths of worktrees that stay, as somebody may work there.
 * @property {string | null} blocked Why the last one could not even begin.
 * @property {{en: string, zh: string} | null} blockedWords The same in each language.
 * @property {string | null} blockedAt
 * @property {string | null} lastAt When one began last.
 * @property {PastImprovement[]} past The newest first.
 *
 * @typedef {object} SentFile A file that the user sent, as its message names it.
 * @property {string} id
 * @property {string} name
 * @property {string} mediaType
 * @property {number} size
 * @property {number | null} width
 * @property {number | null} height
 * @property {boolean} kept It can still be had; what no message needs any more goes after its time.
 *
 * @typedef {object} Session
 * @property {true} ok
 *
 * @typedef {object} SlotExplanation One line of the ledger; a user may have had a hand in it.
 * @property {string} at
 * @property {string | null} slot
 * @property {string | null} state
 * @property {string | null} taskId
 * @property {string | null} plannedAt
 * @property {Record<string, string> | null} reason
 * @property {number | null} missed
 *
 * @typedef {object} Snapshot All a page needs to begin.
 * @property {string} cursor Where the changes after it begin.
 * @property {string} version
 * @property {string} now
 * @property {string} timezone
 * @property {Message[]} messages
 * @property {string | null} before
 * @property {InboxItem[]} inbox
 * @property {Question | null} question
 * @property {Draft | null} draft The reply that is being written.
 * @property {Job[]} jobs Those at work, those that ended last, and those that its messages speak of.
 * @property {Task[]} tasks Those at work, and those that are next; lists of tasks are asked for.
 * @property {Trigger[]} triggers
 * @property {Status} status
 *
 * @typedef {object} StatusChange
 * @property {"status"} kind
 * @property {Status} status
 *
 * @typedef {object} Status One object that says how it goes.
 * @property {"ok" | "hung" | "down"} consumer
 * @property {number | null} beatAgeS
 * @property {TellerStatus} teller
 * @property {PlannerStatus} planner
 * @property {WorkersStatus} workers
 * @property {Record<string, number>} queues Tasks that wait, by queue.
 * @property {JobCounts | null} jobs All there are, by state; None while one of their folders is none.
 * @property {Record<string, SeatEngine>} engines By role or profile: what serves it.
 * @property {Record<string, SeatEngine>} minds By name: each that served here, and what waits for it.
 * @property {boolean} paused
 * @property {boolean} question Whether one waits for its answer.
 * @property {string | null} degraded
 * @property {{en: string, zh: string} | null} degradedWords The same in each language, where code has said it.
 * @property {number} quarantined
 * @property {string | null} lastTick
 * @property {UsageToday} usage
 * @property {string} version
 *
 * @typedef {object} StepCounts Steps by state; of a trigger its firings of the local day.
 * @property {number} queued
 * @property {number} running
 * @property {number} done
 * @property {number} failed
 * @property {number} canceled
 *
 * @typedef {object} Step A part of a job: a plan, or a piece of work; what was tried again is shown once.
 * @property {string} id Of its task that was begun last; of one that waits for others, of what will begin it.
 * @property {"plan" | "work"} kind
 * @property {string} title
 * @property {"queued" | "running" | "asking" | "done" | "failed" | "canceled"} state
 * @property {string | null} startedAt
 * @property {string | null} endedAt
 * @property {string | null} error
 * @property {{en: string, zh: string} | null} why The error in each language, where code has said it.
 * @property {string | null} failureReason
 * @property {string | null} waitsFor The engine that it waits for.
 *
 * @typedef {object} TaskChange
 * @property {"task"} kind
 * @property {Task} task
 *
 * @typedef {object} TaskDetail One task with its result, its events and the tasks it belongs with.
 * @property {Task} task
 * @property {string} prompt
 * @property {Result | null} result
 * @property {LedgerEvent[]} events
 * @property {Task[]} trace
 * @property {Graph} graph
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
 * @property {string} taskId Of a task or of a trigger.
 *
 * @typedef {object} Task One task as it stands now. Units: milliseconds.
 * @property {string} id
 * @property {"planner" | "worker"} seat
 * @property {"queued" | "running" | "asking" | "done" | "failed" | "canceled"} state
 * @property {string} title
 * @property {string} profile
 * @property {number} priority
 * @property {string} origin
 * @property {string} createdAt
 * @property {string | null} startedAt
 * @property {string | null} completedAt
 * @property {string | null} notBefore
 * @property {string | null} waitsFor The engine that it waits for.
 * @property {number} attempts
 * @property {number} maxAttempts
 * @property {string | null} failureReason
 * @property {string | null} error
 * @property {{en: string, zh: string} | null} why The error in each language, where code has said it.
 * @property {string} traceId
 * @property {string | null} parentTaskId
 * @property {string | null} sourceTriggerId
 * @property {string | null} retryOf
 * @property {string[]} upstream
 * @property {boolean} internal
 * @property {string} headline What a running one does now.
 * @property {number | null} waitMs
 * @property {number | null} runMs
 *
 * @typedef {object} TellerStatus
 * @property {"idle" | "replying"} state
 * @property {string | null} since
 * @property {string} headline
 * @property {string | null} turnId
 *
 * @typedef {object} TimelineBar One run, or several of one row that lie near one another. Units: milliseconds.
 * @property {string} taskId Of several the last.
 * @property {"queued" | "running" | "asking" | "done" | "failed" | "canceled"} state Failed where one of them did.
 * @property {string} title
 * @property {string | null} createdAt When it began to wait; null where that is not known, and of several.
 * @property {string | null} startedAt Null while it waits, and where it never ran.
 * @property {string | null} endedAt Null while it goes on.
 * @property {number} count
 * @property {number} failed
 * @property {number | null} waitMs Of several the longest.
 * @property {number | null} runMs Of several all together.
 *
 * @typedef {object} TimelineRow The runs of a trigger; or what was asked for, or mimikit's own upkeep, of all kinds.
 * @property {"request" | "trigger" | "internal"} kind
 * @property {string} id The trigger's; else the kind.
 * @property {string} title
 * @property {number} runs
 * @property {number} failed
 * @property {TimelineBar[]} bars Oldest first; of triggers they do not overlap much, of requests they may.
 *
 * @typedef {object} Timeline Rows: what was asked for first, then triggers by their title, then upkeep.
 * @property {string} since
 * @property {string} until
 * @property {number} runs
 * @property {number} failed
 * @property {TimelineRow[]} rows
 * @property {number} moreRows Triggers that ran longest ago, of very many.
 * @property {boolean} whole False where of so many runs only the newest are known.
 *
 * @typedef {object} TokenCounts Tokens, by how many runs, and what they cost by currency, where a price is set.
 * @property {number} runs
 * @property {number} estimated Runs whose engine told nothing, or not all of it.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 * @property {Record<string, number>} cost By currency, of the runs whose engine has a price.
 *
 * @typedef {object} ToolUse One call of a tool; what it was given and replied is cut.
 * @property {string} name
 * @property {boolean} ok
 * @property {string} arguments
 * @property {string} reply
 *
 * @typedef {object} Trace The tasks and triggers of one trace.
 * @property {Task[]} tasks
 * @property {Trigger[]} triggers
 * @property {Graph} graph
 *
 * @typedef {object} Trial What came of a trial; `message` and `field` where it failed.
 * @property {boolean} ok
 * @property {string[]} models
 * @property {string | null} api `responses` or `chat`, once a turn was tried.
 * @property {string} text What the model said.
 * @property {boolean} callsTools
 * @property {number} tookS
 * @property {string} message
 * @property {string | null} field
 *
 * @typedef {object} TriggerChange Without the trigger when it is gone.
 * @property {"trigger"} kind
 * @property {string} id
 * @property {Trigger | null} trigger
 *
 * @typedef {object} TriggerDetail One trigger, why it waits and what it did; also when it is gone: then null.
 * @property {Trigger | null} trigger
 * @property {Explanation} explanation
 * @property {Graph} graph
 * @property {TokenCounts} usage Of its runs, today.
 *
 * @typedef {object} TriggerList
 * @property {Trigger[]} triggers
 *
 * @typedef {object} TriggerPreview What a timing means.
 * @property {string} type
 * @property {Schedule | null} schedule
 * @property {FileChanged | FileExists | TaskDone | TaskFailed | WebhookCondition | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null} condition
 * @property {number} cooldown
 * @property {{en: string, zh: string}} words
 * @property {string[]} next
 * @property {{en: string, zh: string}[]} notes
 *
 * @typedef {object} Trigger One trigger as it stands now; of a broken one, what can still be said. Units: seconds.
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
 * @property {FileChanged | FileExists | TaskDone | TaskFailed | WebhookCondition | LlmEvalCondition | AndCondition | OrCondition | NotCondition | null} condition
 * @property {number} cooldown The one in force.
 * @property {boolean} once
 * @property {"skip" | "queue"} overlap
 * @property {"teller" | "message" | "change" | "failure" | "none"} notify Who is told of its runs: as asked for, else what is usual for its kind.
 * @property {boolean} notifyGiven Whether that was asked for.
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
 * @property {number} failureStreak So many runs in a row failed in the same way.
 * @property {"breaker" | null} pausedBy Who paused it, where that was not its user.
 * @property {string | null} blockedBy The task or trigger because of which it can never fire.
 * @property {string | null} broken Why its file cannot be read.
 * @property {{en: string, zh: string} | null} brokenWords The same in each language.
 * @property {{en: string, zh: string}} headline Why it waits, or what comes next.
 * @property {{en: string, zh: string} | null} last How its last run went.
 * @property {"attention" | "active" | "paused" | "step"} group
 * @property {{en: string, zh: string} | null} needs Why it needs its user, where it does.
 *
 * @typedef {object} TurnChange The Teller's run began or ended.
 * @property {"turn"} kind
 * @property {"started" | "ended"} state
 * @property {string} turnId
 * @property {string} headline
 * @property {string[]} inputs Ids of the messages it answers.
 *
 * @typedef {object} TurnHit A passage that a turn was given; of an earlier format its source alone is known.
 * @property {string} source
 * @property {string | null} text Plain words; what was given stands in the prompt.
 * @property {number | null} line
 * @property {string | null} day
 * @property {string | null} kind
 *
 * @typedef {object} TurnHitList
 * @property {TurnHit[]} hits
 *
 * @typedef {object} TurnPrompt What a run was told, whole, and what it called; or as much of that as is known still.
 * @property {string} id
 * @property {"teller" | "planner" | "worker"} role
 * @property {string} engine
 * @property {string | null} model
 * @property {number} attempt
 * @property {"done" | "failed" | "canceled"} status
 * @property {boolean} byCode No model was asked.
 * @property {boolean} isKept Whether what it was told, and called, is kept still; of what code answers it never is.
 * @property {string | null} startedAt
 * @property {string} at When it ended.
 * @property {string} instructions
 * @property {number} instructionsTokens
 * @property {string} prompt
 * @property {PromptSection[]} sections The prompt in its parts, in order.
 * @property {string[]} tools Those it was offered.
 * @property {ToolUse[]} calls
 * @property {TurnHit[]} hits
 * @property {number | null} requests How often a model was asked, where the engine counts it.
 * @property {Usage} usage
 * @property {Record<string, number>} cost By currency, where the engine has a price.
 *
 * @typedef {object} Usage Tokens of a run.
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
 * @property {UsageRow[]} rows Days in their order, of which none is left out; of all else those that used most first.
 * @property {Budget} budget
 *
 * @typedef {object} UsageRow
 * @property {number} runs
 * @property {number} estimated Runs whose engine told nothing, or not all of it.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 * @property {Record<string, number>} cost By currency, of the runs whose engine has a price.
 * @property {string} key The day, engine, model, role, or the id; empty: of none (no trigger, no model named).
 * @property {string} title Of what has an id.
 *
 * @typedef {object} UsageToday What today's runs have used, by the user's calendar.
 * @property {number} runs
 * @property {number} estimated Runs whose engine told nothing, or not all of it.
 * @property {number} inputTokens
 * @property {number} cachedInputTokens Part of the input.
 * @property {number} outputTokens
 * @property {number} reasoningOutputTokens Part of the output.
 * @property {Record<string, number>} cost By currency, of the runs whose engine has a price.
 * @property {Budget} budget
 *
 * @typedef {object} WebhookCondition
 * @property {"webhook"} type
 * @property {WebhookParameters} params
 *
 * @typedef {object} WebhookParameters
 * @property {string} name Of a webhook in the settings; one that is not there yet may come.
 *
 * @typedef {object} WorkersStatus
 * @property {number} busy
 * @property {number} seats
 *
 * @typedef {ChangeList["events"][number]} Change
 */

export {};
