"""Where a run stands: its notebooks, shards, gaps, money and time."""

import csv
import json
from collections import Counter
from pathlib import Path

from lib import contracts
from lib.plan import manifest
from lib.plan.check import Job



def lines(jobs: list[Job], run: Path) -> list[str]:
    """What `--status` prints; it only reads, also while the plan runs."""
    told, seconds = [], 0.0
    for job in jobs:
        known = manifest.load(run, job.name)
        seconds += known["seconds"] if known else 0
        told.append(f"{job.name:20} {_state(job, run, known)}")
    told += _shards(run)
    calls, gaps, money = _attempts(run)
    told += [f"gaps: {count:,} {stage}, last call {kind}" for (stage, kind), count in sorted(gaps.items())]
    ledger = next((path for name in ("ledger", "ledger_v1") if (path := run / "tables" / f"{name}.csv").exists()), None)
    if ledger:
        with open(ledger, encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                told.append("ledger: " + ", ".join(f"{name} {value}" for name, value in row.items() if value not in ("", "0")))
    cost = "unknown" if money is None else f"{money:.2f}"
    told.append(f"{calls:,} calls, {sum(gaps.values()):,} gaps, cost {cost}, {seconds:,.0f} s in the finished notebooks")
    return told


def _state(job: Job, run: Path, known: dict | None) -> str:
    reason = manifest.stale(job, run, known)
    if reason is None:
        return f"finished, {known['seconds']} s, {known['peak_memory_mb']} MB"
    if known is not None:
        return f"stale: {reason}"
    if manifest.executed(run, job.name, manifest.FAILED).exists():
        return "failed"
    return "running, or killed" if manifest.executed(run, job.name, manifest.UNFINISHED).exists() else "never run"


def _shards(run: Path) -> list[str]:
    """One line a table folder: the parts of a finished one, else the parts that are done, with their line beside them.

    One that was made from what has changed since, or whose manifest is torn, is not finished.
    """
    told = []
    for folder in sorted({path.parent for path in run.rglob("part-*.parquet")}):
        try:
            done, finished = contracts.parts(folder), True
        except contracts.ContractError:
            done, finished = [path for path in folder.glob("part-*.json") if path.with_suffix(".parquet").exists()], False
        told.append(f"{folder.relative_to(run)}: {len(done)} shards, {'finished' if finished else 'not finished'}")
    return told


def _attempts(run: Path) -> tuple[int, Counter, float | None]:
    """Calls, gaps by stage and class, and cost over all attempts (None where no call has one).

    A pair of a stage is a gap while no call of its last key (its prompt and model) was answered; its class is the
    status of its last call. One of v1 that was answered when the gaps were filled is none. The ledger knows also the
    pairs that were never asked.
    One file at a time is held in memory: a pair whose calls lie in two, since the queries were cut into parts anew, counts in both.
    """
    calls, gaps, money, filled = 0, Counter(), None, set()
    for path in sorted((run / "attempts").rglob("part-*.jsonl"), key=lambda path: (path.parent.name != "v2_gap", path)):
        last = {}
        with open(path, encoding="utf-8") as handle:
            for line in handle:
                try:
                    call = json.loads(line)
                except ValueError:  # the line that is being written, or was torn
                    continue
                calls += 1
                money = money if call["cost"] is None else (money or 0.0) + call["cost"]
                pair = (f"{call['version']} {call['stage']}", call["task_id"])
                if call["version"] == "v2 gap" and call["status"] in contracts.VALID:
                    filled.add((f"v1 {call['stage']}", call["task_id"]))
                key, status = last.get(pair, (None, None))
                if key != call["key"] or status not in contracts.VALID:
                    last[pair] = call["key"], call["status"]
        gaps.update((pair[0], status) for pair, (_, status) in last.items() if status not in contracts.VALID and pair not in filled)
    return calls, gaps, money
