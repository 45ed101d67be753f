"""What routing and the tables take at size: each step in a fresh process, with its seconds and that process's peak.

`python -m lib.stats.routing_measure RUN WHAT` does one of STEPS in this process and prints its JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lib import contracts, engine, processes
from lib.stats import routing_draw

CONFIG = {
    "long_tokens": routing_draw.LONG_TOKENS, "picks": 5, "pick_rounds": 4, "student_on_long": 0.01, "short_chars": 30_000, "long_chars": 100_000,
    "trial_queries": 500, "seed": 0,
}
SETS = ("source_page", "v1", "v2_gap", "v2")
ROUTING, TABLES = {"v1": ("source_pages", "v1"), "v2": ("v2_gap", "v2")}, ("who judged", "overlap", "label mix", "coverage")


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
    status = Path("/proc/self/status").read_text().splitlines()  # not getrusage: its peak outlives exec
    return Measured(step, seconds, cpu_seconds, next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024, rows)


def routed(run: Path, stage: str) -> int:
    """Run a stage of lib.routing through the engine, in this process; its intents."""
    from lib.routing import stages

    return sum(line["rows"] for line in engine.map(getattr(stages, stage), CONFIG | {"run": str(run)}))


def released(run: Path) -> int:
    """Write `labels/`, which merges and proves the coverage of every shard; its rows."""
    from lib.release import labels

    return labels.write(run, accept_gaps=10**9)


def tabled(run: Path, table: str) -> int:
    """Make one of TABLES from the shards; the rows that it counts."""
    from lib.judge import ledger
    from lib.release import coverage
    from lib.stats import judged, labels, overlap

    if table == "who judged":
        found = judged.who_judged(ledger.ledger(run, SETS), judged.student(run, "v1"), judged.student(run, "v2"))
        return int(found["judged"].sum())
    if table == "overlap":
        return int(overlap.overlap_table(overlap.parts(run, overlap.seen(run)))["pairs"].iloc[-1])
    if table == "label mix":
        return int(labels.label_mix(run)["rows"].sum())
    return int(coverage.table(run).set_index("fact")["count"]["rows of the release"])


def child(run: Path, *what: str) -> list[Measured]:
    """Do some steps in one fresh process; RuntimeError with the last line that it printed where it fails."""
    started = processes.child("lib.stats.routing_measure", str(run), *what, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with processes.attended(started):
        told, error = started.communicate()
    if started.returncode:
        raise RuntimeError(f"{', '.join(what)} ended with {started.returncode}: {(error.strip().splitlines() or ['nothing printed'])[-1]}")
    return [Measured(*row) for row in json.loads(told)]


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
    return tabled(run, what) if what in TABLES else routed(run, what)


if __name__ == "__main__":
    print(json.dumps([_timed(what, lambda what=what: step(Path(sys.argv[1]), what)) for what in sys.argv[2:]]))
