"""Splits texts and queries into search terms.

English: stems without stop words, and parts of identifiers. Chinese (also Japanese and Korean):
characters and pairs, traditional converted to simplified, and longer dictionary words once the
dictionary is loaded. Pure, but for the dictionary.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Container, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

Cutter: TypeAlias = Callable[[str], list[str]]
"""Splits a run of simplified Chinese into dictionary words, including overlapping ones."""

MAX_TERM = 64
"""Longer terms (hashes, data URLs) are cut to this many characters."""
MIN_WORD = 3
"""Characters; shorter dictionary words are skipped: pairs are terms anyway."""
CACHED_WORDS = 8192
LOAD_DELAY_S = 2.0
"""After the first Chinese text, so that its turn is not slowed down."""
_WIDE = r"\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(
    rf"(?P<wide>[{_WIDE}]+)|(?P<dotted>(?<!\w)v?\d+(?:\.\d+)+)"
    # Names with signs: `C#`, `C++`, `.NET`, `node.js`.
    rf"|(?P<sign>(?<![\w+#])[a-z](?:\+\+|#)(?![\w+#])|(?<![\w.])\.net(?!\w)"
    rf"|(?<![\w.])[a-z]+\.js(?![\w.]))|(?P<word>[^\W{_WIDE}]+)"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_ELISION = re.compile(r"(?<=\w)['’](?:s|m|re|ve|ll|d|t)\b", re.IGNORECASE)
_ENGLISH = re.compile(r"[a-z]+")
_WIDE_CHARACTER = re.compile(rf"[{_WIDE}]")


_COMMON = json.loads(Path(__file__).with_name("stop_words.json").read_text("utf-8"))


def stop_words(use: Literal["search", "file names", "summaries"]) -> frozenset[str]:
    return frozenset(" ".join(_COMMON[use]).split())


STOP_WORDS = stop_words("search")
STOP_CHARACTERS = frozenset("的了是在和与及于之为也都就而有被这那吗呢吧么嘛啊呀我你他她它")
_ASKING = re.compile(
    "为什么|什么时候|什么|哪里|哪儿|哪个|哪些|哪种|哪一|多少|几个|何时|何地|为何|如何|怎么样|怎么|怎样"
    "|请问|是否|是不是|有没有|我们|你们|他们"
)


class LocatedTerm(NamedTuple):
    start: int
    end: int
    text: str


def has_cjk(text: str) -> bool:
    return _WIDE_CHARACTER.search(text) is not None


def folded(text: str) -> str:
    """The text in lower case and simplified Chinese, without accents; of the same length."""
    return text.translate(_Folding())


def script_of(text: str) -> Literal["Hans", "Hant"] | None:
    """Simplified or traditional Chinese, by characters that only one has; None: undecided."""
    simplified, traditional = _scripts()
    more = sum((char in traditional) - (char in simplified) for char in text)
    return None if more == 0 else "Hant" if more > 0 else "Hans"


@functools.cache
def _scripts() -> tuple[frozenset[str], frozenset[str]]:
    lines = _variants()
    traditional = {char for line in lines for char in line[1:]}
    return frozenset(line[0] for line in lines) - traditional, frozenset(traditional)


def _variants() -> list[str]:
    """Simplified characters, each followed by its traditional ones."""
    return Path(__file__).with_name("simplified.txt").read_text("utf-8").split()


def terms(text: str, cut: Cutter | None = None) -> list[str]:
    """The terms of a text, in order, with duplicates."""
    return [term for _, _, term in _pieces(text, cut)]


def has_only(text: str, wanted: Container[str]) -> bool:
    return all(term in wanted for _, _, term in _pieces(text, None))


def located(text: str, cut: Cutter | None = None) -> list[LocatedTerm]:
    return list(itertools.starmap(LocatedTerm, _pieces(text, cut)))


def _pieces(text: str, cut: Cutter | None) -> Iterator[tuple[int, int, str]]:
    """Plain tuples, as there are millions."""
    plain = _ELISION.sub(lambda match: " " * len(match[0]), text)
    for run in _RUN.finditer(folded(plain)):
        start, end = run.span()
        if run.lastgroup == "wide":
            yield from _wide(run[0], start, cut)
        elif run.lastgroup == "dotted":
            number = run[0].removeprefix("v")
            yield start, end, number[:MAX_TERM]
            yield from ((start, end, part[:MAX_TERM]) for part in number.split("."))
        elif run.lastgroup == "sign":
            yield start, end, run[0]
            parts = run[0].split(".") if "." in run[0] else []
            yield from ((start, end, word) for part in parts for word in _word(part))
        else:
            # Very long words bypass the cache.
            terms_of = _word if end - start <= MAX_TERM else _word.__wrapped__
            for word in terms_of(plain[start:end]):
                yield start, end, word


def occurrences(text: str, wanted: Collection[str]) -> list[LocatedTerm]:
    """The occurrences of query terms in a text, in order; does not use the dictionary."""
    plain = folded(text)
    places = [
        LocatedTerm(at, at + len(term), term)
        for term in wanted
        if has_cjk(term)
        for at in (places.start() for places in re.finditer(f"(?={re.escape(term)})", plain))
    ]
    if any(not has_cjk(term) for term in wanted):
        narrow = _WIDE_CHARACTER.sub(" ", text)
        places += [term for term in located(narrow) if term.text in wanted]
    return sorted(places)


def _wide(run: str, start: int, cut: Cutter | None) -> Iterator[tuple[int, int, str]]:
    """Characters and pairs, without question words; then dictionary words."""
    at = 0
    for gap in [*_ASKING.finditer(run), None]:
        end = gap.start() if gap else len(run)
        for i in range(at, end):
            if run[i] not in STOP_CHARACTERS:
                yield start + i, start + i + 1, run[i]
            if i + 1 < end:
                yield start + i, start + i + 2, run[i : i + 2]
        at = gap.end() if gap else end
    at = 0
    for word in cut(run) if cut and len(run) >= MIN_WORD else ():
        place = run.find(word, at)
        if place < 0:  # a long word is listed after the short ones inside it
            place = run.rfind(word, 0, at + len(word))
        at = max(at, place)
        if place >= 0 and len(word) >= MIN_WORD and not _ASKING.search(word):
            yield start + place, start + place + len(word), word


@functools.lru_cache(CACHED_WORDS)
def _word(written: str) -> tuple[str, ...]:
    """The stem of a word; of an identifier also the stems of its parts."""
    lower = folded(written)
    parts = _PART.findall(written)
    if len(parts) <= 1 or (written.isalpha() and written.isupper()):  # CAFÉ is one word
        bare = lower.strip("_")
        return (stem(bare[:MAX_TERM]),) if bare and bare not in STOP_WORDS else ()
    words = (folded(part) for part in parts)
    known = (stem(word[:MAX_TERM]) for word in words if word not in STOP_WORDS)
    return (lower[:MAX_TERM], *known)


def stem(word: str) -> str:
    """The stem by the Porter2 stemmer; words that are not English are unchanged."""
    return _stemmer().stemWord(word) if _ENGLISH.fullmatch(word) else word


@functools.cache
def _stemmer() -> Any:
    # Its cache, disabled here, is not thread-safe; that of `_word` is.
    return import_module("Stemmer").Stemmer("english", 0)


@functools.cache
class _Folding(dict[int, str]):
    """Character → its folded form; 1:1, so that positions are unchanged."""

    def __init__(self) -> None:
        for line in _variants():
            self.update({ord(traditional): line[0] for traditional in line[1:]})

    def __missing__(self, code: int) -> str:
        character = chr(code)
        pieces = unicodedata.normalize("NFKD", character)
        first = pieces[0] if pieces else character
        marks = all(unicodedata.combining(mark) for mark in pieces[1:])
        base = (first if marks else character).lower()
        # NFKD splits Hangul, and some letters become longer in lower case: keep these.
        self[code] = base if len(base) == 1 and not has_cjk(character) else character
        return self[code]


# ---- the dictionary


class ChineseDictionary:
    """Loads the dictionary of Chinese words. Thread-safe."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self.cut: Cutter | None = None
        self._is_wanted = False

    @property
    def state(self) -> Literal["ready", "loading", "not loaded"]:
        waiting = "loading" if self._is_wanted else "not loaded"
        return "ready" if self.cut is not None else waiting

    def load(self) -> Cutter:
        """Load it now. rjieba takes 0.15 s and 33 MB, jieba 1 s and 84 MB."""
        with self._loading:
            if self.cut is None:
                tokenizer = _tokenizer()
                self.cut = lambda run: list(tokenizer.cut_for_search(run))
            return self.cut

    def load_soon(self) -> None:
        with self._loading:
            if self.cut is not None or self._is_wanted:
                return
            timer = threading.Timer(LOAD_DELAY_S, self.load)
            timer.name, timer.daemon = "words", True
            timer.start()
            self._is_wanted = True


def _tokenizer() -> Any:
    """rjieba, or where that is not installed jieba, with the same dictionary."""
    try:
        return import_module("rjieba")
    except ImportError:
        jieba = import_module("jieba").Tokenizer()
        # Else it caches a copy in /tmp, where any user may replace it.
        jieba.FREQ, jieba.total = jieba.gen_pfdict(jieba.get_dict_file())
        jieba.initialized = True
        return jieba
