"""Where a run stands: its notebooks, shards, gaps, money and time."""

import json
from collections import Counter
from pathlib import Path

from lib import paths
from lib.plan import manifest
from lib.plan.check import Job

ANSWERED = ("ok", "unevaluable")  # the statuses of attempts that are no gap


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
    ledger = run / "tables" / "ledger.csv"
    if ledger.exists():
        told += [f"{paths.shown(ledger)}:", ledger.read_text(encoding="utf-8").rstrip()]
    told.append(f"{calls:,} calls, {sum(gaps.values()):,} gaps, cost {money:.2f}, {seconds:,.0f} s in the finished notebooks")
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
    """One line a table folder: parts that carry their line, and whether the folder is finished."""
    parts = Counter(path.parent for path in sorted(run.rglob("part-*.json")) if path.with_suffix(".parquet").exists())
    return [
        f"{folder.relative_to(run)}: {count} shards, {'finished' if (folder / 'manifest.json').exists() else 'not finished'}"
        for folder, count in parts.items()
    ]


def _attempts(run: Path) -> tuple[int, Counter, float]:
    """Calls, gaps by stage and class, and cost over all attempts.

    A pair of a stage is a gap while no call of its last key (its prompt and model) was answered; its class is the
    status of its last call. The ledger knows also the pairs that were never asked.
    All calls of a pair lie in one file, so one file at a time is held in memory.
    """
    calls, gaps, money = 0, Counter(), 0.0
    for path in sorted((run / "attempts").rglob("part-*.jsonl")):
        last = {}
        with open(path, encoding="utf-8") as handle:
            for line in handle:
                try:
                    call = json.loads(line)
                except ValueError:  # the line that is being written, or was torn
                    continue
                calls, money = calls + 1, money + (call["cost"] or 0)
                pair = (f"{call['version']} {call['stage']}", call["query"], call["doc"])
                key, status = last.get(pair, (None, None))
                if key != call["key"] or status not in ANSWERED:
                    last[pair] = call["key"], call["status"]
        gaps.update((pair[0], status) for pair, (_, status) in last.items() if status not in ANSWERED)
    return calls, gaps, money
