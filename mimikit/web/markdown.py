"""Markdown to HTML that is safe to put into the page.

Three steps, the sanitiser last: markdown-it (raw HTML stays text), Pygments for code, nh3 with an
allow-list. Pictures become links: loading one would tell its server what was said here.
"""

from __future__ import annotations

import functools
import hashlib
import html
import io
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from mimikit.views.base import CUT

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererProtocol
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_CHARACTERS = 200_000
_CACHE_BYTES = 4 * 2**20
_HIGHLIGHT_CHARACTERS = 20_000
_HIGHLIGHT_S = 0.1
# The parser's time grows with these; brackets and addresses are worst: 50,000 take it a second.
_MANY_COSTLY = 4_000
_MANY_MARKS = 40_000
_MANY_CELLS = 20_000
_SCHEMES = ("http", "https", "mailto")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#.-]{1,30}")
_SCHEME = re.compile(r"(?<![a-z0-9.+-])https?$", re.IGNORECASE)
_ALIGN = re.compile(r"text-align:(left|right|center)")

# Those whose code agents write; a closed list keeps memory small and slow lexers out.
_LANGUAGES = """
bash c c++ cpp cs csharp css diff dockerfile go html http ini java javascript js json jsx kotlin lua
make makefile md php py python python3 r rb ruby rs rust scss sh shell sql swift toml ts tsx
typescript vue xml yaml yml zsh
"""
_TAGS = """
a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead
tr ul
"""
_LEXERS = frozenset(_LANGUAGES.split())
_ATTRIBUTES = {
    "a": {"href", "title"},
    "li": {"data-task"},
    "ol": {"start"},
    "pre": {"data-lang"},
    "span": {"class"},
    "td": {"align"},
    "th": {"align"},
}
_TASK = re.compile(r"\[([ xX])\][ \u00a0]+")
_MATH = re.compile(
    r"\$\$[^$]+\$\$"
    r"|\$(?=[^\s$])[^$`\n]*(?<=[^\s$`])\$(?![0-9A-Za-z])"  # `$5 and $10`, `$HOME/$USER` are none
    r"|\\\((?:(?!\\[()]).)+\\\)"
    r"|\\\[(?:(?!\\[\[\]]).)+\\\]",
    re.DOTALL,
)
"""As models write it: it stays text. Each way ends where the next begins, so time is linear."""
_MATH_ENDS = {"$$": "$$", "\\[": "\\]"}
_MOST_MATH_LINES = 60


class Markdown:
    """Renders texts, and keeps what was rendered last."""

    def __init__(self, cache_bytes: int = _CACHE_BYTES) -> None:
        self._limit = cache_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, str] = OrderedDict()
        self._size = 0
        self._making: dict[bytes, threading.Lock] = {}
        """The texts that are being rendered: who asks for the same one meanwhile waits for it."""

    def html(self, text: str) -> str:
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        try:
            with making:
                return self._known(key) or self._keep(key, render(text))
        finally:
            with self._lock:
                self._making.pop(key, None)

    def _known(self, key: bytes) -> str | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: bytes, made: str) -> str:
        with self._lock:
            self._size += len(made) - len(self._kept.pop(key, ""))
            self._kept[key] = made
            while self._size > self._limit and self._kept:
                _, old = self._kept.popitem(last=False)
                self._size -= len(old)
        return made


def render(text: str) -> str:
    """Render one text, without a cache."""
    import nh3

    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + CUT
    as_it_is = f"<pre><code>{html.escape(text)}</code></pre>"
    return nh3.clean(
        as_it_is if _is_hard(text) else _parser().render(text),
        tags=set(_TAGS.split()),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes=set(_SCHEMES),
        url_relative="deny",
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def block_tokens(text: str) -> list[Token]:
    """The blocks of a text, not looked into."""
    tokens: list[Token] = []
    parser = _parser()
    parser.block.parse(text, parser, {}, tokens)
    return tokens


def _is_hard(text: str) -> bool:
    """Whether parsing would take so long that the text is better shown as it is."""
    costly = text.count("[") + text.count("://") + text.lower().count("mailto:")
    if costly > _MANY_COSTLY or text.count("|") > _MANY_CELLS:
        return True
    return costly + sum(map(text.count, "*_~`<")) > _MANY_MARKS


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": True})
    parser.enable(["table", "strikethrough", "linkify"])
    if parser.linkify is not None:
        # `name.py` and `a.sh` are files here, not hosts: link only what has a scheme or `www.`
        linkify: Any = parser.linkify
        linkify.set({"fuzzy_link": False, "fuzzy_email": False})
        # Of these none becomes a link below, and to look for `//` takes minutes where there are
        # thousands.
        for prefix in ("//", "ftp:"):
            linkify.add(prefix, None)
    parser.validateLink = _is_link
    parser.core.ruler.push("mimikit", _adjust)
    parser.block.ruler.before(
        "blockquote",
        "math",
        _math_block,
        {"alt": ["paragraph", "reference", "blockquote", "list"]},
    )
    parser.inline.ruler.before("escape", "math", _math)
    parser.inline.ruler.at("linkify", _address)
    parser.add_render_rule("math", _render_math)
    parser.add_render_rule("link_host", _render_host)
    parser.add_render_rule("fence", _render_fence)
    return parser


def _is_link(url: str) -> bool:
    return url.strip().lower().startswith(("http://", "https://", "mailto:"))


def _address(state: StateInline, silent: bool) -> bool:
    """An address in a line, as markdown-it knows it.

    Its own rule reads the whole line before each `://` once more: thousands take it a minute.
    """
    if state.linkLevel or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.src, max(state.pos - len("https"), 0), state.pos)
    if scheme is None or not state.pending.endswith(scheme[0]):
        return False
    linkify: Any = state.md.linkify
    found = linkify.match_at_start(state.src[scheme.start() :])
    address: str = found.url.rstrip("*") if found else ""  # such a mark belongs to what is before
    href = state.md.normalizeLink(address)
    if not state.md.validateLink(href):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[0])]
        state.push("link_open", "a", 1).attrs = {"href": href}
        state.push("text", "", 0).content = state.md.normalizeLinkText(address)
        state.push("link_close", "a", -1)
    state.pos += len(address) - len(scheme[0])
    return True


def _adjust(state: StateCore) -> None:
    """Say alignment without a style, tick tasks, make pictures links, show where links lead."""
    _mark_tasks(state.tokens)
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style is not None and (found := _ALIGN.fullmatch(str(style))):
            token.attrs["align"] = found[1]
        if token.children:
            token.children = list(_with_hosts(_without_pictures(token.children)))


def _mark_tasks(tokens: Sequence[Token]) -> None:
    """An entry that begins with `[ ]` or `[x]` says so itself; the page draws the box."""
    for item, text in zip(tokens, tokens[2:], strict=False):
        if item.type != "list_item_open" or text.type != "inline" or not text.children:
            continue
        first = text.children[0]
        if first.type == "text" and (box := _TASK.match(first.content)):
            item.attrs["data-task"] = "open" if box[1] == " " else "done"
            first.content = first.content[box.end() :]


def _math(state: StateInline, silent: bool) -> bool:
    """A formula in a line: its signs mark nothing up, and no backslash of it is lost."""
    found = _MATH.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        is_block = found[0][:2] in _MATH_ENDS
        state.push("math" if is_block else "text", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula over lines of its own: none of them begins a list or a heading."""
    if state.is_code_block(start):
        return False
    opening = _line(state, start)[:2]
    close = _MATH_ENDS.get(opening)
    for number in range(start, min(end, start + _MOST_MATH_LINES) if close else start):
        line = _line(state, number)
        ends = close is not None and line[2 if number == start else 0 :].endswith(close)
        if number > start and not ends and (not line or line.startswith(opening)):
            return False  # a paragraph ends, or the next one begins: none is looked over twice
        if ends and not silent:
            text = state.getLines(start, number + 1, state.blkIndent, False).strip()
            state.push("paragraph_open", "p", 1).map = [start, number + 1]
            inline = state.push("inline", "", 0)
            inline.content, inline.map, inline.children = text, [start, number + 1], []
            state.push("paragraph_close", "p", -1)
            state.line = number + 1
        if ends:
            return True
    return False


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _without_pictures(tokens: Iterable[Token]) -> Iterator[Token]:
    """Each picture as a link to it; inside another link as its text."""
    from markdown_it.token import Token

    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type != "image":
            yield token
            continue
        address = str(token.attrs.get("src", ""))
        text = Token("text", "", 0, content=token.content or address)
        if depth:
            yield text
        else:
            yield Token("link_open", "a", 1, attrs={"href": address})
            yield text
            yield Token("link_close", "a", -1)


def _with_hosts(tokens: Iterable[Token]) -> Iterator[Token]:
    """After each link whose text does not show it: the host it leads to."""
    from markdown_it.token import Token

    address, text = "", ""
    for token in tokens:
        yield token
        if token.type == "link_open":
            address, text = str(token.attrs.get("href", "")), ""
        elif token.type == "link_close":
            if host := hidden_host(address, text):
                yield Token("link_host", "", 0, content=host)
            address = ""
        elif address:
            text += token.content


def hidden_host(address: str, text: str) -> str | None:
    """The host a link leads to, unless its text shows that very host; None too for broken ones."""
    parts = _split(address)
    if parts is None:
        return None
    if parts.scheme == "mailto":
        target = parts.path.lower()
        return None if text.strip().lower().removeprefix("mailto:") == target else target
    shown = text.strip()
    seen = _split(shown if "://" in shown else f"//{shown}")
    plain = seen is not None and seen.hostname == parts.hostname and "@" not in parts.netloc
    return None if plain else parts.hostname


def _split(address: str) -> Any:
    try:
        parts = urlsplit(address)
        _ = parts.hostname
    except ValueError:
        return None
    return parts


def _render_math(
    renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    return f'<span class="math">{html.escape(tokens[index].content)}</span>'


def _render_host(
    renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    return f' <span class="host">({html.escape(tokens[index].content)})</span>'


def _render_fence(
    renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    words = tokens[index].info.split()
    language = words[0] if words and _LANGUAGE.fullmatch(words[0]) else ""
    code = _highlight(tokens[index].content, language.lower())
    label = f' data-lang="{html.escape(language)}"' if language else ""
    return f"<pre{label}><code>{code}</code></pre>\n"


def _highlight(code: str, language: str) -> str:
    """Code with Pygments' classes; plain where it is long, its language unknown, or lexing slow."""
    if language not in _LEXERS or len(code) > _HIGHLIGHT_CHARACTERS:
        return html.escape(code)
    from pygments import lexers
    from pygments.formatters.html import HtmlFormatter

    # Pygments' types say nothing of its options.
    lexer = cast("Any", lexers).get_lexer_by_name(language, stripnl=False)
    deadline = time.monotonic() + _HIGHLIGHT_S
    tokens: list[tuple[Any, str]] = []
    for token in lexer.get_tokens(code):
        tokens.append(token)
        if time.monotonic() > deadline:
            return html.escape(code)
    out = io.StringIO()
    cast("Any", HtmlFormatter(nowrap=True)).format(tokens, out)
    return out.getvalue()
