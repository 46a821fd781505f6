"""The sentences that the assistant without a model understands, in English and Chinese. Pure.

A message is one such sentence as a whole, or it is `Plain`: nothing is picked out of its middle, so
"I run every day" asks for nothing. How a command is told from talk stands in `shell_lines`, what
times mean in `language.times`; a sentence means the same at any time, so it keeps the words of its
time. A later ability adds rows to `ROWS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mimikit.engines.builtin import openings
from mimikit.engines.builtin.openings import BacklogAction
from mimikit.engines.builtin.shell_lines import (
    ASKED_AT_END,
    BARE_LIMIT,
    COURTESY_AT_END,
    MARKS,
    CommandLine,
    Doubt,
    IsProgram,
    View,
    read_bare,
    read_command,
    read_marked,
    without_end,
)
from mimikit.language.time_parser import Found, Repeat, time_at
from mimikit.language.time_vocabulary import MAX_INTERVAL_S, MIN_INTERVAL_S
from mimikit.language.time_words import Language, interval_words


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command now."""

    command: str


@dataclass(frozen=True, slots=True)
class Every:
    """Run a command again and again. Units: seconds."""

    seconds: float
    command: str


@dataclass(frozen=True, slots=True)
class At:
    """Run a command at a time or at times of day; `when` is for `times.parse_when` to read."""

    when: str
    command: str


@dataclass(frozen=True, slots=True)
class WhenFile:
    """Run a command when a file changes, or once it exists. The path may be a glob."""

    path: str
    change: Literal["changed", "exists"]
    command: str


@dataclass(frozen=True, slots=True)
class After:
    """Run a command when a task is done; the reference as the user wrote it."""

    reference: str
    command: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep something in memory."""

    content: str


@dataclass(frozen=True, slots=True)
class Recall:
    """Say what memory holds about something."""

    about: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """Show the backlog."""


@dataclass(frozen=True, slots=True)
class ChangeBacklog:
    """Add an item to the backlog, tick it, or take it off."""

    action: BacklogAction
    item: str


@dataclass(frozen=True, slots=True)
class Tasks:
    """Show what runs, waits and has ended."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a task or trigger; the reference as the user wrote it, possibly empty."""

    reference: str


@dataclass(frozen=True, slots=True)
class Status:
    """Show how the assistant is."""


@dataclass(frozen=True, slots=True)
class Help:
    """Show what can be said."""


BadReason = Literal["too_often", "too_rare", "command_or_time", "several", "file_or_word"]


@dataclass(frozen=True, slots=True)
class BadSentence:
    """Understood, but not to be done as it stands."""

    reason: BadReason
    text: str


@dataclass(frozen=True, slots=True)
class Plain:
    """Anything else."""

    text: str


Commanding = Run | Every | At | WhenFile | After
"""What runs a command, now or later."""
Keeping = Remember | Recall | Backlog | ChangeBacklog
"""What is about what is kept."""
Intent = Commanding | Keeping | Tasks | Cancel | Status | Help | BadSentence | Plain


def no_program(word: str) -> bool:
    """Know no program: then no bare command is taken for one."""
    del word
    return False


def parse(text: str, is_program: IsProgram = no_program) -> Intent:
    """What the message asks for.

    Args:
        text: the whole message.
        is_program: whether a word can be started by name; decides on bare commands.
    """
    view = _unwrapped(View.of(text))
    for opening, build in ROWS:
        match = opening.match(view.plain)
        intent = build(match, view, is_program) if match else None
        if intent is not None:
            return intent
    return Plain(text.strip())


def render(intent: Intent, language: Language = "en") -> str:
    """The sentence for an intent: parsing it gives the same intent again."""
    forms = _forms(intent, language)
    return next((form for form in forms if parse(form) == intent), forms[-1])


# What reads each kind of sentence: given the opening that matched and the whole view.


def _run(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    rest = view.cut(match.end())
    if rest.plain in {"", ":"}:
        return Help()
    command = read_command(rest, is_program, asked=match["asked"] is not None)
    if isinstance(command, str):
        return BadSentence(command, view.raw)
    if command is None:
        return None
    return _timed(command.time, command.text, view) if command.time else Run(command.text)


def _at_time(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    found = time_at(view.plain, match.end())
    if found is None:
        return None
    if found.vague and not openings.MARKED_LATER.match(view.plain, found.end):
        return None  # "Monday: make soup" is a note

    def build(command: str) -> Intent:
        return _timed(found, command, view)

    return _later(match, view, is_program, build, start=found.end)


def _when_file(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    said = match.groupdict()
    if "then" in said and not (said["when"] or said["then"]):
        return None
    change = "changed" if said["changed"] else "exists"
    what = view.cut(*match.span("what"))
    marked = what.raw[0] in MARKS
    path = what.cut(1, len(what.raw) - 1).raw if marked else what.raw

    def build(command: str) -> Intent:
        if not (marked or match["file"] or said.get("kind") or openings.LIKE_A_PATH.search(path)):
            return BadSentence("file_or_word", view.raw)
        return WhenFile(path, change, command)

    return _later(match, view, is_program, build) if path else None


def _after(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    reference = _reference(view.cut(*match.span("what")))
    if not reference:
        return None
    return _later(match, view, is_program, lambda command: After(reference, command))


def _later(
    match: re.Match[str],
    view: View,
    is_program: IsProgram,
    build: Callable[[str], Intent],
    start: int | None = None,
) -> Intent | None:
    """A sentence that says first when, then what: the command begins at `start`, or behind it."""
    rest = view.cut(match.end() if start is None else start).after(",")
    body = rest.after(":")
    verb = openings.VERB_LATER.match(body.plain)
    command: CommandLine | Doubt | None = None
    if verb:
        command = read_command(body.cut(verb.end()), is_program, asked=match["asked"] is not None)
    elif body.raw and (body is not rest or body.raw.startswith("`")):
        command = read_marked(body) or read_bare(body, is_program)
    if isinstance(command, CommandLine) and command.time:
        command = "command_or_time"
    if isinstance(command, str):
        return BadSentence(command, view.raw)
    return build(command.text) if command else None


def _timed(found: Found, command: str, view: View) -> Intent:
    if isinstance(found.time, Repeat):
        return _every_or_bad(found.time.seconds, command, view)
    return At(found.words, command)


def _every_or_bad(seconds: float, command: str, view: View) -> Intent:
    if seconds < MIN_INTERVAL_S:
        return BadSentence("too_often", view.raw)
    if seconds > MAX_INTERVAL_S:
        return BadSentence("too_rare", view.raw)
    return Every(seconds, command)


def _remember(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    del is_program
    rest = view.cut(match.end())
    if rest.plain in {"", ":"}:
        return Help()
    if rest.plain.startswith(":"):
        return Remember(rest.after(":").raw)
    rest = rest.after(",")
    if rest.plain.endswith(("?", "吗")) or openings.NOT_TO_KEEP.match(rest.plain):
        return None
    content = without_end(rest, openings.THANKS_AFTER_COMMA).raw
    return Remember(content) if content else None


def _recall(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    del is_program
    inside = "about" in match.re.groupindex
    about = view.cut(*match.span("about")) if inside else view.cut(match.end())
    text = _unmarked(about).raw
    return Recall(text) if text and len(text) <= BARE_LIMIT else None


def _backlog_verb(action: BacklogAction) -> Build:
    """Reads a sentence that says first what to do, then with which item."""

    def build(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
        del is_program
        rest = view.cut(match.end())
        if rest.plain in {"", ":"}:
            return Help()
        if rest.plain.startswith(":"):
            return _item(action, rest.after(":").raw)
        if match["asked"]:
            rest = without_end(rest, ASKED_AT_END)
        return _said_item(action, without_end(rest.after(","), COURTESY_AT_END))

    return build


def _backlog_around(action: BacklogAction) -> Build:
    """Reads a sentence that has the item inside."""

    def build(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
        del is_program
        if not match["asked"] and openings.ASKS.search(view.plain):
            return None
        return _said_item(action, view.cut(*match.span("item")))

    return build


def _backlog_note(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    del is_program
    rest = view.cut(match.end()).after(":")
    return _said_item("add", rest) if rest.raw else Backlog()


def _said_item(action: BacklogAction, rest: View) -> Intent | None:
    """An item named without a colon: no question, and nothing that only points at one."""
    bare = _unmarked(rest)
    if openings.ASKS.search(rest.plain) or bare.plain.casefold() in openings.NO_ITEM:
        return None
    return _item(action, bare.raw)


def _item(action: BacklogAction, text: str) -> Intent | None:
    fits = bool(text) and len(text) <= _MAX_ITEM and "\n" not in text and "\0" not in text
    return ChangeBacklog(action, text) if fits else None


def _cancel(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    del is_program
    rest = view.cut(match.end())
    if match["asked"]:
        rest = without_end(rest, ASKED_AT_END)
    if "\n" in rest.raw or len(rest.raw) > 100 or openings.NOT_TO_CANCEL.search(rest.plain):
        return None
    return Cancel(_reference(rest))


def _reference(rest: View) -> str:
    """The id or name of a task, without marks, courtesy and the word "task" before it."""
    while True:
        reference = without_end(_unmarked(rest), COURTESY_AT_END)
        named = openings.TASK_WORD.match(reference.plain)
        reference = reference.cut(named.end()) if named else reference
        if reference == rest:
            return reference.raw
        rest = reference


def _fixed(intent: Intent) -> Build:
    """Reads a sentence in which nothing varies."""
    return lambda _match, _view, _is_program: intent


def _unwrapped(view: View) -> View:
    """The view without the 「」 around all of it."""
    closing = {"「": "」", "『": "』"}.get(view.raw[:1])
    if closing and view.raw.find(closing) == len(view.raw) - 1:
        return view.cut(1, len(view.raw) - 1)
    return view


def _unmarked(view: View) -> View:
    """The view without the quotes around it and the signs at its ends."""
    while True:
        inner = view.raw.strip(_END_SIGNS)
        start = view.raw.find(inner)
        quoted = len(inner) > 1 and MARKS.get(inner[0]) == inner[-1]
        trimmed = 1 if quoted else 0
        smaller = view.cut(start + trimmed, start + len(inner) - trimmed)
        if smaller == view:
            return view
        view = smaller


_END_SIGNS = " \t\r\n?？。!！,，:：、~～"

_MAX_ITEM = 500

Build = Callable[[re.Match[str], View, IsProgram], Intent | None]
Row = tuple[re.Pattern[str], Build]

ROWS: tuple[Row, ...] = (
    (openings.HELP, _fixed(Help())),
    (openings.STATUS, _fixed(Status())),
    (openings.TASKS, _fixed(Tasks())),
    (openings.AT_TIME, _at_time),
    *((pattern, _when_file) for pattern in openings.WHEN_FILE),
    *((pattern, _after) for pattern in openings.AFTER),
    (openings.RUN, _run),
    (openings.BACKLOG, _fixed(Backlog())),
    *(
        (pattern, _backlog_verb(action))
        for action, patterns in openings.BACKLOG_VERBS.items()
        for pattern in patterns
    ),
    *(
        (pattern, _backlog_around(action))
        for action, patterns in openings.BACKLOG_AROUND.items()
        for pattern in patterns
    ),
    (openings.BACKLOG_NOTE, _backlog_note),
    (openings.RECALL_EN, _recall),
    *((pattern, _recall) for pattern in openings.RECALL_ZH),
    (openings.REMEMBER, _remember),
    (openings.CANCEL, _cancel),
)
"""Every sentence: how it opens and what reads it. The first that reads one wins."""

# The way back.

_FIXED_FORMS: dict[type, tuple[str, str]] = {
    Tasks: ("tasks", "任务"),
    Status: ("status", "状态"),
    Help: ("help", "帮助"),
    Backlog: ("backlog", "待办"),
}
_BACKLOG_ZH = {"add": "添加待办", "done": "完成待办", "remove": "删除待办"}


def _forms(intent: Intent, language: Language) -> list[str]:
    """Ways to write an intent, the simplest first."""
    zh = language == "zh"
    match intent:
        case Run(command):
            return _command_forms("运行：" if zh else "run: ", command)
        case Every(seconds, command):
            words = interval_words(seconds, language)
            return _command_forms(f"{words}运行：" if zh else f"{words}: run: ", command)
        case At(when, command):
            return _command_forms(f"{when} 运行：" if zh else f"{when}: run: ", command)
        case WhenFile(path, change, command):
            verb = {"changed": ("changes", "变化"), "exists": ("exists", "存在")}[change][zh]
            head = "当 {what} {verb}时运行：" if zh else "when {what} {verb}: run: "
            return _named_forms(head.replace("{verb}", verb), path, command)
        case After(reference, command):
            head = "在 {what} 之后运行：" if zh else "after {what}: run: "
            return _named_forms(head, reference, command)
        case Remember() | Recall() | ChangeBacklog():
            return _keeping_forms(intent, zh=zh)
        case Cancel(reference):
            return [f"取消 {reference}" if zh else f"cancel {reference}"]
        case Plain(text) | BadSentence(_, text):
            return [text]
        case _:
            return [_FIXED_FORMS[type(intent)][zh]]


def _keeping_forms(intent: Remember | Recall | ChangeBacklog, *, zh: bool) -> list[str]:
    match intent:
        case Remember(content):
            return [f"记住：{content}" if zh else f"remember: {content}"]
        case Recall(about):
            form = f"关于 {about} 你知道什么" if zh else f"what do you know about {about}"
            return [form, f"recall: {about}"]
        case ChangeBacklog(action, item):
            return [f"{_BACKLOG_ZH[action]}：{item}" if zh else f"backlog {action}: {item}"]


def _named_forms(head: str, what: str, command: str) -> list[str]:
    """With the name as it is, then in each kind of quotes."""
    names = [what, *(f"{opening}{what}{closing}" for opening, closing in MARKS.items())]
    return [
        form for name in names for form in _command_forms(head.replace("{what}", name), command)
    ]


def _command_forms(head: str, command: str) -> list[str]:
    longest = max((len(ticks) for ticks in re.findall("`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return [head + command, f"{head.rstrip()}\n{fence}\n{command}\n{fence}"]
