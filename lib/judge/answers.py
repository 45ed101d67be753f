"""What the attempts say to the intents of one part: a valid reply, a gap with its class, or withdrawn.

A pure function of intents, attempts, texts and judge. Keys are made anew from today's prompt,
schema, model and parameters, so another prompt finds no answers here, and the former one finds its own.

`write` keeps them as `answers/<set>`, which ledger, training, routing and release read. That folder is not
finished from the first call on that may change it (`store.remember`), nor once intents, documents or queries changed.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lib import contracts, processes
from lib.judge import pairs, store
from lib.judge.pairs import Pair, Pairs
from lib.judge.prompt import Judge

VALID = contracts.VALID
FINAL = frozenset({"rejected", "too long"})  # asking the same again in this pass is of no use
UNCOUNTED = frozenset({"quota", "unavailable"})  # nobody was asked: no call of the budget
WITHDRAWN, UNASKED = "withdrawn", "budget stop"
# every class an attempt can end in; a gap has one of those after the first two
CLASSES = (
    *VALID, "contract violation", "not JSON", "truncated", "refusal", "content filter", "empty", "rate limited", "quota",
    "unavailable", "server error", "timeout", "connection", "too long", "rejected",
)  # fmt: skip

_FROM_REPLY = ("score", "query_evaluable", "prompt_sha256", "model")


class Call(NamedTuple):
    """What is kept of an attempt: the fields of the reply only where it is valid."""

    version: str
    in_pass: int
    number: int
    status: str
    row: dict | None


class Turn(NamedTuple):
    """What a pair is owed next: the pass and the number of the call in it, both from 1, and the calls left in the pass."""

    in_pass: int
    number: int
    left: int


class _Files:
    """The calls of some attempts files by key; a file is read again where it changed."""

    def __init__(self):
        self._stamps: dict[Path, tuple[int, int]] = {}  # size and time of change
        self._calls: dict[Path, dict[str, list[Call]]] = {}
        self._homes: dict[str, tuple[Path, ...]] = {}

    def read(self, sources: list[Path]) -> "_Files":
        for source in sources:
            stamp = (source.stat().st_size, source.stat().st_mtime_ns)
            if self._stamps.get(source) != stamp:
                self._calls[source] = _calls(source)
                for key in self._calls[source]:
                    homes = self._homes.get(key, ())
                    self._homes[key] = homes if source in homes else (*homes, source)
                self._stamps[source] = stamp
        return self

    def of(self, key: str) -> list[Call]:
        homes = self._homes.get(key, ())
        found = [call for home in homes for call in self._calls[home].get(key, ())]
        return sorted(found, key=lambda call: (call.in_pass, call.number)) if len(homes) > 1 else found


_shared: dict[Path, _Files] = {}  # by folder, of the sets whose files are all searched


def _calls(source: Path) -> dict[str, list[Call]]:
    found = defaultdict(list)
    for row in store.read(source):
        for field in ("version", "status", "prompt_sha256", "model"):
            row[field] = sys.intern(row[field])
        kept = {field: row[field] for field in _FROM_REPLY} if row["status"] in VALID else None
        found[row["key"]].append(Call(row["version"], row["pass"], row["attempt"], row["status"], kept))
    return found


class History:
    """The calls that may answer the intents of one part."""

    def __init__(self, sets: list[_Files]):
        self._sets = sets

    def of(self, key: str) -> list[Call]:
        """The calls under a key: of the oldest set first, then by pass and number."""
        return [call for files in self._sets for call in files.of(key)]


def history(run: str | Path, part: str, version: str) -> History:
    """The calls for a part in the sets that may answer intents of this version.

    Of a set that was only ever asked under today's partition of the queries, the part's own file is read, and kept
    as long as the result. Of any other set all files are searched, and held once a process: about 0.6 kB a call.
    """
    found = []
    for name in store.sets_up_to(version):
        sources = store.sources(run, name, part)
        alone = sources in ([], [store.path(run, name, part)])
        found.append((_Files() if alone else _shared.setdefault(Path(run, "attempts", name).resolve(), _Files())).read(sources))
    return History(found)


def reply(calls: list[Call]) -> Call | None:
    """The first valid reply of the newest version that has one, or None.

    So a pair of v1 keeps its own reply when a probe of the same pair is judged after it.
    """
    valid = [call for call in calls if call.row is not None]
    return next((call for call in valid if call.version == valid[-1].version), None)


def due(calls: list[Call], version: str, passes: int, budget: int) -> Turn | None:
    """The turn that a pair is owed next; None where it is answered or spent.

    The budget is per version and pass: a later pass asks again what the one before left as a gap. Calls that
    nobody answered for want of a service or of credit do not count.
    """
    if reply(calls):
        return None
    for in_pass in range(1, passes + 1):
        made = [call.status for call in calls if (call.version, call.in_pass) == (version, in_pass)]
        counted = [status for status in made if status not in UNCOUNTED]
        if len(counted) < budget and FINAL.isdisjoint(counted[-1:]):
            return Turn(in_pass, len(made) + 1, budget - len(counted))
    return None


def _answer(intent: dict, pair: Pair, calls: list[Call]) -> dict:
    found = reply(calls)
    if intent["withdrawn"]:
        answer, found = WITHDRAWN, None
    elif found:
        answer = found.status
    else:
        answer = calls[-1].status if calls else UNASKED
    said = found.row if found else dict.fromkeys(_FROM_REPLY)
    return intent | {"key": pair.key, "task_id": pair.task, "answer": answer} | said


def answers(run: str | Path, intents_set: str, part: str, render: Pairs) -> pa.Table:
    """One row an LLM intent (contract `answers`), in the order of the intents.

    `answer` is ok, unevaluable, withdrawn, or the class of the gap: that of the last call, `budget stop`
    where there was none. score, query_evaluable, prompt_sha256 and model are null without a valid reply.
    """
    rows = pairs.intents(run, intents_set, part)
    calls = history(run, part, store.SETS[intents_set])
    rendered = render.render(part, rows)
    found = [_answer(intent, pair, calls.of(pair.key)) for intent, pair in zip(rows.to_pylist(), rendered, strict=True)]
    return contracts.table("answers", found)


def folder(run: str | Path, intents_set: str) -> Path:
    """Where the answers to a set are kept."""
    return Path(run) / "answers" / intents_set


def finished(run: str | Path) -> list[str]:
    """The sets whose answers are there, oldest first."""
    return [name for name in store.SETS if (folder(run, name) / "manifest.json").exists()]


def write(run: str | Path, intents_set: str, by: Judge) -> int:
    """Make the folder `answers/<set>` of what the attempts say today and give its rows; the same answers give the same bytes."""
    out, render = folder(run, intents_set), Pairs(run, by)
    with processes.lock(Path(run)):
        (out / "manifest.json").unlink(missing_ok=True)
        names = pairs.parts(run, intents_set)
        lines = [contracts.write("answers", answers(run, intents_set, name, render), out / f"{name}.parquet") for name in names]
        for old in out.glob("part-*"):
            if old.stem not in names:
                old.unlink()
        contracts.finish(out, lines, [Path(run) / "intents" / intents_set, Path(run) / "documents", Path(run) / "queries"])
    return sum(line["rows"] for line in lines)


def read(run: str | Path, intents_set: str, columns: list[str] | None = None) -> Iterator[tuple[str, pa.Table]]:
    """Each part of the finished `answers/<set>`: its name and its rows."""
    for line in contracts.parts(folder(run, intents_set)):
        yield Path(line["part"]).stem, contracts.read_part("answers", folder(run, intents_set) / line["part"], columns)
