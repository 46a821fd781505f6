"""Base classes of the commands: the folders, the opened state, and one-line errors."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import importlib
import keyword
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mimikit.errors import BadInput, MimikitError

if TYPE_CHECKING:
    from mimikit.protocol.disk import RealDisk
    from mimikit.state import ReadOnlyState, State

_MIN_SIMILARITY = 0.75
GITIGNORE = "# Conversations, results and secrets: none of it belongs into a repository.\n*\n"


@dataclasses.dataclass
class CliContext:
    workspace: Path | None = None
    state: Path | None = None
    _at_end: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def folders(self) -> tuple[Path, Path]:
        from mimikit.state import find_state

        return find_state(self.state, self.workspace)

    def open(self) -> ReadOnlyState:
        """Open the state without quarantining unreadable files; BadInput when there is none."""
        return self.open_writable().read_only()

    def close_at_end(self, disk: RealDisk) -> RealDisk:
        return self._at_end.enter_context(contextlib.closing(disk))

    def close(self) -> None:
        self._at_end.close()

    def open_writable(self, *, create: bool = False) -> State:
        from mimikit.protocol.disk import RealDisk
        from mimikit.state import open_state

        folder, workspace = self.folders()
        is_new = create and not folder.exists()
        refusal = f"{folder} cannot be written; name a folder that can be with `--state FOLDER`"
        try:
            state = open_state(folder, workspace, create=create)
        except OSError:
            raise BadInput(refusal) from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise BadInput(refusal)
        if isinstance(state.files.fs, RealDisk):
            self.close_at_end(state.files.fs)
        if is_new:
            state.files.create(".gitignore", GITIGNORE.encode())
        return state

    def report(self, error: Exception) -> str:
        """Describe an unexpected error in one line, and log its traceback if there is a log."""
        what = f"unexpected {type(error).__name__}: {error}"
        spots = traceback.extract_tb(error.__traceback__)
        where = f"{Path(spots[-1].filename).name}:{spots[-1].lineno}" if spots else "nowhere"
        more = "please report it"
        with contextlib.suppress(Exception):  # the log is optional
            folder, _ = self.folders()
            if folder.is_dir():
                story = "".join(traceback.format_exception(error))[-1900:]
                self.open().log.write("error", "cli_fault", error=what, traceback=story)
                more = f"details in {folder.name}/log.jsonl"
        return f"{what} (at {where}); {more}"


pass_cli: Callable[[Callable[..., Any]], Callable[..., Any]] = click.make_pass_decorator(CliContext)


def pass_cli_and_json(command: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
    return option(pass_cli(command))


def pass_state_and_json(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def opened(cli: CliContext, *args: Any, **kwargs: Any) -> Any:
        return command(cli.open(), *args, **kwargs)

    return pass_cli_and_json(opened)


def place_options(*, hidden: bool = False) -> list[click.Option]:
    """`--workspace` and `--state`, accepted before and after any command."""

    def remember(context: click.Context, option: click.Parameter, value: Path | None) -> None:
        if value is not None:
            setattr(context.ensure_object(CliContext), str(option.name), value)

    def option(name: str, text: str) -> click.Option:
        kind = click.Path(path_type=Path, file_okay=False)
        return click.Option(
            [name], type=kind, metavar="DIR", help=text, hidden=hidden, is_eager=True,
            callback=remember, expose_value=False,
        )  # fmt: skip

    return [
        option("--workspace", "The folder worked in (default: MIMIKIT_WORKSPACE, else here)."),
        option("--state", "The state folder (default: MIMIKIT_STATE, else WORKSPACE/.mimikit)."),
    ]


class LeafCommand(click.Command):
    """A command that accepts `--workspace` and `--state` after its name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *place_options(hidden=True)]


class PlainGroup(click.Group):
    """A group of LeafCommands that suggests similar names for an unknown command."""

    command_class = LeafCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            near = difflib.get_close_matches(args[0], known, 1, _MIN_SIMILARITY)
            path = ctx.command_path
            hint = f"did you mean `{path} {near[0]}`?" if near else f"`{path} --help` lists them"
            raise click.ClickException(f"expected a command, got {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


Sections = Mapping[str, Mapping[str, tuple[str, str]]]
"""Heading → command → its module in `mimikit.cli`, and its help."""


class LazyGroup(PlainGroup):
    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._modules = {name: at for part in sections.values() for name, (at, _) in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            return None
        module = importlib.import_module(f"mimikit.cli.{self._modules[cmd_name]}")
        return getattr(module, cmd_name.replace("-", "_") + "_" * keyword.iskeyword(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._modules))
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{width}}", text) for name, (_, text) in commands.items()]
                )

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run, and exit with 0 (done), 1 (failed) or 2 (usage); never with a traceback."""
        cli = CliContext()
        # None: click decides by whether the output is a terminal.
        is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        settings = {"prog_name": "mimikit", "color": False if is_plain else None} | settings
        try:
            code: object = super().main(*args, **settings, obj=cli, standalone_mode=False)
        except click.Abort:
            code = 130  # the shells' code for Ctrl-C
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.ClickException as error:
            code = 2
            context = error.ctx if isinstance(error, click.UsageError) else None
            _print_error(_usage_line(error, context) if context else error.format_message())
        except MimikitError as error:
            code = 2 if isinstance(error, BadInput) else 1
            _print_error(str(error))
        except Exception as error:  # noqa: BLE001 - one line; the rest is in the log
            is_text = isinstance(error, UnicodeError) or "string_unicode" in str(error)
            code = 2 if is_text else 1
            _print_error(_NOT_UTF8 if is_text else cli.report(error))
        finally:
            cli.close()
        sys.exit(code if isinstance(code, int) else 0)


_NOT_UTF8 = "expected text in UTF-8, got other bytes; check the terminal's encoding (`locale`)"


def _print_error(line: str) -> None:
    from mimikit.cli.terminal import one_line  # only needed for errors

    click.echo(f"mimikit: {one_line(line)}", err=True)


def _usage_line(error: click.ClickException, context: click.Context) -> str:
    match error:
        case click.MissingParameter(param=click.Parameter() as param):
            what = f"expected {_name(param, context)}, got nothing"
        case click.BadParameter(param=click.Parameter() as param, message=message):
            what = f"{_name(param, context)}: {message.rstrip('.')}"
        case click.NoSuchOption(option_name=name, possibilities=near):
            hint = f"; did you mean {near[0]}?" if near else ""
            what = f"expected an option it has, got {name}{hint}"
        case _:
            message = error.format_message().rstrip(".")
            what = message[:1].lower() + message[1:]
    path = context.command_path
    where = path.partition(" ")[2]
    return f"{where + ': ' if where else ''}{what}; `{path} --help` shows how"


def _name(param: click.Parameter, context: click.Context) -> str:
    return param.opts[-1] if isinstance(param, click.Option) else param.make_metavar(context)
