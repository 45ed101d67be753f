"""What the attempts say to the intents of one part: a valid reply, a gap with its class, or withdrawn.

A pure function of intents, attempts, texts and judge. Keys are made anew from today's prompt,
schema, model and parameters, so another prompt finds no answers here, and the former one finds its own.

`write` keeps them as `answers/<set>`, which ledger, training, routing and release read. That folder is not
finished from the first call on that may change it (`store.remember`), nor once intents, documents or queries changed.
"""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib import contracts, processes, sources
from lib.judge import attacks, keyed, pairs, store
from lib.judge.calls import Call, Calls
from lib.judge.pairs import Pairs
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

_MANY = 100_000  # pairs from which processes pay
_FROM_REPLY = ("score", "query_evaluable", "prompt_sha256", "model")


class Turn(NamedTuple):
    """What a pair is owed next: the pass and the number of the call in it, both from 1, and the calls left in the pass."""

    in_pass: int
    number: int
    left: int


_shared: dict[Path, Calls] = {}  # by folder, of the sets whose files are all searched


class History:
    """The calls that may answer the intents of one part."""

    def __init__(self, sets: list[Calls]):
        self._sets = [calls for calls in sets if len(calls)]

    def of(self, key: str) -> list[Call]:
        """The calls under a key: of the oldest set first, then by pass and number."""
        return [call for calls in self._sets for call in calls.of(key)]

    def answered(self, keys: list[str]) -> np.ndarray:
        """bool[keys]: a valid reply is there; a False may be wrong, one in 2^64 times, and wants a look at `of`."""
        told = [calls.answered(pa.array(keys, pa.string())) for calls in self._sets]
        return np.any(told, axis=0) if told else np.zeros(len(keys), bool)


def history(run: str | Path, part: str, version: str) -> History:
    """The calls for a part in the sets that may answer intents of this version.

    Of a set that was only ever asked under today's partition of the queries, the part's own file is read, and kept
    as long as the result. Of any other set all files are searched, and held once a process: 42 bytes a call.
    """
    found = []
    for name in store.sets_up_to(version):
        held = store.sources(run, name, part)
        alone = held in ([], [store.path(run, name, part)])
        found.append((Calls() if alone else _shared.setdefault(Path(run, "attempts", name).resolve(), Calls())).read(held))
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


def _answer(withdrawn: bool, calls: list[Call]) -> tuple[str, dict]:
    found = reply(calls)
    if withdrawn:
        answer, found = WITHDRAWN, None
    elif found:
        answer = found.status
    else:
        answer = calls[-1].status if calls else UNASKED
    return answer, found.row if found else dict.fromkeys(_FROM_REPLY)


def answers(run: str | Path, intents_set: str, part: str, render: Pairs) -> pa.Table:
    """One row an LLM intent (contract `answers`), in the order of the intents.

    `answer` is ok, unevaluable, withdrawn, or the class of the gap: that of the last call, `budget stop`
    where there was none. score, query_evaluable, prompt_sha256 and model are null without a valid reply.
    """
    rows = pairs.intents(run, intents_set, part).combine_chunks()
    calls = history(run, part, store.SETS[intents_set])
    keys = keyed.read(run, intents_set, part, render.by)
    if keys is None:
        keys = [""] * rows.num_rows
        for pair in render.render(part, rows):
            keys[pair.row] = pair.key
        keyed.write(run, intents_set, part, render.by, keys)
    said = {"key": keys, "task_id": render.tasks(part, rows), "answer": [], **{name: [] for name in _FROM_REPLY}}
    for key, withdrawn in zip(keys, rows["withdrawn"].to_pylist(), strict=True):
        answer, told = _answer(withdrawn, calls.of(key))
        said["answer"].append(answer)
        for name in _FROM_REPLY:
            said[name].append(told[name])
    return contracts.table("answers", said | {name: rows[name] for name in contracts.TABLES["answers"].names if name not in said})


def folder(run: str | Path, intents_set: str) -> Path:
    """Where the answers to a set are kept."""
    return Path(run) / "answers" / intents_set


def finished(run: str | Path) -> list[str]:
    """The sets whose answers are there, oldest first; without the canaries, which answer no pair."""
    return [name for name in store.SETS if name not in attacks.SETS and (folder(run, name) / "manifest.json").exists()]


def write(run: str | Path, intents_set: str, by: Judge, workers: int | None = None) -> int:
    """Make the folder `answers/<set>` of what the attempts say today and give its rows; the same answers give the same bytes.

    Each of `workers` processes makes one part at a time; None takes one a core where there are many pairs, and this process where not.
    """
    out = folder(run, intents_set)
    with processes.lock(Path(run)):
        (out / "manifest.json").unlink(missing_ok=True)
        told = contracts.parts(Path(run) / "intents" / intents_set)
        names = [Path(line["part"]).stem for line in told]
        lines = _each(run, intents_set, by, names, _workers(run, intents_set, told) if workers is None else workers)
        for old in out.glob("part-*"):
            if old.stem not in names:
                old.unlink()
        contracts.finish(out, lines, [Path(run) / "intents" / intents_set, Path(run) / "documents", Path(run) / "queries"])
    return sum(line["rows"] for line in lines)


def _workers(run: str | Path, intents_set: str, told: list[dict]) -> int:
    """One process a core, where its start pays; one alone where each would hold the calls of all parts."""
    searched = [name for name in store.sets_up_to(store.SETS[intents_set]) if not store.as_partitioned(run, name)]
    pays = sum(line["rows"] for line in told) >= _MANY and not searched
    return min(len(os.sched_getaffinity(0)), len(told)) if pays else 1


def _each(run: str | Path, intents_set: str, by: Judge, names: list[str], workers: int) -> list[dict]:
    if workers == 1:
        render = Pairs(run, by)
        return [_write_part(run, intents_set, name, render) for name in names]
    sources.stand_on("lib.judge.answers")
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (run, by))
    try:
        with pool:
            return list(pool.map(_in_worker, *zip(*[(run, intents_set, name) for name in names], strict=True)))
    except BrokenProcessPool as error:
        raise RuntimeError("a process that made answers was killed (was memory short?); run again") from error


def _write_part(run: str | Path, intents_set: str, name: str, render: Pairs) -> dict:
    return contracts.write("answers", answers(run, intents_set, name, render), folder(run, intents_set) / f"{name}.parquet")


def _start(run: str | Path, by: Judge) -> None:
    global _render
    processes.die_with_parent()
    _render = Pairs(run, by)


def _in_worker(run: str | Path, intents_set: str, name: str) -> dict:
    return _write_part(run, intents_set, name, _render)


def read(run: str | Path, intents_set: str, columns: list[str] | None = None) -> Iterator[tuple[str, pa.Table]]:
    """Each part of the finished `answers/<set>`: its name and its rows."""
    for line in contracts.parts(folder(run, intents_set)):
        yield Path(line["part"]).stem, contracts.read_part("answers", folder(run, intents_set) / line["part"], columns)
