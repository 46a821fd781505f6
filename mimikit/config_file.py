"""`config.toml` read anew and changed, as text: what its owner wrote around a change stays.

A secret stands in none of its tables: a table names the file of `secrets/` that holds it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from mimikit import config
from mimikit.config import Settings
from mimikit.engine_settings import NAME_PATTERN
from mimikit.errors import BadInput, BadSettings, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.writer_lock import held

ConfigValue: TypeAlias = str | float | bool | Sequence[str] | Mapping[str, float]
Table: TypeAlias = Any
"""What tomlkit calls one: it tells its types only where it is used."""
CHANNELS = ("notify", "channels")
_MOST_BYTES, _MOST_SECRET_BYTES = 2**20, 4096
_EXPECTED = f"{paths.CONFIG}: expected settings that can be added to, got others"


def text_of(files: Files) -> str:
    """The settings as they were written; nothing where there are none.

    Raises:
        BadSettings: they are no text.
        UnsafeFile: they are no plain file, or one without end.
    """
    try:
        return (files.read(paths.CONFIG, most=_MOST_BYTES) or b"").decode()
    except UnicodeDecodeError as error:
        raise BadSettings(f"{paths.CONFIG}: {error}") from None


def settings_of(files: Files) -> Settings:
    """The settings as they stand there now. Raises as `text_of`, and BadSettings of each key."""
    return config.parsed(text_of(files), Path(paths.CONFIG))


def rewrite(files: Files, change: Callable[[str], str]) -> str:
    """Replace the settings by what `change` makes of them as they are now; gives that.

    Page, terminal and consumer change them so, one at a time: none undoes what another wrote.
    Crash: the old settings or the new.

    Raises:
        BadSettings: they are no text; and whatever `change` raises: nothing is written.
        StorageError: the disk refuses, or another keeps the lock.
    """
    with held(files, paths.CONFIG_LOCK):
        text = text_of(files)
        made = change(text)
        if made != text or not files.exists(paths.CONFIG):
            files.write(paths.CONFIG, made.encode())
        return made


def with_table(text: str, keys: Sequence[str], facts: Mapping[str, ConfigValue | None]) -> str:
    """Set keys of the table that `keys` lead to, which is made where there is none.

    A key whose value is None is taken away, what else stands there stays.

    Raises:
        BadSettings: the text is no settings.
        BadInput: what comes of it is none.
    """

    def change(document: Table) -> None:
        table = table_at(document, keys)
        for key, value in facts.items():
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value

    return changed(text, change)


def without_table(text: str, keys: Sequence[str]) -> str:
    """Remove the table that `keys` lead to. Raises as `with_table`."""
    return changed(text, lambda document: drop_table(document, keys))


def with_channel(text: str, name: str, url_file: str, events: Sequence[str] | None) -> str:
    """Add a channel of notifications, or change it; `events` None: those it has are for it.

    Raises as `with_table`.
    """
    facts: dict[str, ConfigValue] = {"url_file": url_file}
    return with_table(
        text, (*CHANNELS, name), facts if events is None else facts | {"events": [*events]}
    )


def secret_of(files: Files, name: str) -> str:
    """What a file of `secrets/` holds; empty where there is none, or none that can be read."""
    try:
        data = files.read(f"{paths.SECRETS}/{name}", most=_MOST_SECRET_BYTES) or b""
        return data.decode().strip()
    except (UnsafeFile, UnicodeDecodeError):
        return ""


def forget_secret(files: Files, name: str) -> None:
    """Remove a file of `secrets/`, unless the settings name it still.

    Raises:
        BadSettings: they can not be read.
    """
    if name not in _words(loaded(text_of(files))):
        files.remove(f"{paths.SECRETS}/{name}")


def checked_name(name: str, *, taken: Collection[str] = ()) -> str:
    """`name`, which a table may have, and with it the file of its secret.

    Raises:
        BadInput: it is none.
    """
    if re.fullmatch(NAME_PATTERN, name) is None or name in taken:
        said = f"expected a {'free ' if taken else ''}name of lower-case letters, digits, - and _"
        raise BadInput(
            f"{said}, at most 32, that begins with a letter; got {name[:40]!r}",
            field="name",
            code="bad_name",
        )
    return name


def checked_secret(given: str) -> str:
    """A key or secret as it may be kept.

    Raises:
        BadInput: it is none.
    """
    key = given.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        said = "expected a key of visible ASCII characters in one line, got something else"
        raise BadInput(said, field="key", code="bad_key")
    return key


# ---- the document


def changed(text: str, change: Callable[[Table], None]) -> str:
    """The text with a change made to its document. Raises as `with_table`."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    loaded(text)
    try:
        document = tomlkit.parse(text)
        change(document)
        new = tomlkit.dumps(document)
    except (TOMLKitError, RecursionError, TypeError, AttributeError) as error:
        raise BadSettings(f"{_EXPECTED}: {error}") from None
    try:
        config.parsed(new, Path(paths.CONFIG))
    except BadSettings as error:
        raise BadInput(str(error)) from None
    return new


def table_at(document: Table, keys: Sequence[str]) -> Table:
    """The table that `keys` lead to; of those made here, only the last has a line of its own."""
    import tomlkit

    table = document
    for depth, key in enumerate(keys, 1):
        if key not in table:
            table[key] = tomlkit.table(is_super_table=depth < len(keys))
        table = table[key]
    return table


def drop_table(document: Table, keys: Sequence[str]) -> None:
    """Remove a table, and the one around it where it was the last."""
    *outer, around, name = keys
    table = document
    for key in outer:
        table = table.get(key, {})
    tables = table.get(around, {})
    tables.pop(name, None)
    if not tables:
        table.pop(around, None)


def loaded(text: str) -> dict[str, object]:
    """Raises BadSettings: the text is no settings."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSettings(f"{_EXPECTED}: {error}") from None


def _words(value: object) -> set[str]:
    """Each text that stands in a table, however deep."""
    if isinstance(value, dict):
        return {word for one in cast("dict[str, object]", value).values() for word in _words(one)}
    return {value} if isinstance(value, str) else set()
