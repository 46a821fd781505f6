"""Adds conversation, tasks and memory hits to a run's input; detects the user's language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mimikit.conversation import attachments
from mimikit.engines.base import Attachment, TaskLine, TurnInput
from mimikit.errors import shortage_of
from mimikit.language import phrases
from mimikit.memory import terms, tokens
from mimikit.protocol.models import MAX_FILES, FileRef, Hit
from mimikit.roles.prompts import user_block
from mimikit.roles.run import RunContext

ATTACHED_MESSAGES = 4
"""The files of the last messages are shown once more, for what is asked next."""
RECENT = 5
"""Messages that the memory query includes, with less weight."""
_SCRIPT_CHARACTERS = 4000
_TRADITIONAL = ("hant", "tw", "hk", "mo")


def with_context(context: RunContext, turn_input: TurnInput) -> TurnInput:
    query = "\n".join(item.text for item in turn_input.inputs)
    if turn_input.task is not None:
        query = turn_input.task.prompt
    budgets = context.settings.budgets
    newest = context.reader.conversation(budgets.conversation_messages)
    conversation = context.window.select(newest, budgets)
    user, memory = "", list[Hit]()
    try:
        user = user_block(context.reader.long_term(), budgets.memory_tokens // 2)
        if query.strip():
            recent = [message.text for message in conversation[-RECENT:]]
            left = budgets.memory_tokens - tokens.count(user)
            memory = context.reader.recall(query, recent, budgets.memory_hits, left)
    except Exception as error:
        if shortage_of(error):
            raise
        context.log.write("error", "memory_not_searched", error=repr(error))
    own = turn_input.task.id if turn_input.task else None
    recent = conversation[-ATTACHED_MESSAGES:] if turn_input.inputs else ()
    sent = [turn_input.task] if turn_input.task else [*turn_input.inputs, *recent]

    def tasks(scope: str) -> list[TaskLine]:
        return [line for line in context.reader.tasks(scope) if line.id != own]

    return replace(
        turn_input,
        conversation=tuple(conversation),
        user=user,
        memory=tuple(memory),
        attachments=read_attachments(context, [ref for one in sent for ref in one.files]),
        tasks=tuple(tasks("all")),
        look=tasks,
    )


def read_attachments(context: RunContext, refs: Sequence[FileRef]) -> tuple[Attachment, ...]:
    unique = list({ref.id: ref for ref in refs}.values())
    files = context.files
    return tuple(
        Attachment(ref, attachments.beginning(files, ref), attachments.data_url(files, ref))
        for ref in unique[:MAX_FILES]
    )


def detect_locale(text: str, locale: str) -> str:
    """The language tag of a text, such as `zh-Hant`."""
    is_chinese = locale.lower().startswith("zh")
    if phrases.language(text, locale) == "en":
        return "en" if is_chinese else locale
    script = terms.script_of(text[:_SCRIPT_CHARACTERS])
    if not is_chinese:
        return f"zh-{script or 'Hans'}"
    is_traditional = any(part in _TRADITIONAL for part in locale.lower().split("-"))
    own = "Hant" if is_traditional else "Hans"
    return locale if script in (None, own) else f"zh-{script}"
