"""The group of all commands, which imports a command only when it is used.

`mimikit --help` reads this table and nothing else. Errors of every command end here, as one line.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mimikit.cli.frame import Frame, PlainGroup, unexpected
from mimikit.errors import BadInput, MimikitError

Sections = Mapping[str, Mapping[str, tuple[str, str]]]
"""Heading → command → the module of `mimikit.cli` that has it, and what it does."""

INTERRUPTED = 130


class LazyGroup(PlainGroup):
    """Commands by name; each is the object of its name in its module."""

    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        """`sections` is the table of commands, as the help shows it."""
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._modules = {name: at for part in sections.values() for name, (at, _) in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the help."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self._modules:
            return None
        module = importlib.import_module(f"mimikit.cli.{self._modules[cmd_name]}")
        return getattr(module, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands under their headings."""
        width = max(map(len, self._modules))
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{width}}", text) for name, (_, text) in commands.items()]
                )

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and end with 0 (done), 1 (failed) or 2 (wrongly called); never with a traceback."""
        frame = Frame()
        settings: dict[str, Any] = {"obj": frame, "color": False if _is_plain() else None}
        try:
            code: object = super().main(
                args,
                prog_name or "mimikit",
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **settings,
                **extra,
            )
        except click.Abort:
            code = INTERRUPTED
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.ClickException as error:
            code = 2
            _say(_usage_line(error))
        except MimikitError as error:
            code = 2 if isinstance(error, BadInput) else 1
            _say(str(error))
        except Exception as error:  # noqa: BLE001 - the last resort: one line, the rest in the log
            code = 1
            _say(unexpected(frame, error))
        finally:
            frame.close()
        sys.exit(code if isinstance(code, int) else 0)


def _is_plain() -> bool:
    """Whether colours are not wanted, wherever the output goes."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _say(line: str) -> None:
    click.echo(f"mimikit: {' '.join(line.split())}", err=True)


def _usage_line(error: click.ClickException) -> str:
    """What click complains of, as one line that also says where the right way stands."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return error.format_message()
    path = context.command_path
    where = path.partition(" ")[2]
    return f"{where + ': ' if where else ''}{_complaint(error, context)}; `{path} --help` shows how"


def _complaint(error: click.ClickException, context: click.Context) -> str:
    match error:
        case click.MissingParameter(param=click.Parameter() as param):
            return f"expected {_name(param, context)}, got nothing"
        case click.BadParameter(param=click.Parameter() as param, message=message):
            return f"{_name(param, context)}: {message}"
        case click.NoSuchOption(option_name=name, possibilities=near):
            hint = f"; did you mean {near[0]}?" if near else ""
            return f"expected an option it has, got {name}{hint}"
        case _:
            message = error.format_message().rstrip(".")
            return message[:1].lower() + message[1:]


def _name(param: click.Parameter, context: click.Context) -> str:
    """A parameter as the user knows it: `--port`, or PROMPT."""
    return param.opts[-1] if isinstance(param, click.Option) else param.make_metavar(context)
