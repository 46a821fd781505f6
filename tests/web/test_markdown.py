"""Markdown is rendered to HTML without active content."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from mimikit.web import markdown
from mimikit.web.markdown import render

ALLOWED_TAGS = set(markdown._TAGS.split())
ALLOWED_ATTRIBUTES = {
    "href", "title", "start", "data-lang", "class", "align", "dir", "target", "rel",
}  # fmt: skip


class Seen(HTMLParser):
    """The tags and attributes that a browser would parse."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.other: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    def handle_pi(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


SCRIPTS = [
    "<script>alert(1)</script>", "<ScRiPt src=//evil.example></sCrIpT>",
    "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>", "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>", "<video><source onerror=alert(1)>",
    "<object data=javascript:alert(1)>", "<embed src=javascript:alert(1)>",
    "<form action=javascript:alert(1)><button>", "<a href=javascript:alert(1)>x</a>",
    "<base href=//evil.example>", "<link rel=stylesheet href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<style>@import '//evil.example'</style>", "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<!--><img src=x onerror=alert(1)>-->", "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<?xml version='1.0'?><x/>", "<x onclick=alert(1)>x",
    "<p style='background:url(//evil.example)'>x", "<div id=location>", "<a name=body>",
    "<xmp><p title='</xmp><svg/onload=alert(1)>'>", "\u2028<script>alert(1)</script>",
    "<scr\x00ipt>alert(1)</scr\x00ipt>", "<<script>alert(1)//<</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\<script>alert(1)</script>",
]  # fmt: skip
ADDRESSES = [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)",
    "java&#9;script:alert(1)", "&#106;avascript:alert(1)", "javascript&colon;alert(1)",
    "java%0ascript:alert(1)", "\x01javascript:alert(1)", "vbscript:x",
    "data:text/html,<script>alert(1)</script>", "data:image/svg+xml;base64,PHN2Zz4=",
    "blob:http://127.0.0.1/x", "file:///etc/passwd", "//evil.example/x", "/api/logout", "../x",
    "view-source:http://x", "http:javascript:alert(1)", 'https://x" onmouseover="alert(1)',
    "https://x' onmouseover='alert(1)", "https://x><script>alert(1)</script>",
]  # fmt: skip
FRAMES = [
    "{}", "**{}**", "`{}`", "# {}", "> {}", "- {}", "| {} | b |\n|---|---|\n| {} | c |",
    "```html\n{}\n```", "```{}\nx\n```", "    {}", "[{}](https://x.example)",
    "[a](https://x.example '{}')", '[a](https://x.example "{}")', "![{}](https://x.example/x.png)",
    "[a]: https://x.example '{}'\n\n[a]", "<{}>", "~~{}~~",
]  # fmt: skip
LINKS = [
    "[x]({})", "[x](<{}>)", "![x]({})", "<{}>", "[x]: {}\n\n[x]", "![x][y]\n\n[y]: {}", "{}",
    "[![a]({})]({})", "[x]({} 'title')",
]  # fmt: skip
CORPUS = [frame.replace("{}", text) for frame in FRAMES + LINKS for text in SCRIPTS + ADDRESSES]


def check_harmless(html: str) -> Seen:
    seen = Seen(html)
    assert seen.other == []
    for tag, attributes in seen.tags:
        assert tag in ALLOWED_TAGS, html
        assert set(attributes) <= ALLOWED_ATTRIBUTES, html
        if tag == "a":
            assert re.match(r"https?://|mailto:|$", attributes.get("href") or ""), html
            assert attributes["rel"] == "noopener noreferrer"
            assert attributes["target"] == "_blank"
        else:
            assert "href" not in attributes
    return seen


def test_no_text_of_the_corpus_renders_active_html() -> None:
    assert len(CORPUS) > 1000
    for text in CORPUS:
        check_harmless(render(text))


def test_the_sanitiser_alone_is_sufficient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a parser that lets HTML through."""

    class Careless:
        def render(self, text: str) -> str:
            return text

    monkeypatch.setattr(markdown, "_parser", Careless)
    more = ["ftp://x.example", "tel:1", "magnet:?x", "ws://x.example", "sms:1", "/x", "x"]
    for text in SCRIPTS + [f"<a href='{address}'>x</a>" for address in ADDRESSES + more]:
        seen = Seen(render(text))
        for tag, attributes in seen.tags:
            assert tag in ALLOWED_TAGS
            assert set(attributes) <= ALLOWED_ATTRIBUTES
            assert re.match(r"https?://|mailto:|$", attributes.get("href") or ""), text


@pytest.mark.parametrize("text", ["![a](https://evil.example/x.png?q=secret)", "![](http://e.x/y)"])
def test_a_picture_is_a_link_and_is_not_loaded(text: str) -> None:
    seen = check_harmless(render(text))
    assert [tag for tag, _ in seen.tags if tag != "span"] == ["p", "a"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[click](https://evil.example/x)", "click (evil.example)"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (evil.example)"),
        ("https://a.example/path", "https://a.example/path"),
        (
            "<https://bank.example@evil.example/>",
            "https://bank.example@evil.example/ (evil.example)",
        ),
        ("[write](mailto:a@b.example)", "write (a@b.example)"),
        ("<mailto:a@b.example>", "mailto:a@b.example"),
        ("[https://аррӏе.com](https://аррӏе.com)", "https://аррӏе.com (xn--80ak6aa92e.com)"),
        ("[**b**`c`](https://evil.example)", "bc (evil.example)"),
    ],
)
def test_where_a_link_leads_is_shown(text: str, shown: str) -> None:
    assert check_harmless(render(text)).text.strip() == shown


@pytest.mark.parametrize("name", ["foo.py", "a.sh", "README.md", "x@y.io", "main.rs:12"])
def test_a_file_name_is_no_link(name: str) -> None:
    assert render(name) == f'<p dir="auto">{name}</p>\n'


def test_code_has_classes_and_its_language() -> None:
    html = render("```python title=x\ndef f(): return '<b>'\n```")
    assert '<pre data-lang="python"><code>' in html
    assert '<span class="k">def</span>' in html
    assert "&lt;b&gt;" in html
    assert "style" not in html


@pytest.mark.parametrize("language", ["no-such", "", "Python<", "x" * 40])
def test_code_of_an_unknown_language_is_plain(language: str) -> None:
    html = render(f"```{language}\nx = 1 < 2\n```")
    assert "<code>x = 1 &lt; 2\n</code>" in html


@pytest.mark.parametrize("language", sorted(markdown._LEXERS))
def test_every_language_of_the_list_has_a_lexer(language: str) -> None:
    from pygments.lexers import get_lexer_by_name

    assert get_lexer_by_name(language)
    check_harmless(render(f"```{language}\n<a onclick=x> 'y' # z\n```"))


def test_rendering_keeps_the_words() -> None:
    text = "# 标题\n\n1. one\n2. ~~two~~\n\n> quote\n\n---\nline\\\nbreak 😀"
    seen = check_harmless(render(text))
    for word in ("标题", "one", "two", "quote", "line", "break 😀"):
        assert word in seen.text


AS_WRITTEN = {
    "a line break": ("Line A\nLine B", "Line A<br>\nLine B"),
    "Chinese, a stop inside": ("**不变。**源码", "<strong>不变。</strong>源码"),
    "Chinese, brackets inside": ("含**「重点」**内容", "含<strong>「重点」</strong>内容"),
    "Chinese, curly quotes": (
        "说**“好”**，*（注）*后",
        "说<strong>“好”</strong>，<em>（注）</em>后",
    ),
    "Korean": ("**스크립트(script)**라고", "<strong>스크립트(script)</strong>라고"),
    "stars that are none": ("2 * 3 * 4，a ** b", "2 * 3 * 4，a ** b"),
    "words with lines": ("snake_case_x 和 a_b_c", "snake_case_x 和 a_b_c"),
    "a formula in brackets": (r"\(a_1*b*c\) and \[x\]", r"\(a_1*b*c\) and \[x\]"),
    "a formula in dollars": ("设$a_1*b*c$为", "设$a_1*b*c$为"),
    "a formula of many lines": ("$$\na_1*b*c\n$$", "$$<br>\na_1*b*c<br>\n$$"),
    "prices": ("$5 *or* $6", "$5 <em>or</em> $6"),
}


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_text_is_read_as_people_write_it(name: str) -> None:
    text, html = AS_WRITTEN[name]
    assert render(text) == f'<p dir="auto">{html}</p>\n'


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("见https://example.com/guide，详见下文", ["https://example.com/guide"]),
        (
            "（https://a.example/x）、https://b.example。",
            ["https://a.example/x", "https://b.example"],
        ),
        ("“https://a.example/x.”，“http://b.example”", ["https://a.example/x", "http://b.example"]),
        ("https://a.example/人々?q=a,b", ["https://a.example/%E4%BA%BA%E3%80%85?q=a,b"]),
        ("https://a.example/x_(y), then", ["https://a.example/x_(y)"]),
    ],
)
def test_an_address_ends_before_punctuation(text: str, addresses: list[str]) -> None:
    seen = check_harmless(render(text))
    assert [attributes["href"] for tag, attributes in seen.tags if tag == "a"] == addresses


def test_check_boxes_are_drawn() -> None:
    seen = check_harmless(render("- [ ] a\n- [x] **b**\n- [x](https://c.example)\n1. [X] d\n"))
    assert seen.text.split() == ["☐", "a", "☑", "b", "x", "(c.example)", "☑", "d"]
    assert [attributes.get("class") for tag, attributes in seen.tags if tag == "li"] == [
        *("check", "check", None, "check")
    ]


def test_each_paragraph_has_its_own_direction() -> None:
    seen = Seen(render("מה\n\n# a\n\n- מה\n\n  b\n\n> c\n\n| a |\n|--|\n| b |"))
    assert [tag for tag, attributes in seen.tags if attributes.get("dir") == "auto"] == [
        *("p", "h1", "ul", "p", "th", "td")
    ]


def test_a_very_long_text_is_truncated() -> None:
    html = render("word " * 100_000)
    assert len(html) < 210_000
    assert "cut here" in html


HARD = {
    "pictures": "![" * 100_000,
    "links": "[a](b" * 40_000,
    "stars": "*a **b " * 28_000,
    "quotes": ">" * 20_000 + "a",
    "addresses": "https://" * 25_000,
    "addresses of a scheme that is no link": "ftp://a.b/" * 3_900 + "//a.b/" * 20_000,
    "lists": "".join("  " * n + "- a\n" for n in range(300)),
    "table": "|" * 200_000,
    "dollars": "$a b" * 50_000,
    "xml": "```xml\n" + "<!--" * 4000 + "\n```",
}


@pytest.mark.timeout(20)  # a tenth of a second is usual; without the guards some take minutes
@pytest.mark.parametrize("name", HARD)
def test_pathological_texts_render_in_time(name: str) -> None:
    check_harmless(render(HARD[name]))
