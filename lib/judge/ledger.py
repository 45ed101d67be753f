"""The ledger of a judging run: every pair sent is valid, a gap with its class, or withdrawn."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lib.judge import answers, pairs, store

LINE = ["set", "version", "stage", "round"]
GAPS = [name for name in (*answers.CLASSES, answers.UNASKED) if name not in answers.VALID]
COUNTS = ["sent", "valid", "unevaluable", "gaps", "withdrawn"]


class LedgerError(ValueError):
    """The ledger does not close."""


def ledger(run: str | Path, sets: Sequence[str]) -> pd.DataFrame:
    """One row a set, version, stage and round, in the order of `sets`: sent, valid (unevaluable included),
    unevaluable, gaps, withdrawn, then the gaps by class (all classes, in a fixed order).

    `sent` is counted from the intents, the rest from `answers/<set>`; `close` compares them.
    """
    lines = []
    for name in sets:
        sent, found = Counter(), Counter()
        for part in pairs.parts(run, name):
            sent.update(_counted(pairs.intents(run, name, part, LINE[1:]), LINE[1:]))
        for _, told in answers.read(run, name, [*LINE[1:], "answer"]):
            found.update({(key[:-1], key[-1]): count for key, count in _counted(told, [*LINE[1:], "answer"]).items()})
        for key in sorted(set(sent) | {key for key, _ in found}):
            lines.append({"set": name, **dict(zip(LINE[1:], key, strict=True)), **_counts(sent[key], key, found)})
    return pd.DataFrame(lines, columns=[*LINE, *COUNTS, *GAPS])


def _counted(rows: pa.Table, columns: list[str]) -> dict[tuple, int]:
    counts = rows.group_by(columns).aggregate([([], "count_all")]).to_pylist()
    return {tuple(row[name] for name in columns): row["count_all"] for row in counts}


def _counts(sent: int, key: tuple, found: Counter) -> dict:
    gaps = {name: found[key, name] for name in GAPS}
    unevaluable = found[key, "unevaluable"]
    return {
        "sent": sent, "valid": found[key, "ok"] + unevaluable, "unevaluable": unevaluable,
        "gaps": sum(gaps.values()), "withdrawn": found[key, answers.WITHDRAWN], **gaps,
    }  # fmt: skip


def close(run: str | Path, sets: Sequence[str]) -> pd.DataFrame:
    """The ledger, or LedgerError with the first ten offenders.

    An offender is a line where sent is not valid + gaps + withdrawn, a pair that stands twice in a version
    (rounds are disjoint), or an attempt under the key of an intent that is of another task.
    """
    told = ledger(run, sets)
    off = told[told["sent"] != told["valid"] + told["gaps"] + told["withdrawn"]]
    offenders = [
        f"{line.version} {line.stage} round {line.round}: sent {line.sent}, "
        f"valid {line.valid} + gaps {line.gaps} + withdrawn {line.withdrawn}"
        for line in off.itertuples()
    ]
    offenders += _repeats(run, sets) + _strangers(run, sets)
    if offenders:
        raise LedgerError(
            f"the ledger does not close, {len(offenders)} offenders, the first: {'; '.join(offenders[:10])}; route and judge again"
        )
    return told


def _repeats(run: str | Path, sets: Sequence[str]) -> list[str]:
    found = []
    for name in sets:
        for part in pairs.parts(run, name):
            rows = pairs.intents(run, name, part, ["query", "doc"])
            counts = rows.group_by(["query", "doc"]).aggregate([([], "count_all")])
            for pair in counts.filter(pc.greater(counts["count_all"], 1)).to_pylist():
                found.append(f"query {pair['query']} doc {pair['doc']} stands {pair['count_all']} times in {name}")
    return found


def _strangers(run: str | Path, sets: Sequence[str]) -> list[str]:
    return [
        f"an attempt of {name} for task {said} carries the key of task {task}"
        for name in sets
        for attempts, known in _attempts(run, name)
        for said, task in _of_others(attempts, known)
    ]


def _of_others(attempts: pa.Table, known: pa.Table) -> Iterator[tuple[str, str]]:
    """The task_id of each attempt whose key belongs to another, and that other."""
    at = pc.index_in(attempts["key"], value_set=known["key"].combine_chunks())
    tasks = known["task_id"].take(at)
    other = pc.fill_null(pc.not_equal(tasks, attempts["task_id"]), False)
    yield from zip(attempts["task_id"].filter(other).to_pylist(), tasks.filter(other).to_pylist(), strict=True)


def _attempts(run: str | Path, name: str) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Key and task_id of every attempt that may be under a key of today, a few thousand at a time, with those of today's intents.

    The keys of one part are in memory, those of the whole set where it was asked under another partition of the queries.
    """
    columns = ["key", "task_id"]
    told = answers.read(run, name, columns)
    if not store.as_partitioned(run, name):
        known = pa.concat_tables([rows for _, rows in told])
        yield from ((attempts, known) for attempts in store.scan(run, name, columns))
        return
    for part, known in told:
        for source in store.sources(run, name, part):
            yield from ((attempts, known) for attempts in store.tables(source, columns))
