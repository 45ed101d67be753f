"""What routing and the tables take at size: each step in a fresh process, with its seconds and that process's peak.

`python -m lib.stats.routing_measure RUN STEP ...` does some steps in this process and prints their JSON: a stage of
lib.routing, `labels`, one of TABLES, or `score 2 by rank`.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lib import contracts, engine, processes
from lib.stats import routing_draw, routing_plain

CONFIG = {
    "long_tokens": routing_draw.LONG_TOKENS, "picks": 5, "pick_rounds": 4, "student_on_long": 0.01, "short_chars": 30_000, "long_chars": 100_000,
    "trial_queries": 500, "seed": 0,
}
SETS = ("source_page", "v1", "v2_gap", "v2")
ROUTING = (("source_pages", "v1"), ("v2_gap", "v2"))  # the second two read answers to the first two
TABLES, RANKS = ("who judged", "overlap", "label mix", "coverage"), "score 2 by rank"


class Measured(NamedTuple):
    """One step in a fresh process: its wall and processor seconds, its peak, and the rows that it wrote or read."""

    step: str
    seconds: float
    cpu_seconds: float
    mib: float
    rows: int


def _timed(step: str, does: Callable[[], int]) -> Measured:
    begun, cpu = time.perf_counter(), time.process_time()
    rows = does()
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
    return Measured(step, seconds, cpu_seconds, processes.memory(), rows)


def routed(run: Path, stage: str, config: dict = CONFIG) -> int:
    """Run a stage of lib.routing through the engine, in this process; its intents."""
    from lib.routing import stages

    return sum(line["rows"] for line in engine.map(getattr(stages, stage), config | {"run": str(run)}))


def released(run: Path) -> int:
    """Write `labels/`, which merges and proves the coverage of every shard; its rows."""
    from lib.release import labels

    return labels.write(run, accept_gaps=10**9)


def checking(run: Path) -> float:
    """The seconds in which writing `labels/` proved that every pair of the top 20s has its row."""
    return sum(json.loads(path.read_text())["timing"]["checking"] for path in (Path(run) / "labels").glob("part-*.json"))


def who_judged(run: Path):
    """The table of who judged which pairs; the ledger is counted, and not closed over attempts, of which a drawn run has none."""
    from lib.judge import ledger
    from lib.stats import judged

    return judged.who_judged(ledger.ledger(run, SETS), judged.student(run, "v1"), judged.student(run, "v2"))


def tabled(run: Path, table: str) -> int:
    """Make one of the tables from the shards; the rows that it counts."""
    from lib.release import coverage
    from lib.stats import labels, overlap

    if table == "who judged":
        return int(who_judged(run)["judged"].sum())
    if table == RANKS:
        return int(labels.score_2_by_rank(labels.rank_labels(run))["rows"].sum())
    if table == "overlap":
        return int(overlap.overlap_table(overlap.parts(run, overlap.seen(run)))["pairs"].iloc[-1])
    if table == "label mix":
        return int(labels.label_mix(run)["rows"].sum())
    return int(coverage.table(run).set_index("fact")["count"]["rows of the release"])


def child(run: Path, *what: str) -> list[Measured]:
    """Do some steps in one fresh process; RuntimeError with the last line that it printed where it fails."""
    return [Measured(*row) for row in json.loads(processes.answer(", ".join(what), "lib.stats.routing_measure", str(run), *what))]


def answered(run: Path, sets: tuple[str, ...], seed: int) -> None:
    """Draw the answers to some sets, and the scores of those that the relevance model scores; training pairs once v1 is answered."""
    for name in sets:
        routing_draw.answers(run, name, seed)
        if name in ("v1", "v2"):
            routing_draw.scores(run, name, seed)
    if "v1" in sets:
        routing_draw.examples(run, seed)


def gibibytes(run: Path) -> float:
    return sum(path.stat().st_size for path in Path(run).rglob("*.parquet")) / 2**30


def step(run: Path, what: str) -> int:
    if what == "labels":
        return released(run)
    return tabled(run, what) if what in (*TABLES, RANKS) else routed(run, what)


def check(run: Path, queries: int, documents: int, seed: int) -> dict[str, int]:
    """Draw a small run of three shards and compare routing and tables with `routing_plain`; how many rows were the same.

    AssertionError names what differs.
    """
    from lib.release import coverage
    from lib.routing.v2 import trial_queries
    from lib.stats import labels, overlap

    config = CONFIG | {"student_on_long": 1.0, "trial_queries": queries // 4}
    routing_draw.candidates(run, queries, documents, -(-queries // 3), seed)
    for stages, sets in zip(ROUTING, (SETS[:2], SETS[2:]), strict=True):
        for stage in stages:
            routed(run, stage, config)
        answered(run, sets, seed)
    released(run)
    keep = contracts.read("queries", run / "queries", ["keep"])["keep"].to_numpy()
    same, trial = {}, set(trial_queries(keep, config["trial_queries"], config["seed"] + 2).tolist())
    for name, wanted in routing_plain.routed(run, config, trial).items():
        assert routing_plain.intents(run, name) == wanted, f"intents of {name}"
        same[f"intents of {name}"] = len(wanted)
    mix = labels.label_mix(run)
    counts = {(row.version, row.stage, row.judge): [row.rows, *mix.iloc[i, 4:].fillna(0)] for i, row in enumerate(mix.itertuples())}
    plain = {group: [sum(of), *(count / sum(of) for count in of)] for group, of in routing_plain.label_mix(run).items()}
    assert counts == plain, "label mix"
    found = who_judged(run)[["version", "stage", "judge", "sent", "judged"]]
    assert {row[:3]: row[3:] for row in found.itertuples(index=False, name=None)} == routing_plain.judged(run), "who judged"
    parts, plainly = overlap.parts(run, overlap.seen(run)), routing_plain.overlap(run)
    for stage, name in overlap.PARTS.items():
        pairs, table = plainly.get(stage, (0, 0))
        assert parts[name].pairs == pairs and (parts[name].checked[overlap.CHECKED].table == table).all(), f"overlap of {name}"
    rows = int(coverage.table(run).set_index("fact")["count"]["rows of the release"])
    assert rows == mix["rows"].sum(), "coverage"
    return same | {"labels": rows, "pairs with both": sum(one.pairs for one in parts.values())}


if __name__ == "__main__":
    print(json.dumps([_timed(what, lambda what=what: step(Path(sys.argv[1]), what)) for what in sys.argv[2:]]))
