"""Parses the commands of the assistant without a model, in English and Chinese. Pure.

A message is one command as a whole, or a `PlainSentence`: "I run every day" is not a command.
`shell_lines` separates shell commands from prose, `language.times` parses times. The patterns are
in `sentences.toml`; a new command adds its patterns there, and rows to `ROWS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from mimikit.engines.builtin import intents, notify, shell_lines
from mimikit.engines.builtin.intents import (
    BacklogAction,
    BadSentence,
    CancelIntent,
    Intent,
    ShowIntent,
)
from mimikit.engines.builtin.reminders import (
    NoticedIntent,
    RemindIntent,
    SnoozeIntent,
    read_reminder,
    read_snooze,
)
from mimikit.engines.builtin.shell_lines import SENTENCES, SIGNS, FoldedText, IsProgram, without_end
from mimikit.language.time_vocabulary import MAX_INTERVAL_S, MIN_INTERVAL_S, fold, unknown_time
from mimikit.language.times import FoundTime, RepeatTime, interval_of, time_at


def parse(text: str, is_program: IsProgram = lambda _word: False) -> Intent:
    """`is_program`: whether a word is the name of a program."""
    rest, wish = notify.split(text)
    if wish is not None:
        intent = _read(rest, ROWS, is_program)
        if isinstance(intent, intents.Commanding):
            return replace(intent, notify=wish)
    return _read(text, ROWS, is_program) or intents.PlainSentence(text.strip())


def parse_answer(text: str) -> SnoozeIntent | NoticedIntent | None:
    """The message as an answer to a reminder, else None."""
    intent = _read(text, _ANSWERS, lambda _word: False)
    return intent if isinstance(intent, SnoozeIntent | NoticedIntent) else None


def _read(text: str, rows: tuple[_Row, ...], is_program: IsProgram) -> Intent | None:
    view = FoldedText.of(text)
    closing = {"「": "」", "『": "』"}.get(view.raw[:1])
    if closing and view.raw.find(closing) == len(view.raw) - 1:  # all of it is quoted
        view = view.cut(1, len(view.raw) - 1)
    for opening, read in rows:
        match = opening.match(view.plain)
        intent = read(_Match(match, view, is_program)) if match else None
        if intent is not None:
            return intent
    return None


@dataclass(frozen=True, slots=True)
class _Match:
    """A message that begins like a command."""

    opening: re.Match[str]
    view: FoldedText
    is_program: IsProgram

    @property
    def rest(self) -> FoldedText:
        return self.view.cut(self.opening.end())

    @property
    def asked(self) -> bool:
        """Whether it is a request in form of a question: "can you run …?"."""
        return self.opening["asked"] is not None

    def group(self, name: str) -> FoldedText:
        return self.view.cut(*self.opening.span(name))


_Reader = Callable[[_Match], Intent | None]
_Row = tuple[re.Pattern[str], _Reader]
_PUNCTUATION = " \t\r\n?？。!！,，:：、~～"
_MAX_ITEM_CHARACTERS = 500


def _run(match: _Match) -> Intent | None:
    rest = match.rest
    if rest.plain in {"", ":"}:
        return BadSentence("run_what", match.view.raw)
    command = shell_lines.read_command(rest, match.is_program, asked=match.asked)
    if isinstance(command, str):
        return BadSentence(command, match.view.raw)
    time = None if command else SIGNS["time_after"].search(rest.plain)
    if time and shell_lines.read_bare(rest.cut(0, time.start()), match.is_program):
        return BadSentence("time_unknown", match.view.raw, rest.cut(time.start()).raw)
    if command is None or command.time is None:
        return command and intents.RunIntent(command.text)
    return _timed(command.time, command.text, match.view)


def _remind(match: _Match) -> Intent | None:
    return _reminding(match, match.rest)


def _remind_at(match: _Match) -> Intent | None:
    found = time_at(match.view.plain, match.opening.end())
    verb = SIGNS["remind_later"].match(match.view.plain, found.end) if found else None
    if found is None or verb is None:
        return None
    lead = match.view.cut(found.start, found.end).raw
    return _reminding(match, match.view.cut(verb.end()), lead)


def _reminding(match: _Match, rest: FoldedText, lead: str | None = None) -> Intent | None:
    read = read_reminder(without_end(rest, SIGNS["asked_at_end"]) if match.asked else rest, lead)
    if isinstance(read, SnoozeIntent) and SIGNS["reminds_of"].search(rest.plain):
        return BadSentence("reminding_none", match.view.raw)
    if not isinstance(read, RemindIntent):
        return read
    found = time_at(fold(read.when), 0)
    unknown = "" if read.is_verbatim else unknown_time(fold(read.text))
    if unknown:
        return BadSentence("time_unknown", match.view.raw, unknown)
    if found is None:
        return BadSentence("reminding_none", match.view.raw)
    return _bad_interval(found, match.view) or read


def _at_time(match: _Match) -> Intent | None:
    found = time_at(match.view.plain, match.opening.end())
    if found is None:
        return None
    if found.vague and not SIGNS["marked_later"].match(match.view.plain, found.end):
        return None  # "Monday: make soup" is a note
    rest = match.view.cut(found.end)
    later = _later(match, rest, lambda command: _timed(found, command, match.view))
    if later is None and not found.vague and SIGNS["to_do"].match(rest.plain):
        return _reminding(match, rest, match.view.cut(found.start, found.end).raw)
    return later


def _remind_or_run(match: _Match) -> Intent | None:
    found = time_at(match.view.plain, match.opening.end())
    if found is None:
        return None
    rest = match.view.cut(found.end).after(",").after(":")
    when = match.view.cut(found.start, found.end).raw.strip(" ,")
    verb = SIGNS["verb_later"].match(rest.plain)
    body = rest.cut(verb.end()).after(":") if verb else rest
    if verb and body.plain in {"", "."}:
        return BadSentence("run_what", match.view.raw, when=when)
    if not rest.raw or "\n" in rest.raw or SIGNS["asks"].search(rest.plain):
        return None
    after = match.view.cut(found.end).plain
    unknown = unknown_time(after)
    if verb is None and unknown and after.startswith(unknown):
        return BadSentence("time_unknown", match.view.raw, f"{when} {unknown}")
    is_plan = interval_of(found.time) not in _PLAIN_INTERVALS and not found.vague
    if verb is None and (not is_plan or SIGNS["not_planned"].match(rest.plain)):
        return None
    return BadSentence("remind_or_run", match.view.raw, rest.raw, when, body.raw)


def _unknown_time(match: _Match) -> Intent | None:
    """A time that was not understood as a whole, before a command or reminder."""
    words = match.group("words")
    time = time_at(words.plain, 0)
    is_whole = time is not None and time.end == len(words.plain)
    return None if is_whole else BadSentence("time_unknown", match.view.raw, words.raw)


def _when_file(match: _Match) -> Intent | None:
    groups = match.opening.groupdict()
    if "then" in groups and not (groups["when"] or groups["then"]):
        return None
    change = "changed" if groups["changed"] else "exists"
    what = match.group("what")
    marked = what.raw[0] in shell_lines.MARKS
    path = what.cut(1, len(what.raw) - 1).raw if marked else what.raw

    def build(command: str) -> Intent:
        named = marked or groups["file"] or groups.get("kind")
        if not (named or _LIKE_A_PATH.search(path)):
            return BadSentence("file_or_word", match.view.raw)
        return intents.WhenFileIntent(path, change, command)

    return _later(match, match.rest, build) if path else None


def _after(match: _Match) -> Intent | None:
    reference = _reference(match.group("what"))
    if not reference:
        return None
    return _later(match, match.rest, lambda command: intents.AfterIntent(reference, command))


def _later(match: _Match, rest: FoldedText, build: Callable[[str], Intent]) -> Intent | None:
    """A command in `rest`, after its time or condition."""
    rest = rest.after(",")
    body = rest.after(":")
    verb = SIGNS["verb_later"].match(body.plain)
    command: shell_lines.ShellLine | shell_lines.Doubt | None = None
    if verb:
        command = shell_lines.read_command(
            body.cut(verb.end()), match.is_program, asked=match.asked
        )
    elif body.raw and (body is not rest or body.raw.startswith("`")):
        command = shell_lines.read_marked(body) or shell_lines.read_bare(body, match.is_program)
    if isinstance(command, shell_lines.ShellLine) and command.time:
        command = "command_or_time"
    if isinstance(command, str):
        return BadSentence(command, match.view.raw)
    return build(command.text) if command else None


def _timed(found: FoundTime, command: str, view: FoldedText) -> Intent:
    if bad := _bad_interval(found, view):
        return bad
    if isinstance(found.time, RepeatTime):
        return intents.EveryIntent(found.time.seconds, command)
    return intents.AtIntent(found.words, command)


def _bad_interval(found: FoundTime, view: FoldedText) -> BadSentence | None:
    seconds = interval_of(found.time)
    seconds = MIN_INTERVAL_S if seconds is None else seconds
    if MIN_INTERVAL_S <= seconds <= MAX_INTERVAL_S:
        return None
    return BadSentence("too_often" if seconds < MIN_INTERVAL_S else "too_rare", view.raw)


def _remember(match: _Match) -> Intent | None:
    rest = match.rest
    if rest.plain in {"", ":"}:
        return BadSentence("remember_what", match.view.raw)
    if rest.plain.startswith(":"):
        return intents.RememberIntent(rest.after(":").raw)
    rest = rest.after(",")
    if rest.plain.startswith("to ") and isinstance(read := _reminding(match, rest), RemindIntent):
        return read  # "remember to call at 5"
    if rest.plain.endswith(("?", "吗")) or SIGNS["not_to_keep"].match(rest.plain):
        return None
    content = without_end(rest, SIGNS["courtesy_after_comma"]).raw
    return intents.RememberIntent(content) if content else None


def _forget(match: _Match) -> Intent | None:
    groups = match.opening.groupdict()
    rest = match.group("item") if groups.get("item") else match.rest.after(":").after(",")
    rest = without_end(rest, SIGNS["asked_at_end"]) if match.asked else rest
    bare = _unmarked(without_end(rest, SIGNS["courtesy_at_end"]))
    is_item = bare.raw and bare.plain.casefold() not in _NO_ITEM
    if not is_item or SIGNS["asks"].search(rest.plain) or SIGNS["not_to_forget"].match(rest.plain):
        return None
    return intents.ForgetIntent(bare.raw, bool(groups.get("all")))


def _recall(match: _Match) -> Intent | None:
    about = match.group("about") if "about" in match.opening.re.groupindex else match.rest
    text = _unmarked(about).raw
    return intents.RecallIntent(text) if text and len(text) <= shell_lines.BARE_LIMIT else None


def _backlog_verb(action: BacklogAction, match: _Match) -> Intent | None:
    rest = match.rest
    if rest.plain in {"", ":"}:
        return BadSentence("item_what", match.view.raw)
    if rest.plain.startswith(":"):
        return _item(action, rest.after(":").raw)
    if match.asked:
        rest = without_end(rest, SIGNS["asked_at_end"])
    return _checked_item(action, without_end(rest.after(","), SIGNS["courtesy_at_end"]))


def _backlog_around(action: BacklogAction, match: _Match) -> Intent | None:
    if not match.asked and SIGNS["asks"].search(match.view.plain):
        return None
    return _checked_item(action, match.group("item"))


def _backlog_note(match: _Match) -> Intent | None:
    rest = match.rest.after(":")
    return _checked_item("add", rest) if rest.raw else ShowIntent("backlog")


def _checked_item(action: BacklogAction, rest: FoldedText) -> Intent | None:
    """An item without a colon; None for a question or a mere pronoun."""
    bare = _unmarked(rest)
    if SIGNS["asks"].search(rest.plain) or bare.plain.casefold() in _NO_ITEM:
        return None
    return _item(action, bare.raw)


def _item(action: BacklogAction, text: str) -> Intent | None:
    fits = (
        bool(text) and len(text) <= _MAX_ITEM_CHARACTERS and "\n" not in text and "\0" not in text
    )
    return intents.ChangeBacklogIntent(action, text) if fits else None


def _cancel(match: _Match) -> CancelIntent | None:
    rest = match.group("item") if "item" in match.opening.re.groupindex else match.rest
    rest = without_end(rest, SIGNS["asked_at_end"]) if match.asked else rest
    if "\n" in rest.raw or len(rest.raw) > 100 or SIGNS["not_to_cancel"].search(rest.plain):
        return None
    return CancelIntent(_reference(rest))


def _remove(match: _Match) -> Intent | None:
    """A verb that cancels tasks, but is said of files and lines of text as well."""
    intent = None if SIGNS["not_a_task"].search(match.view.plain) else _cancel(match)
    return intent if intent and not _LIKE_A_PATH.search(intent.reference) else None


def _switch(action: Literal["pause", "resume"], match: _Match) -> Intent | None:
    intent = _cancel(match)
    return intents.SwitchIntent(action, intent.reference) if intent and intent.reference else None


def _ask(asks: Literal["next", "outcome"], match: _Match) -> Intent | None:
    is_named = "what" in match.opening.re.groupindex and match.opening["what"] is not None
    return intents.AskIntent(asks, _reference(match.group("what")) if is_named else "")


def _failed(match: _Match) -> Intent | None:
    return intents.FailedIntent(_DAYS.get((match.opening["day"] or "").casefold(), "lately"))


def _reference(rest: FoldedText) -> str:
    """The id or name of a task, without quotes, courtesy or the word "task"."""
    while True:
        reference = without_end(_unmarked(rest), SIGNS["courtesy_at_end"])
        reference = without_end(reference, SIGNS["task_word_after"])
        named = SIGNS["task_word"].match(reference.plain)
        reference = reference.cut(named.end()) if named else reference
        if reference == rest:
            return reference.raw
        rest = reference


def _unmarked(view: FoldedText) -> FoldedText:
    while True:
        inner = view.raw.strip(_PUNCTUATION)
        start = view.raw.find(inner)
        quoted = len(inner) > 1 and shell_lines.MARKS.get(inner[0]) == inner[-1]
        trimmed = 1 if quoted else 0
        smaller = view.cut(start + trimmed, start + len(inner) - trimmed)
        if smaller == view:
            return view
        view = smaller


def _rows(name: str, how: Literal["begins", "whole", "around"], read: _Reader) -> list[_Row]:
    """The patterns of one command, with polite words around it."""
    end = {"begins": "", "whole": _END, "around": "{thanks}" + _END}[how]
    forms = [
        f"{{polite}}{{ask}}{{polite}}(?:{it}){end}" for it in map(str.strip, SENTENCES[name][how])
    ]
    return [(shell_lines.compiled(form), read) for form in forms]


_END = r"[\s?!.。~]*+\Z"
_LIKE_A_PATH = re.compile(r"[./*~]|\A[A-Z][A-Za-z]*file\Z|\A[A-Z_]{3,}\Z")
_PLAIN_INTERVALS = frozenset({1, 60, 3600, 86400, 604800})
"""Of "every day" and the like, which begin any sentence."""
_NO_ITEM = frozenset(SENTENCES["words"]["no_item"].split())

_DAYS: dict[str, Literal["today", "yesterday"]] = {
    "today": "today", "so far": "today", "今天": "today", "今日": "today",
    "yesterday": "yesterday", "昨天": "yesterday",
}  # fmt: skip

ROWS: tuple[_Row, ...] = (
    *_rows("help", "whole", lambda _said: ShowIntent("help")),
    *_rows("status", "whole", lambda _said: ShowIntent("status")),
    *_rows("tasks", "whole", lambda _said: ShowIntent("tasks")),
    *_rows("reminders", "whole", lambda _said: ShowIntent("reminders")),
    *_rows("failed", "whole", _failed),
    *_rows("next_run", "whole", partial(_ask, "next")),
    *_rows("outcome", "whole", partial(_ask, "outcome")),
    *_rows("remind", "begins", _remind),
    *_rows("remind_at", "begins", _remind_at),
    *_rows("at_time", "begins", _at_time),
    *_rows("when_file", "begins", _when_file),
    *_rows("after", "begins", _after),
    *_rows("unknown_time", "begins", _unknown_time),
    *_rows("remind_or_run", "begins", _remind_or_run),
    *_rows("run", "begins", _run),
    *_rows("backlog", "whole", lambda _said: ShowIntent("backlog")),
    *_rows("backlog_add", "begins", partial(_backlog_verb, "add")),
    *_rows("backlog_done", "begins", partial(_backlog_verb, "done")),
    *_rows("backlog_remove", "begins", partial(_backlog_verb, "remove")),
    *_rows("backlog_add", "around", partial(_backlog_around, "add")),
    *_rows("backlog_done", "around", partial(_backlog_around, "done")),
    *_rows("backlog_remove", "around", partial(_backlog_around, "remove")),
    *_rows("backlog_note", "begins", _backlog_note),
    *_rows("recall", "begins", _recall),
    *_rows("recall", "whole", _recall),
    *_rows("remember", "begins", _remember),
    *_rows("forget", "begins", _forget),
    *_rows("forget", "around", _forget),
    *_rows("cancel", "begins", _cancel),
    *_rows("cancel", "whole", lambda _said: CancelIntent("全部")),
    *_rows("remove", "begins", _remove),
    *_rows("remove", "around", _remove),
    *_rows("pause", "begins", partial(_switch, "pause")),
    *_rows("resume", "begins", partial(_switch, "resume")),
)
"""The first that parses the message wins."""
_ANSWERS: tuple[_Row, ...] = (
    *_rows("snooze", "whole", lambda _said: SnoozeIntent("")),
    *_rows("snooze", "begins", lambda match: read_snooze(without_end(match.rest, SIGNS["again"]))),
    *_rows("noticed", "whole", lambda _said: NoticedIntent()),
)
