"""How well and how fast memory is searched, through the product's own search.

`--squad FILE` writes each distinct passage of a question set (SQuAD's layout) as one memory file
into a fresh state folder and asks every question; a hit at k is the question's own passage among
the first k files. `--locomo FILE` writes each dialogue (LoCoMo layout) as dated messages, asks
the questions of categories 1 to 4 in their own dialogue, and scores the share of the evidence turns
found, and whether any evidence session is among the first ten distinct ones. `--data FOLDER` takes
every JSON file of a folder, by its layout. `--scale N,…` measures speed on N made-up passages, with
rank-bm25 and bm25s on the same terms beside it.

Each prints one JSON line. Units: shares in percent, seconds, milliseconds.
Run: python -m benchmarks.retrieval [--squad FILE] [--locomo FILE] [--data FOLDER] [--scale 6000]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from mimikit.config import BudgetSettings
from mimikit.memory import markdown, terms
from mimikit.memory.search import MemorySearch
from mimikit.memory.tokens import count
from mimikit.protocol.models import Hit, Message
from mimikit.state import State, make_search, open_state

FIRST = 10
_SOME, _MORE = 20, 100
"""Hits asked for: of passages; of turns, whose sessions are counted too."""
_DATE = "%I:%M %p on %d %B, %Y"


@dataclass
class Score:
    """What is counted over the questions of a set."""

    questions: int = 0
    found_at: dict[int, float] = field(default_factory=lambda: {1: 0.0, 5: 0.0, 10: 0.0})
    reciprocal: float = 0.0
    sessions: int = 0
    empty: int = 0
    injected: int = 0
    some_injected: int = 0
    index_s: float = 0.0
    took: list[float] = field(default_factory=list[float])
    recalled: list[float] = field(default_factory=list[float])

    def share(self, number: float) -> float:
        """So many of the questions, in percent."""
        return round(100 * number / max(self.questions, 1), 2)

    def facts(self) -> dict[str, object]:
        """As it is printed."""
        return {
            "n": self.questions,
            **{f"R@{k}": self.share(found) for k, found in self.found_at.items()},
            "MRR@10": round(self.reciprocal / max(self.questions, 1), 4),
            "empty": self.share(self.empty),
            "injected": self.share(self.injected),
            "indexS": round(self.index_s, 2),
            "queryP50Ms": quantile(self.took, 0.5),
            "queryP95Ms": quantile(self.took, 0.95),
            "recallP95Ms": quantile(self.recalled, 0.95),
        }


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile of seconds, in milliseconds."""
    ordered = sorted(values)
    return round(ordered[int(share * (len(ordered) - 1))] * 1000, 2) if ordered else 0.0


def timed(act: Callable[[], Any], into: list[float]) -> Any:
    """What `act` gives; the time it took is kept."""
    begun = time.perf_counter()
    given = act()
    into.append(time.perf_counter() - begun)
    return given


def fresh_state(folder: str) -> State:
    """An empty state folder."""
    root = Path(folder)
    state = root / ".mimikit"
    state.mkdir(mode=0o700)
    (state / "config.toml").write_text('timezone = "UTC"\n')
    return open_state(state, root)


def opened(state: State, score: Score) -> MemorySearch:
    """The search as the consumer has it, with its index up to date."""
    search = make_search(state, stays=True)
    begun = time.perf_counter()
    search.refresh()
    score.index_s += time.perf_counter() - begun
    return search


def injected(search: MemorySearch, question: str, score: Score) -> str:
    """What a turn would be given with this question: within the budget for memory."""
    budgets = BudgetSettings()
    hits: list[Hit] = timed(
        lambda: search.recall(question, limit=budgets.memory_hits), score.recalled
    )
    kept, left = list[str](), budgets.memory_tokens
    for hit in hits:
        left -= count(f"[{hit.source}] {hit.snippet}")
        if left < 0:
            break
        kept.append(hit.snippet)
    return "\n".join(kept)


def flat(said: str) -> str:
    """A text without its breaks, to be compared."""
    return " ".join(said.split())


# ---- passages and questions


def squad(path: Path) -> dict[str, object]:
    """Score a set of passages and questions."""
    groups = [
        group for entry in json.loads(path.read_text())["data"] for group in entry["paragraphs"]
    ]
    numbers: dict[str, int] = {}
    asked: list[tuple[str, int, list[str]]] = []
    for group in groups:
        number = numbers.setdefault(group["context"], len(numbers))
        for question in group["qas"]:
            answers = [answer["text"] for answer in question.get("answers", [])]
            asked.append((question["question"], number, answers))
    score = Score(questions=len(asked))
    with tempfile.TemporaryDirectory() as folder:
        state = fresh_state(folder)
        for passage, number in numbers.items():
            day = date(2024, 1, 1) + timedelta(days=number % 300)
            (state.path / f"memory/{day}-p{number}.md").write_text(passage)
        search = opened(state, score)
        for question, number, answers in asked:
            hits: list[Hit] = timed(lambda q=question: search.find(q, limit=_SOME), score.took)
            count_hit(score, list(dict.fromkeys(_number(hit) for hit in hits)), number)
            given = flat(injected(search, question, score))
            score.injected += any(flat(answer) in given for answer in answers)
    return {"set": path.name, "passages": len(numbers), **score.facts()}


def _number(hit: Hit) -> int:
    found = re.search(r"-p(\d+)\.md$", hit.source)
    return int(found[1]) if found else -1


def count_hit(score: Score, ranked: list[int], wanted: int) -> None:
    """Count at which place the wanted one stands."""
    score.empty += not ranked
    place = ranked.index(wanted) + 1 if wanted in ranked[:FIRST] else 0
    for k in score.found_at:
        score.found_at[k] += 0 < place <= k
    score.reciprocal += 1 / place if place else 0


# ---- dialogues


@dataclass(frozen=True)
class Turn:
    """One thing said in a dialogue."""

    id: str
    session: str
    at: datetime
    speaker: str
    text: str


def turns_of(conversation: dict[str, Any]) -> list[Turn]:
    """Everything said, in order."""
    names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    said: list[Turn] = []
    for name in sorted(names, key=lambda one: int(one.removeprefix("session_"))):
        begun = datetime.strptime(conversation[f"{name}_date_time"], _DATE).replace(tzinfo=UTC)
        for number, turn in enumerate(conversation[name]):
            at = begun + timedelta(seconds=10 * number)
            said.append(Turn(turn["dia_id"], name, at, turn["speaker"], turn["text"]))
    return said


def locomo(path: Path) -> dict[str, object]:
    """Score a set of dialogues."""
    score = Score()
    for dialogue in json.loads(path.read_text()):
        said = turns_of(dialogue["conversation"])
        with tempfile.TemporaryDirectory() as folder:
            state = fresh_state(folder)
            write_dialogue(state, said)
            _ask_dialogue(opened(state, score), said, dialogue["qa"], score)
    facts = score.facts()
    del facts["R@1"], facts["MRR@10"]
    return {
        "set": path.name,
        **facts,
        "sessions@10": score.share(score.sessions),
        "someInjected": score.share(score.some_injected),
    }


def write_dialogue(state: State, said: list[Turn]) -> None:
    """As archiving writes messages: a file for each session, under its day."""
    first = said[0].speaker
    for session in dict.fromkeys(turn.session for turn in said):
        turns = [turn for turn in said if turn.session == session]
        messages = [
            Message(
                id=message_id(turn.id),
                role="user" if turn.speaker == first else "agent",
                text=f"{turn.speaker}: {turn.text}",
                created_at=turn.at,
            )
            for turn in turns
        ]
        day = turns[0].at.date()
        name = f"memory/{day}-{session.replace('_', '-')}.md"
        (state.path / name).write_text(markdown.extended("", day, messages, UTC))


def message_id(turn_id: str) -> str:
    """The id under which a turn is written."""
    return "msg-" + turn_id.replace(":", ".")


def _ask_dialogue(
    search: MemorySearch, said: list[Turn], asked: list[dict[str, Any]], score: Score
) -> None:
    known = {message_id(turn.id): turn for turn in said}
    for one in asked:
        named = re.findall(r"D\d+:\d+", " ".join(one.get("evidence", [])))
        evidence = [id_ for name in named if (id_ := message_id(name)) in known]
        if one["category"] not in (1, 2, 3, 4) or not evidence:
            continue
        score.questions += 1
        question = one["question"]
        hits: list[Hit] = timed(lambda q=question: search.find(q, limit=_MORE), score.took)
        ranked = [hit.message_id for hit in hits]
        score.empty += not ranked
        for k in score.found_at:
            score.found_at[k] += sum(id_ in ranked[:k] for id_ in evidence) / len(evidence)
        sessions = list(dict.fromkeys(known[id_].session for id_ in ranked if id_ in known))
        score.sessions += any(known[id_].session in sessions[:FIRST] for id_ in evidence)
        given = flat(injected(search, question, score))
        inside = [flat(known[id_].text)[:150] in given for id_ in evidence]
        score.injected += all(inside)
        score.some_injected += any(inside)


# ---- speed


def scale(passages: int, questions: int = 200) -> dict[str, object]:
    """Measure the search on made-up days of messages in English and Chinese, and its peers."""
    dice = random.Random(passages)
    score = Score(questions=questions)
    with tempfile.TemporaryDirectory() as folder:
        state = fresh_state(folder)
        lines: list[str] = []
        for number, messages in enumerate(days(passages, dice)):
            day = date(2026, 1, 1) - timedelta(days=number)
            lines += [message.text for message in messages]
            path = state.path / f"memory/{day}-made-up.md"
            path.write_text(markdown.extended("", day, messages, UTC))
        search = opened(state, score)
        asked = [question(dice) for _ in range(questions)]
        for one in asked:
            timed(lambda q=one: search.find(q), score.took)
            timed(lambda q=one: search.recall(q), score.recalled)
        first: list[float] = []
        timed(lambda: make_search(state, words=False).find(asked[0]), first)
        updates = changed_files(state, search, dice)
        took = {name: run(lines, asked) for name, run in PEERS.items()}
    return {
        "passages": passages,
        "indexS": round(score.index_s, 2),
        "queryP50Ms": quantile(score.took, 0.5),
        "queryP95Ms": quantile(score.took, 0.95),
        "recallP95Ms": quantile(score.recalled, 0.95),
        "recallMaxMs": quantile(score.recalled, 1.0),
        "updateP50Ms": quantile(updates, 0.5),
        "firstSearchMs": quantile(first, 1.0),
        **{f"{name}P95Ms": quantile(times, 0.95) for name, times in took.items()},
    }


def changed_files(state: State, search: MemorySearch, dice: random.Random) -> list[float]:
    """A file is changed, then searched for: the time until its new words are found."""
    took: list[float] = []
    files = sorted(state.path.glob("memory/*-made-up.md"))
    for number in range(20):
        path = dice.choice(files)
        path.write_text(path.read_text() + f"\nThe password of door {number} is quuxly{number}.\n")
        time.sleep(0.05)  # the watch is told by a thread of its own
        hits = timed(lambda n=number: search.find(f"quuxly{n}"), took)
        if not hits or f"quuxly{number}" not in hits[0].text:
            raise SystemExit(f"a changed file was not found again: quuxly{number}")
    return took


_COMMON = [
    "the", "project", "deploy", "server", "build", "test", "user", "plan", "note", "call", "file",
    "change", "error", "fix",
]  # fmt: skip
_HAN = "项目部署服务器构建测试用户计划记录电话文件修改错误修复今天明天数据模型会议安排预算报告"


def days(passages: int, dice: random.Random, a_day: int = 50) -> Iterator[list[Message]]:
    """Days of messages with words as common as in language: few often, most hardly ever."""
    for start in range(0, passages, a_day):
        begun = datetime(2026, 1, 1, 8, tzinfo=UTC) - timedelta(days=start // a_day)
        yield [
            Message(
                id=f"msg-{start + n}",
                role="user" if n % 2 else "agent",
                text=sentence(dice),
                created_at=begun + timedelta(minutes=n),
            )
            for n in range(min(a_day, passages - start))
        ]


def sentence(dice: random.Random) -> str:
    """A message, every third one Chinese."""
    if dice.random() < 1 / 3:
        return "".join(dice.choice(_HAN) for _ in range(dice.randint(15, 80)))
    return " ".join(word(dice) for _ in range(dice.randint(5, 40)))


def word(dice: random.Random) -> str:
    """A common word, or a rare one."""
    if dice.random() < 0.4:
        return dice.choice(_COMMON)
    return f"w{int(20_000 ** dice.random())}"


def question(dice: random.Random) -> str:
    """What is asked: a few words of the kind that stand there."""
    if dice.random() < 1 / 3:
        return "".join(dice.choice(_HAN) for _ in range(dice.randint(6, 16))) + "是什么？"
    return " ".join(word(dice) for _ in range(dice.randint(3, 10))) + "?"


def rank_bm25(lines: list[str], asked: list[str]) -> list[float]:
    """The same questions of rank-bm25, on the same terms."""
    from rank_bm25 import BM25Okapi

    peer = BM25Okapi([terms.terms(line) for line in lines], k1=1.2, b=0.75)
    took: list[float] = []
    for one in asked[: max(10, 200_000 // len(lines))]:
        timed(lambda q=one: peer.get_top_n(terms.terms(q), lines, n=FIRST), took)
    return took


def bm25s(lines: list[str], asked: list[str]) -> list[float]:
    """The same questions of bm25s, on the same terms."""
    import bm25s as peer

    index = peer.BM25(k1=1.2, b=0.75)
    index.index([terms.terms(line) for line in lines], show_progress=False)
    took: list[float] = []
    for one in asked:
        timed(lambda q=one: index.retrieve([terms.terms(q)], k=FIRST, show_progress=False), took)
    return took


PEERS = {"rankBm25": rank_bm25, "bm25s": bm25s}


def layout(path: Path) -> Callable[[Path], dict[str, object]]:
    """How a question set is read."""
    return squad if path.read_text().lstrip()[:1] == "{" else locomo


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--squad", type=Path, action="append", default=[])
    parser.add_argument("--locomo", type=Path, action="append", default=[])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--scale", default="")
    args = parser.parse_args()
    sets = [(squad, path) for path in args.squad] + [(locomo, path) for path in args.locomo]
    if args.data:
        sets += [(layout(path), path) for path in sorted(args.data.glob("*.json"))]
    sizes = [int(size) for size in args.scale.split(",") if size]
    if not sets and not sizes:
        parser.error("expected a question set (--squad, --locomo, --data) or --scale")
    for run, path in sets:
        print(json.dumps(run(path)), flush=True)
    for size in sizes:
        print(json.dumps(scale(size)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
