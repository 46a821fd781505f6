"""Markdown to safe HTML: markdown-it, Pygments for code, and nh3 as the sanitiser.

Raw HTML stays text. Images become links, as loading one would send data to its server.
"""

from __future__ import annotations

import functools
import html
import io
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from mimikit.views.base import CUT

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererProtocol
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.rules_inline.state_inline import Scanned
    from markdown_it.token import Token

MAX_CHARACTERS = 200_000
_CACHED_CHARACTERS = 50_000
_HIGHLIGHT_CHARACTERS = 20_000
_HIGHLIGHT_S = 0.1
# The parser's time grows with these, most with brackets and addresses: 50,000 take a second.
_MANY_COSTLY = 4_000
_MANY_MARKS = 40_000
_MANY_CELLS = 20_000
_SCHEMES = ("http", "https", "mailto")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#.-]{1,30}")
_ALIGN = re.compile(r"text-align:(left|right|center)")
# `$…$` about as Pandoc reads it; `$A`, `${B}` and prices are none.
_MATH = re.compile(
    r"\$\$[^`]{1,2000}?\$\$"
    r"|\$(?!\s)[^$`\n]{1,500}(?<!\s)\$(?![A-Za-z0-9{(])"
    r"|\\\([^`]{1,2000}?\\\)|\\\[[^`]{1,2000}?\\\]"
)
_CHECK_BOX = re.compile(r"\[([ xX])\](?=\s)")
# Not 々, 〆 and 〇: they are letters.
_CJK_STOP = re.compile(
    "[\u3000-\u3004\u3008-\u3020\u3030\u303d\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’…—]"
)
# Thai, Lao, Burmese, Khmer: no spaces between words either.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_WITH_DIRECTION = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "ul", "td", "th"}

# A closed list keeps memory small and excludes slow lexers.
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
    "li": {"class"},
    "ol": {"start"},
    "pre": {"data-lang"},
    "span": {"class"},
    "td": {"align"},
    "th": {"align"},
    "*": {"dir"},
}


def render_cached(text: str) -> str:
    return _cached(text) if len(text) <= _CACHED_CHARACTERS else render(text)


def render(text: str) -> str:
    import nh3

    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + CUT
    plain_html = f"<pre><code>{html.escape(text)}</code></pre>"
    return nh3.clean(
        plain_html if _is_slow(text) else _parser().render(text),
        tags=set(_TAGS.split()),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes=set(_SCHEMES),
        url_relative="deny",
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


_cached = functools.lru_cache(maxsize=100)(render)


def _is_slow(text: str) -> bool:
    costly = text.count("[") + text.count("://") + text.lower().count("mailto:")
    if costly > _MANY_COSTLY or text.count("|") > _MANY_CELLS:
        return True
    return costly + sum(map(text.count, ("*", "_", "~", "`", "<", "$", "\\"))) > _MANY_MARKS


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import emphasis, strikethrough

    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "breaks": True})
    parser.enable(["table", "strikethrough", "linkify"])
    if parser.linkify is not None:
        # Only with a scheme or `www.`: `name.py` and `a.sh` are files, not hosts.
        linkify: Any = parser.linkify
        linkify.set({"fuzzy_link": False, "fuzzy_email": False})
        # Not links anyway, and a text with thousands of `//` would take minutes.
        for prefix in ("//", "ftp:"):
            linkify.add(prefix, None)
        linkify.add("http:", {"validate": _address_length})
    parser.validateLink = _is_link
    parser.inline.ruler.before("escape", "math", _keep_math)
    parser.inline.ruler.at("emphasis", _with_cjk_delimiters(emphasis.tokenize))
    parser.inline.ruler.at("strikethrough", _with_cjk_delimiters(strikethrough.tokenize))
    parser.core.ruler.push("mimikit", _adjust)
    parser.add_render_rule("link_host", _render_host)
    parser.add_render_rule("fence", _render_fence)
    return parser


def _is_link(url: str) -> bool:
    return url.strip().lower().startswith(("http://", "https://", "mailto:"))


def _address_length(linkify: Any, text: str, start: int) -> int:
    """How long the address is whose scheme ends at `start`: CJK punctuation ends it."""
    length: int = linkify._validate_http(text, start)
    if stop := _CJK_STOP.search(text, start, start + length):
        return linkify._validate_http(text[start : stop.start()], 0)
    return length


def _keep_math(state: StateInline, silent: bool) -> bool:
    """A formula stays as it was written: no emphasis in it, no backslash lost."""
    formula = _MATH.match(state.src, state.pos, state.posMax)
    if formula is None:
        return False
    state.pos = formula.end()
    if not silent:
        for number, line in enumerate(formula[0].split("\n")):
            if number:
                state.push("softbreak", "br", 0)
            state.push("text", "", 0).content = line
    return True


def _with_cjk_delimiters(rule: Callable[[StateInline, bool], bool]) -> Any:
    def tokenize(state: StateInline, silent: bool) -> bool:
        scan: Any = functools.partial(_scan_delimiters, state)
        state.scanDelims = scan
        return rule(state, silent)

    return tokenize


def _scan_delimiters(state: StateInline, start: int, can_split_word: bool) -> Scanned:
    """CommonMark's rule with its CJK amendment: a `**` that counts has no space around it there."""
    plain = type(state).scanDelims(state, start, can_split_word)
    end = start + plain.length
    before = state.src[start - 1] if start else " "
    after = state.src[end] if end < state.posMax else " "
    if not can_split_word or not (_is_unspaced(before) or _is_unspaced(after)):
        return plain
    left = not after.isspace() and (_is_word(after) or not _is_word(before) or _is_unspaced(before))
    right = not before.isspace() and (
        _is_word(before) or not _is_word(after) or _is_unspaced(after)
    )
    return plain._replace(can_open=left, can_close=right)


def _is_unspaced(character: str) -> bool:
    """Whether it is of a script without spaces between words, or that script's punctuation."""
    if unicodedata.east_asian_width(character) in "WFH":
        return unicodedata.category(character) != "So"  # no emoji
    return _UNSPACED.match(character) is not None


def _is_word(character: str) -> bool:
    """Neither a space nor punctuation of a script with spaces."""
    is_mark = unicodedata.category(character)[0] in "PS"
    return not character.isspace() and (_is_unspaced(character) or not is_mark)


def _adjust(state: StateCore) -> None:
    """Replace alignment styles, draw check boxes, turn images into links, show links' hosts."""
    _draw_check_boxes(state.tokens)
    _mark_direction(state.tokens)
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style is not None and (align := _ALIGN.fullmatch(str(style))):
            token.attrs["align"] = align[1]
        if token.children:
            token.children = list(_with_hosts(_images_as_links(token.children)))


def _draw_check_boxes(tokens: list[Token]) -> None:
    for item, _, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type != "list_item_open" or not inline.children:
            continue
        first = inline.children[0]
        if box := _CHECK_BOX.match(first.content):
            first.content = ("☐" if box[1] == " " else "☑") + first.content[box.end() :]
            item.attrs["class"] = "check"


def _mark_direction(tokens: list[Token]) -> None:
    """Each paragraph goes as its first letter does; a list as its first item."""
    depth = 0
    for token in tokens:
        if token.tag in ("ol", "ul"):
            depth += token.nesting
        if token.nesting == 1 and token.tag in _WITH_DIRECTION and (depth == 0 or token.tag != "p"):
            token.attrs["dir"] = "auto"


def _images_as_links(tokens: Iterable[Token]) -> Iterator[Token]:
    """Replace each image by a link to it, or by its text inside another link."""
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
    """Append its host to each link whose text does not show it."""
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
    """The host of a link, unless its text shows it; None for a malformed address."""
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
    """Code with Pygments' classes; plain for long code, unknown languages and slow lexers."""
    if language not in _LEXERS or len(code) > _HIGHLIGHT_CHARACTERS:
        return html.escape(code)
    from pygments import lexers
    from pygments.formatters.html import HtmlFormatter

    # Pygments' types lack its options.
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
