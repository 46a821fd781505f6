"""Summaries without a mind: the sentences that say most, in their order, with their dates. Pure.

English and Chinese. A sentence is worth what its terms are worth: those that this conversation is
about, said more than once yet not in every sentence; a little more at a beginning, with a number or
a name in it, and in the user's own words.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

SHARE = 0.25
"""Of the text, so much is kept…"""
LEAST_CHARACTERS = 600
"""…at least this…"""
MOST_CHARACTERS = 3_000
"""…and at most this."""
SENTENCE_CHARACTERS = 240
_MOST_SENTENCES = 2_000
_ALIKE = 0.6
"""Two sentences that share so many of their terms say the same."""

_END = re.compile(r"(?<=[。！？；!?…])\s*|(?<=[.;])\s+|\n+")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"^(?:[-*+>#]+|\d{1,3}[.)])\s+")
_COMMENT = re.compile(r"<!--(?:(?!<!--|-->).)*-->")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]+|\d(?:[\d.:/-]*\d)?|[\u3400-\u4dbf\u4e00-\u9fff]+")
_FACT = re.compile(r"\d|`[^`]+`|https?://|[A-Za-z_]+[/.][A-Za-z_]+")
_STOP_WORDS = """
a about all also am an and any are as at be been but by can could did do does done for from get go
had has have he her here hi him his how i if in into is it its just like may me might my no not now
of ok okay on one or our out she should so some sure than thank thanks that the their them then
there these they this those to up us very was we were what when which who will with would yes you
your please hello lot help really much great good fine nice well sorry welcome again sounds let
我们 你们 他们 这个 那个 什么 怎么 一个 没有 可以 就是 还是 不是 但是 因为 所以 如果 已经 然后 谢谢
好的 请问 這個 那個 什麼 怎麼 一個 沒有 還是 不是 因為 謝謝
"""
_STOP = frozenset(_STOP_WORDS.split())
_STOP_CHARACTERS = frozenset("的了是我你他她它们吗呢吧啊在和与就都也很把被这那个個們嗎這")


@dataclass(frozen=True, slots=True)
class DatedText:
    """One text with when and by whom it was said."""

    at: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class _Sentence:
    number: int
    at: str
    role: str
    text: str
    terms: frozenset[str]
    is_first: bool


def summarise_prompt(prompt: str) -> str:
    """The summary of the lines of JSON that stand in a prompt; empty when there are none."""
    return summarise(said_in(prompt))


def said_in(prompt: str) -> list[DatedText]:
    """What a prompt gives to be summarised, in its order."""
    found: list[DatedText] = []
    for line in prompt.split("\n"):
        if not line.startswith('{"at"'):
            continue
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError):
            continue
        fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        at, role, text = fields.get("at"), fields.get("role"), fields.get("text")
        if isinstance(at, str) and isinstance(role, str) and isinstance(text, str):
            found.append(DatedText(at, role, text))
    return found


def summarise(said: Iterable[DatedText]) -> str:
    """A list of the sentences that say most, each with its date, in their order."""
    given = list(said)
    sentences = [s for number, one in enumerate(given) for s in _sentences(number, one)]
    if not sentences:
        return ""
    whole = sum(len(s.text) for s in sentences)
    room = min(max(int(whole * SHARE), LEAST_CHARACTERS), MOST_CHARACTERS)
    chosen: list[tuple[int, _Sentence]] = []
    for place in _by_worth(sentences):
        sentence = sentences[place]
        cost = len(sentence.text) + 20
        if chosen and cost > room:
            continue
        if not any(_says_the_same(sentence, other) for _, other in chosen):
            chosen.append((place, sentence))
            room -= cost
        if room < 40:
            break
    return "\n".join(_line(sentence) for _, sentence in sorted(chosen, key=lambda c: c[0]))


def _sentences(number: int, said: DatedText) -> list[_Sentence]:
    text = _COMMENT.sub(" ", _CODE.sub(" ", said.text))
    found: list[_Sentence] = []
    for raw in _END.split(text):
        sentence = " ".join(_BULLET.sub("", raw.strip()).split())
        terms = _terms(sentence)
        if terms and len(found) < _MOST_SENTENCES:
            cut = len(sentence) > SENTENCE_CHARACTERS
            shown = sentence[: SENTENCE_CHARACTERS - 1].rstrip() + "…" if cut else sentence
            found.append(_Sentence(number, said.at, said.role, shown, terms, not found))
    return found


def _by_worth(sentences: list[_Sentence]) -> list[int]:
    """Their places, the best first."""
    counts = Counter(term for sentence in sentences for term in sentence.terms)
    total = len(sentences)
    # Often said, yet rare: a term of every sentence tells nothing, nor does one said only once.
    worth = {term: math.log1p(n) * math.log1p(total / n) for term, n in counts.items()}

    def score(place: int) -> float:
        sentence = sentences[place]
        terms = sum(worth[term] for term in sentence.terms) / (len(sentence.terms) + 3)
        bonus = 1.0
        bonus += 0.15 * sentence.is_first + 0.25 * bool(_FACT.search(sentence.text))
        bonus += 0.2 * (sentence.role == "user")
        return terms * bonus

    return sorted(range(total), key=lambda place: (-score(place), place))


def _says_the_same(one: _Sentence, other: _Sentence) -> bool:
    """Whether most of their terms are shared, and the numbers of one are those of the other."""
    numbers = [{t for t in s.terms if any(c.isdigit() for c in t)} for s in (one, other)]
    if not (numbers[0] <= numbers[1] or numbers[1] <= numbers[0]):
        return False
    shared = len(one.terms & other.terms)
    return shared >= _ALIKE * min(len(one.terms), len(other.terms))


def _terms(text: str) -> frozenset[str]:
    """Words, numbers, and pairs of Chinese characters."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        if word[0].isascii():
            found.add(word.lower())
        else:
            bare = [c for c in word if c not in _STOP_CHARACTERS]
            found |= {a + b for a, b in itertools.pairwise(bare)}
    return frozenset(found - _STOP)


def _line(sentence: _Sentence) -> str:
    """A bullet with its date; what was summed up before has its own."""
    if sentence.role == "summary":
        has_date = sentence.text.startswith(sentence.at[:10])
        return f"- {sentence.text}" if has_date else f"- {sentence.at[:10]} {sentence.text}"
    return f"- {sentence.at} {sentence.role}: {sentence.text}"
