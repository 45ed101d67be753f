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
            sent.update(_counted(pairs.intents(run, name, part), LINE[1:]))
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
            rows = pairs.intents(run, name, part)
            counts = rows.group_by(["query", "doc"]).aggregate([([], "count_all")])
            for pair in counts.filter(pc.greater(counts["count_all"], 1)).to_pylist():
                found.append(f"query {pair['query']} doc {pair['doc']} stands {pair['count_all']} times in {name}")
    return found


def _strangers(run: str | Path, sets: Sequence[str]) -> list[str]:
    return [
        f"an attempt of {name} for task {row['task_id']} carries the key of task {task}"
        for name, row, task in _attempts(run, sets)
        if task and task != row["task_id"]
    ]


def calls(run: str | Path, sets: Sequence[str]) -> pd.DataFrame:
    """One row a set: calls written, of them those for today's intents, and those for a former prompt, judge or routing.

    Former calls stay, and answer again when what they were made with comes back.
    """
    found = Counter((name, task is not None) for name, _, task in _attempts(run, sets))
    lines = [
        {"set": name, "calls": found[name, True] + found[name, False], "today": found[name, True], "former": found[name, False]}
        for name in sets
    ]
    return pd.DataFrame(lines, columns=["set", "calls", "today", "former"])


def _attempts(run: str | Path, sets: Sequence[str]) -> Iterator[tuple[str, dict, str | None]]:
    """Every attempt of the sets, with the task_id of today's intent that has its key, or None."""
    for name in sets:
        for sources, known in _groups(run, name):
            for source in sources:
                for row in store.read(source):
                    yield name, row, known.get(row["key"])


def _groups(run: str | Path, name: str) -> Iterator[tuple[list[Path], dict[str, str]]]:
    """The attempts files of a set, with the task_id of each key that may stand in them.

    The keys of one part are in memory, those of the whole set where it was asked under another partition of the queries.
    """
    told = ((part, zip(rows["key"].to_pylist(), rows["task_id"].to_pylist(), strict=True)) for part, rows in answers.read(run, name, ["key", "task_id"]))
    if not store.as_partitioned(run, name):
        yield store.every(run, name), {key: task for _, tasks in told for key, task in tasks}
        return
    routed = set()
    for part, tasks in told:
        routed.add(part)
        yield store.sources(run, name, part), dict(tasks)
    yield [source for source in store.every(run, name) if source.stem not in routed], {}
