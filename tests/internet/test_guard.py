"""No request of a run reaches an address that is not of the open web, whatever it is called."""

from __future__ import annotations

import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mimikit.engines.base import CancelToken
from mimikit.errors import BadInput, MimikitError, Refused
from mimikit.internet import connection
from mimikit.internet.addresses import UrlRules, address_refusal, checked_url
from mimikit.internet.connection import CallLimits, Network, WebError
from mimikit.internet.pages import PageSource
from mimikit.internet.robots import may_read
from tests.support.fake_web import OTHER_PUBLIC, PUBLIC, PUBLIC_6, Answer, FakeWeb, answer, redirect

SITE = "site.example.com"


@pytest.fixture
def web() -> Iterator[FakeWeb]:
    with FakeWeb() as made:
        yield made


def source(web: FakeWeb, rules: UrlRules | None = None, most: int = 100_000) -> PageSource:
    return PageSource(rules or UrlRules(), web.network, timeout_s=20, most_bytes=most, redirects=3)


def fetch(web: FakeWeb, url: str, rules: UrlRules | None = None, robots: bool = False) -> bytes:
    limits = CallLimits(time.monotonic() + 20, 100_000)
    return source(web, rules).fetch(url, limits, asks_robots=robots).body


# ---- addresses

PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255"),  # noqa: S104
    *("172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "169.254.0.1"),
    *("100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.192", "192.0.2.1"),
    *(
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.250",
    ),
    *("240.0.0.1", "255.255.255.255", "168.63.129.16", "192.88.99.1"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:93.184.216.34", "::127.0.0.1", "::7f00:1"),
    *("64:ff9b::7f00:1", "64:ff9b::5db8:d822", "64:ff9b:1::1", "2002:7f00:1::", "2001::1"),
    *("fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1"),
    *("2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1", "not an address", ""),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_of_the_open_web_is_refused(address: str) -> None:
    assert address_refusal(address)


@pytest.mark.parametrize(
    "address", [PUBLIC, OTHER_PUBLIC, PUBLIC_6, "1.1.1.1", "2a00:1450:4001::1"]
)
def test_one_that_is_may_be_reached(address: str) -> None:
    assert address_refusal(address) is None


TRICKS = [
    *("http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/"),
    *("http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/"),
    *("http://0/", "http://0.0.0.0/", "http://00000177.0.0.1/", "http://127.0.0.1./"),
    *("http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    *("http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/"),
    *("http://[fe80::1]/", "http://[fe80::1%25lo]/", "http://[fd00::1]/", "http://[0:0:0:0:0:0:0:1]/"),
    *("http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/"),
    *("http://10.0.0.1/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.100.100.200/"),
    *("http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://a.localhost/"),
    *("http://printer.local/", "http://nas.lan/", "http://metadata.google.internal/", "http://wiki/"),
    *("http://127.0.0.1@93.184.216.34/", "http://93.184.216.34@127.0.0.1/"),
    *("http://user:pw@site.example.com/", "http://site.example.com:pw@127.0.0.1/", "http://@127.0.0.1/"),
    *("http://site.example.com\\@127.0.0.1/", "http://127.0.0.1\\.site.example.com/"),
    *("http://127.0.0.1#@site.example.com/", "http://127.0.0.1?@site.example.com/"),
    *("http://site.example.com:22/", "http://site.example.com:8787/", "http://site.example.com:0/"),
    *("http://①②⑦.⓪.⓪.①/", "http://ⓛocalhost/", "http://127。0。0。1/", "http://localho\u017ft/"),
    *("http://loop.example.com/", "http://mixed.example.com/", "http://loop6.example.com/"),
    *("http://mapped.example.com/", "http://scoped.example.com/"),
    "http://xn--lcalhost-54a.example.com/",
    *("ftp://site.example.com/", "file:///etc/passwd", "gopher://127.0.0.1/", "dict://127.0.0.1/"),
    *("unix:///run/docker.sock", "data:text/plain,hi", "javascript:alert(1)"),
    *("//127.0.0.1/", "127.0.0.1"),
    *("http:///etc/passwd", "http://", "http://?", "https:127.0.0.1", "http:/127.0.0.1/", ""),
    *("http://127.0.0.1\t/", "http://site.example.com/\r\nHost: 127.0.0.1", "http://exa mple.com/"),
    *("http://site.example.com:80:80/", "http://[::1", "http://[site.example.com]/", "http://%31%32%37.0.0.1/"),
]  # fmt: skip
NAMES: dict[str, list[str]] = {
    "loop.example.com": ["127.0.0.1"],
    "mixed.example.com": [PUBLIC, "127.0.0.1"],
    "loop6.example.com": ["::1"],
    "mapped.example.com": ["::ffff:127.0.0.1"],
    "scoped.example.com": ["fe80::1%lo"],
    "xn--lcalhost-54a.example.com": ["127.0.0.1"],
}


@pytest.mark.parametrize("way", ["directly", "by a redirect", "by two redirects", "by robots"])
def test_no_trick_reaches_a_private_address(web: FakeWeb, way: str) -> None:
    """A canary stands where each trick wants to go, and each connection is looked at."""
    web.names |= NAMES
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.setblocking(False)
        for url in TRICKS:
            web.connected.clear()
            web.asked.clear()
            at = url if way == "directly" else f"http://{SITE}/"
            raw = url.encode().decode("latin-1")
            pages: dict[str, dict[str, Answer]] = {
                "directly": {},
                "by a redirect": {f"{SITE}/": redirect(raw)},
                "by two redirects": {f"{SITE}/": redirect("/on", 307), f"{SITE}/on": redirect(raw)},
                "by robots": {f"{SITE}/robots.txt": redirect(raw), f"{SITE}/": answer("a page")},
            }
            web.pages = pages[way]
            with pytest.raises(MimikitError) if way != "by robots" else _either():
                fetch(web, at, robots=way == "by robots")
            assert {address for address, _ in web.connected} <= {PUBLIC}, url
            # Nothing is asked but what stands on the site itself, however it is written.
            assert all(asked.startswith(f"{SITE}/") for asked in web.asked), url
        with pytest.raises(BlockingIOError):
            canary.accept()


class _either:  # noqa: N801 - reads as what it stands for
    """With or without an error of ours."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, MimikitError)


def test_a_name_that_turns_private_between_two_looks_is_connected_as_it_was_judged(
    web: FakeWeb,
) -> None:
    """Rebinding: of each connection the name is resolved once, and that address is connected."""
    looks = iter([[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
    web.names[SITE] = lambda: next(looks)
    web.pages |= {f"{SITE}/": redirect("/again"), f"{SITE}/again": answer("secret")}
    with pytest.raises(Refused, match="private"):
        fetch(web, f"http://{SITE}/")
    assert web.resolved == [SITE, SITE]
    assert web.connected == [(PUBLIC, 80)]


def test_of_several_addresses_one_that_does_not_answer_is_passed_over(web: FakeWeb) -> None:
    web.names[SITE] = ["1.1.1.1", PUBLIC]
    web.pages[f"{SITE}/"] = answer("here")
    assert fetch(web, f"http://{SITE}/") == b"here"
    assert web.connected == [("1.1.1.1", 80), (PUBLIC, 80)]


def test_the_systems_own_way_lets_go_of_an_address_of_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Refused, match="of this machine"):
            connection.connect("127.0.0.1", port, 5)


def test_numbers_are_read_as_the_system_reads_them() -> None:
    assert connection.resolve("2130706433") == ["127.0.0.1"]
    assert connection.resolve("0x7f.1") == ["127.0.0.1"]


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"])
def test_a_proxy_of_the_environment_is_no_way_around(
    web: FakeWeb, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        web.pages[f"{SITE}/"] = answer("here")
        assert fetch(web, f"http://{SITE}/") == b"here"
        with pytest.raises(Refused):
            fetch(web, "http://127.0.0.1/")
        with pytest.raises(BlockingIOError):
            proxy.accept()


# ---- what the settings say


def test_only_the_sites_that_are_allowed_are_read(web: FakeWeb) -> None:
    rules = UrlRules(allow=("example.com",), deny=("bad.example.com",))
    web.pages |= {
        f"{SITE}/": answer("here"),
        f"{SITE}/away": redirect("http://other.example.org/"),
        f"{SITE}/bad": redirect("http://x.bad.example.com/"),
    }
    assert fetch(web, f"http://{SITE}/", rules) == b"here"
    for path in ("away", "bad"):
        with pytest.raises(Refused, match=r"internet\.(allow|deny)"):
            fetch(web, f"http://{SITE}/{path}", rules)
    with pytest.raises(Refused, match=r"internet\.allow"):
        fetch(web, "http://notexample.com/", rules)
    assert all(asked.startswith(SITE) for asked in web.asked)


def test_a_port_is_read_where_it_is_allowed(web: FakeWeb) -> None:
    web.pages[f"{SITE}:8080/"] = answer("here")
    with pytest.raises(Refused, match=r"internet\.ports"):
        fetch(web, f"http://{SITE}:8080/")
    assert fetch(web, f"http://{SITE}:8080/", UrlRules(ports=(80, 8080))) == b"here"
    assert web.connected == [(PUBLIC, 8080)]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (
            "http://BÜCHER.example.com/ä?q=好#x",
            "http://xn--bcher-kva.example.com/%C3%A4?q=%E5%A5%BD",
        ),
        ("https://site.example.com:443/", "https://site.example.com/"),
        ("  http://site.example.com/a b  ".replace("a b", "a"), "http://site.example.com/a"),
        ("http://93.184.216.34/", "http://93.184.216.34/"),
        (f"http://[{PUBLIC_6}]/", f"http://[{PUBLIC_6}]/"),
    ],
)
def test_an_address_is_asked_for_in_its_plain_form(given: str, asked: str) -> None:
    assert str(checked_url(given, UrlRules())) == asked


def test_too_long_an_address_is_refused() -> None:
    with pytest.raises(BadInput, match="at most 2000"):
        checked_url(f"http://{SITE}/{'x' * 2000}", UrlRules())


# ---- robots.txt, where a search has found the page


def test_a_robots_file_of_many_names_costs_no_more_than_its_length() -> None:
    many = "user-agent: a\n" * 15_000 + "allow: /\n" * 25_000 + "user-agent: *\ndisallow: /x\n"
    tracemalloc.start()
    try:
        assert may_read(many, "/y")
        assert not may_read(many, "/x")
        assert tracemalloc.get_traced_memory()[1] < 20 * len(many)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("robots", "path", "may"),
    [
        ("User-agent: *\nDisallow: /private", "/private/x", False),
        ("User-agent: *\nDisallow: /private", "/public", True),
        ("User-agent: mimikit\nDisallow: /\n\nUser-agent: *\nAllow: /", "/x", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Mimikit/2\nAllow: /", "/x", True),
        ("User-agent: a\nUser-agent: *\nDisallow: /x", "/x", False),
        ("User-agent: *\nDisallow: /x\nAllow: /x/y", "/x/y/z", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: *\nDisallow: /*?session=", "/a?session=1", False),
        ("User-agent: *\nDisallow: /a*b*c$", "/axbxc", False),
        ("User-agent: *\nDisallow:", "/x", True),
        ("User-agent: *\nDisallow: / # all", "/x", False),
        ("\ufeffuser-AGENT : *\r\ndisallow:/x\r\n", "/x", False),
        ("Disallow: /", "/x", True),
        ("nonsense\0\x01", "/x", True),
        ("User-agent: *\nDisallow: /" + "*a" * 900 + "$", "/" + "a" * 1900, False),
    ],
)
def test_a_page_that_a_search_found_is_read_as_robots_has_it(
    web: FakeWeb, robots: str, path: str, may: bool
) -> None:
    web.pages |= {f"{SITE}/robots.txt": answer(robots), f"{SITE}{path}": answer("here")}
    if may:
        assert fetch(web, f"http://{SITE}{path}", robots=True) == b"here"
    else:
        with pytest.raises(Refused, match="robots"):
            fetch(web, f"http://{SITE}{path}", robots=True)
        assert web.asked == [f"{SITE}/robots.txt"]
        assert fetch(web, f"http://{SITE}{path}") == b"here", "who is sent there by hand reads it"


@pytest.mark.parametrize(("status", "may"), [(404, True), (403, True), (500, False), (503, False)])
def test_where_robots_can_not_be_had_it_depends_on_why(
    web: FakeWeb, status: int, may: bool
) -> None:
    web.pages |= {f"{SITE}/robots.txt": answer(status=status), f"{SITE}/": answer("here")}
    if may:
        assert fetch(web, f"http://{SITE}/", robots=True) == b"here"
    else:
        with pytest.raises(Refused, match="robots"):
            fetch(web, f"http://{SITE}/", robots=True)


def test_robots_is_asked_for_once_and_for_each_site_it_leads_to(web: FakeWeb) -> None:
    other = "other.example.org"
    web.pages |= {
        f"{SITE}/": redirect(f"http://{other}/"),
        f"{other}/robots.txt": answer("User-agent: *\nDisallow: /"),
    }
    made, limits = source(web), CallLimits(time.monotonic() + 20, 100_000)
    for _ in range(2):
        with pytest.raises(Refused, match=other):
            made.fetch(f"http://{SITE}/", limits, asks_robots=True)
    robots = [asked for asked in web.asked if asked.endswith("robots.txt")]
    assert sorted(robots) == [f"{other}/robots.txt", f"{SITE}/robots.txt"]
    assert f"{other}/" not in web.asked


def test_the_end_of_one_run_says_nothing_of_a_site(web: FakeWeb) -> None:
    cancel = CancelToken()

    def stop(_client: socket.socket) -> None:
        cancel.cancel("canceled")

    web.pages[f"{SITE}/"] = answer("here")
    web.pages[f"{SITE}/robots.txt"] = stop
    made, until_s = source(web), time.monotonic() + 600
    with pytest.raises(WebError, match="the run is over"):
        made.fetch(f"http://{SITE}/", CallLimits(until_s, 100_000, cancel), asks_robots=True)
    web.pages[f"{SITE}/robots.txt"] = answer(status=404)
    limits = CallLimits(until_s, 100_000)
    assert made.fetch(f"http://{SITE}/", limits, asks_robots=True).body == b"here"


# ---- what comes


def endless(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while True:
        client.sendall(b"x" * 65536)


def endless_head(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        client.sendall(b"x-more: " + b"y" * 8000 + b"\r\n")


def endless_chunks(client: socket.socket) -> None:
    client.sendall(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    while True:
        client.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (endless, "at most 0.1 MB"),
        (endless_chunks, "at most 0.1 MB"),
        (endless_head, "broke off|at most"),
        (answer(b"x" * 100_001), "at most 0.1 MB"),
        (answer(content_length="9" * 30), "at most|broke off"),
        (answer("x", content_length="50"), "broke off"),
        (b"nonsense\r\n\r\n", "broke off"),
        (b"", "broke off"),
        (answer("x", "image/png"), "expected a page, a text or a PDF, got image"),
        (answer("x", "video/mp4; codecs=x"), "got video"),
        (answer("x", "application/zip"), "got application"),
        (answer("no", status=404), "answered 404"),
        (answer("no", status=500), "answered 500"),
        (redirect("/"), "at most 3 redirects"),
        (redirect(""), "at most 3 redirects"),
        (redirect("http://[oh"), "no address|expected the name"),
    ],
    ids=[
        *("endless", "chunks", "head", "too large", "size told", "cut", "nonsense", "nothing"),
        *("png", "mp4", "zip", "404", "500", "circle", "no target", "odd target"),
    ],
)
def test_what_is_no_page_is_told_in_words(web: FakeWeb, page: bytes, said: str) -> None:
    web.pages[f"{SITE}/"] = page
    with pytest.raises(MimikitError, match=said):
        fetch(web, f"http://{SITE}/")


def drip(client: socket.socket) -> None:
    """A byte now and then, for ever: no single wait is long."""
    client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while not threading.Event().wait(0.02):
        client.sendall(b"x")


@pytest.mark.parametrize("page", [drip, lambda _client: threading.Event().wait(20)])
def test_what_comes_too_slowly_ends_at_the_deadline(
    web: FakeWeb, page: Callable[[socket.socket], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline passes as soon as it is asked for: until then all may take its time."""
    asked = threading.Event()

    def answer_slowly(client: socket.socket) -> None:
        asked.set()
        page(client)

    web.pages[f"{SITE}/"] = answer_slowly
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 600 * asked.is_set())
    monkeypatch.setattr(connection, "time", clock)
    limits = CallLimits(time.monotonic() + 600, 100_000)
    with pytest.raises(WebError, match="in time"):
        source(web).fetch(f"http://{SITE}/", limits, asks_robots=False)


def test_a_run_that_is_over_waits_for_nothing(web: FakeWeb) -> None:
    cancel = CancelToken()

    def stop(_client: socket.socket) -> None:
        cancel.cancel("canceled")
        threading.Event().wait(20)

    web.pages[f"{SITE}/"] = stop
    limits = CallLimits(time.monotonic() + 600, 100_000, cancel)
    with pytest.raises(WebError, match="the run is over"):
        source(web).fetch(f"http://{SITE}/", limits, asks_robots=False)


def test_who_resolves_for_long_is_left_behind() -> None:
    event = threading.Event()

    def slow(_name: str) -> list[str]:
        event.wait(30)
        return [PUBLIC]

    limits = CallLimits(time.monotonic() + 0.3, 1000)
    made = PageSource(UrlRules(), Network(slow), timeout_s=20, most_bytes=1000, redirects=3)
    with pytest.raises(WebError):
        made.fetch(f"http://{SITE}/", limits, asks_robots=False)
    event.set()


def test_nothing_of_this_machine_is_told_to_a_site(web: FakeWeb, tmp_path: Path) -> None:
    web.pages |= {f"{SITE}/": answer("here", set_cookie="a=b"), f"{SITE}/2": answer("here")}
    fetch(web, f"http://{SITE}/")
    fetch(web, f"http://{SITE}/2#part")
    for head in web.heads:
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:] if line}
        assert names == {"host", "connection", "user-agent", "accept", "accept-encoding"}
