"""What a turn knows: conversation, tasks, memory hits, and the user's language."""

from __future__ import annotations

from dataclasses import replace

from mimikit.engines.base import TaskLine, TurnInput
from mimikit.errors import shortage_of
from mimikit.language import phrases
from mimikit.memory import terms, tokens
from mimikit.protocol.models import Hit
from mimikit.roles.prompts import user_block
from mimikit.roles.run import RunContext

RECENT = 5
"""Messages that belong to the memory query, with less weight."""
_READ = 4000
"""Characters that are enough to detect a script."""
_TRADITIONAL = ("hant", "tw", "hk", "mo")


def with_context(context: RunContext, turn_input: TurnInput) -> TurnInput:
    """Adds the conversation, the tasks and memory hits."""
    asked = "\n".join(item.text for item in turn_input.inputs)
    if turn_input.task is not None:
        asked = turn_input.task.prompt
    budgets = context.settings.budgets
    said = context.reader.conversation(budgets.conversation_messages)
    conversation = context.window.of(said, budgets)
    user, memory = "", list[Hit]()
    try:
        user = user_block(context.reader.long_term(), budgets.memory_tokens // 2)
        if asked.strip():
            recent = [message.text for message in conversation[-RECENT:]]
            left = budgets.memory_tokens - tokens.count(user)
            memory = context.reader.recall(asked, recent, budgets.memory_hits, left)
    except Exception as error:
        if shortage_of(error):
            raise
        context.log.write("error", "memory_not_searched", error=repr(error))
    own = turn_input.task.id if turn_input.task else None

    def tasks(scope: str) -> list[TaskLine]:
        return [line for line in context.reader.tasks(scope) if line.id != own]

    return replace(
        turn_input,
        conversation=tuple(conversation),
        user=user,
        memory=tuple(memory),
        tasks=tuple(tasks("all")),
        look=tasks,
    )


def written_in(text: str, locale: str) -> str:
    """The language tag of a text, with the script where it matters: `zh-Hant`."""
    is_chinese = locale.lower().startswith("zh")
    if phrases.language(text, locale) == "en":
        return "en" if is_chinese else locale
    script = terms.script_of(text[:_READ])
    if not is_chinese:
        return f"zh-{script or 'Hans'}"
    is_traditional = any(part in _TRADITIONAL for part in locale.lower().split("-"))
    own = "Hant" if is_traditional else "Hans"
    return locale if script in (None, own) else f"zh-{script}"
