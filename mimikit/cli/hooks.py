"""`mimikit hooks`: what other programs may call, and by which secret."""

from __future__ import annotations

import http.client
import json
import secrets
import sys
from collections.abc import Iterator
from datetime import datetime

import click

from mimikit import config_file
from mimikit.cli import client, terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_frame, pass_state_and_json
from mimikit.cli.options import WordOption, notify_option
from mimikit.config import Settings, local_host
from mimikit.conversation.hook_proof import LEAST_SECRET, SENT_ID, proof_headers
from mimikit.errors import BadInput, NotFound
from mimikit.hook_settings import HookSettings
from mimikit.protocol import ids, paths
from mimikit.protocol.deliveries import Delivery
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.runtime import PageAddress
from mimikit.state import ReadOnlyState
from mimikit.views.base import View

_SECRET_BYTES = 24
_READ_BYTES = 4096
_TRY_S = 10.0
_PROFILES = ("standard", "specialist", "deferred", "reminder")


class HookView(View):
    """One webhook; its secret is shown nowhere."""

    name: str
    kind: str
    signature: str | None
    does: str
    prompt: str | None
    profile: str
    max_bytes: int
    per_minute: int
    path: str
    has_secret: bool
    deliveries: int
    """Of those that are still kept."""
    last_at: datetime | None


class HookList(View):
    hooks: list[HookView]


@click.group(cls=PlainGroup)
def hooks() -> None:
    """Webhooks: what other programs may call, each with a secret of its own."""


@hooks.command()
@click.argument("name")
@click.option(
    "--hmac",
    "signature",
    type=WordOption(["generic", "github"]),
    help="Calls are signed: as GitHub does, or with the time. Without it they send a token.",
)
@click.option(
    "--does",
    type=WordOption(["input", "task", "event"]),
    default="event",
    help="A call is a message to the assistant, a task, or only an event for --when-hook.",
)
@click.option(
    "--prompt", metavar="TEXT", help="What is said or done; {body} names the file it came with."
)
@click.option("--command", metavar="LINE", help="A task's shell line; the body is a file.")
@click.option("--profile", type=WordOption(_PROFILES), help="Who carries the task out.")
@click.option("--title", metavar="TEXT", help="What the task is called.")
@notify_option
@click.option("--max-bytes", type=int, metavar="N", help="The longest body that is taken.")
@click.option("--per-minute", type=int, metavar="N", help="So many calls are taken in a minute.")
@click.option("--secret-stdin", is_flag=True, help="Read the secret from standard input.")
@pass_frame
def add(
    frame: CliContext,
    name: str,
    signature: str | None,
    does: str,
    prompt: str | None,
    command: str | None,
    secret_stdin: bool,
    **more: str | int | None,
) -> None:
    """Set up the webhook NAME, with a new secret, which is shown once."""
    state = frame.open_as_keeper(create=True)
    config_file.checked_name(name)
    if command is not None:
        if prompt is not None or more["profile"] is not None:
            raise click.UsageError("expected --command or --prompt and --profile, got both")
        does, prompt, more["profile"] = "task", command, "command"
    facts: dict[str, str | int] = {"secret_file": f"hook-{name}"}
    facts |= {"kind": "hmac", "signature": signature} if signature else {"kind": "token"}
    facts |= {"does": does} | ({"prompt": prompt} if prompt is not None else {})
    facts |= {key: value for key, value in more.items() if value is not None}
    table = dict.fromkeys(HookSettings.model_fields) | facts

    def changed(text: str) -> str:
        return config_file.with_table(text, ("hooks", name), table)

    changed(config_file.text_of(state.files))  # or a reason why it can not be
    secret = _given_secret() if secret_stdin else secrets.token_urlsafe(_SECRET_BYTES)
    # The secret first: a webhook without one lets nobody in, one without settings does not exist.
    state.files.write(f"{paths.SECRETS}/hook-{name}", f"{secret}\n".encode())
    config_file.rewrite(state.files, changed)
    hook = HookSettings.model_validate(facts)
    terminal.out(f"Set up {name}: {_what(hook)}.")
    if not secret_stdin:
        terminal.out(f"Secret, shown only now: {secret}")
    for line in call_lines(name, hook, _base(state.files, state.settings)):
        terminal.out(line)


@hooks.command("list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List the webhooks that are set up, and when each was called last."""
    last: dict[str, list[datetime]] = {}
    for folder in (paths.HOOKS_DONE, paths.HOOKS_NEW):
        for one in state.files.load_all(folder, Delivery):
            last.setdefault(one.hook, []).append(one.created_at)
    found = [
        HookView(
            name=name,
            kind=hook.kind,
            signature=hook.signature if hook.kind == "hmac" else None,
            does=hook.does,
            prompt=hook.prompt,
            profile=hook.profile,
            max_bytes=hook.max_bytes,
            per_minute=hook.per_minute,
            path=f"/hooks/{name}",
            has_secret=state.files.exists(f"{paths.SECRETS}/{hook.secret_file}"),
            deliveries=len(last.get(name, ())),
            last_at=max(last.get(name, ()), default=None),
        )
        for name, hook in state.settings.hooks.items()
    ]
    now = state.clock.now()
    rows = [
        (
            terminal.one_line(it.name),
            it.signature or it.kind,
            _what(state.settings.hooks[it.name]),
            terminal.ago(it.last_at, now) if it.last_at else "never",
            "" if it.has_secret else terminal.coloured("no secret: nobody is let in", "failed"),
        )
        for it in found
    ]
    empty = "No webhook is set up. `mimikit hooks add NAME` makes one."
    lines = terminal.table(("NAME", "PROOF", "A CALL IS", "LAST", ""), rows, empty)
    terminal.show(HookList(hooks=found), lines, as_json=as_json)


@hooks.command()
@click.argument("name")
@pass_frame
def remove(frame: CliContext, name: str) -> None:
    """Forget the webhook NAME and its secret; what came by it stays."""
    state = frame.open_as_keeper()
    client.set_up(state.settings.hooks, "a webhook", name)
    config_file.rewrite(state.files, lambda text: config_file.without_table(text, ("hooks", name)))
    config_file.forget_secret(state.files, f"hook-{name}")
    terminal.out(f"Removed {name}.")


@hooks.command()
@click.argument("name")
@click.option("--body", default='{"test": true}', metavar="TEXT", help="What is sent.")
@pass_frame
def test(frame: CliContext, name: str, body: str) -> None:
    """Call the webhook NAME as a sender would, by the page that runs here."""
    state = frame.open_as_keeper()
    hook = client.set_up(state.settings.hooks, "a webhook", name)
    secret = config_file.secret_of(state.files, hook.secret_file)
    if len(secret) < LEAST_SECRET:
        said = f"expected a secret of at least {LEAST_SECRET} characters"
        raise BadInput(f"{said} in secrets/{hook.secret_file}, got none; `mimikit hooks add` again")
    pages = [
        page
        for page in state.files.load_all(paths.PAGES, PageAddress)
        # Another program may listen by now where one was that has ended.
        if ids.is_alive(page.pid, page.process_started, page.boot_id)
    ]
    if not pages:
        raise NotFound("expected a page that runs, found none; `mimikit up` starts it")
    now, sent = state.clock.now(), body.encode(errors="replace")
    headers = proof_headers(hook, secret, sent, now) | {SENT_ID: new_id("test", now)}
    page = max(pages, key=lambda it: it.started_at)
    connection = http.client.HTTPConnection(local_host(page.host), page.port, timeout=_TRY_S)
    try:
        connection.request("POST", f"/hooks/{name}", sent, headers)
        answer = connection.getresponse()
        told = json.loads(answer.read(_READ_BYTES * 4))
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotFound(f"expected the page at port {page.port} to answer, got {error}") from None
    finally:
        connection.close()
    if answer.status not in (200, 202):
        raise BadInput(f"it was refused with {answer.status}: {told['error']['message']}")
    before = " (it came before)" if told["repeated"] else ""
    terminal.out(f"Taken as {told['id']}{before}: {_what(hook)}.")


def call_lines(name: str, hook: HookSettings, base: str) -> Iterator[str]:
    """How it is called, for a shell; the secret stands in $SECRET."""
    url = f"{base}/hooks/{name}"
    if hook.kind == "token":
        yield f"curl -H \"Authorization: Bearer $SECRET\" -d 'hello' {url}"
    elif hook.signature == "github":
        yield f"GitHub: payload URL {url}, content type application/json, this secret."
    else:
        yield "t=$(date +%s); body='hello'"
        yield (
            'v1=$(printf \'%s.%s\' "$t" "$body" | openssl dgst -sha256 -hmac "$SECRET"'
            " | sed 's/.* //')"
        )
        yield f'curl -H "X-Mimikit-Signature: t=$t,v1=$v1" --data-binary "$body" {url}'


def _base(files: Files, settings: Settings) -> str:
    pages = files.load_all(paths.PAGES, PageAddress)
    port = max(pages, key=lambda it: it.started_at).port if pages else settings.web.port
    return f"http://{local_host(settings.web.host)}:{port}"


def _what(hook: HookSettings) -> str:
    words = {"input": "a message to the assistant", "event": "an event, for --when-hook"}
    if hook.does in words:
        return words[hook.does]
    kinds = {"command": "a command", "reminder": "told to you"}
    return kinds.get(hook.profile, "a task")


def _given_secret() -> str:
    secret = config_file.checked_secret(sys.stdin.read(_READ_BYTES))
    if len(secret) < LEAST_SECRET:
        raise BadInput(
            f"expected a secret of at least {LEAST_SECRET} characters, got {len(secret)}",
            field="secret",
        )
    return secret
