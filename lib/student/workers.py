"""Start the workers of a labelling run, one a device, and tell how it goes.

Each is a child with its share of the units, balanced by tokens; it dies with this process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from lib import processes
from lib.retrieval.children import devices, lines, reason
from lib.student import units

MODULE = "lib.student.worker"
EVERY = 10.0  # seconds between two lines of progress


class LabellingStopped(RuntimeError):
    """A worker ended before its last unit; finished units are kept."""


def run(stage: str, config: dict, key: str, left: Mapping[str, int], count: int) -> None:
    """Score the units `left` (name -> tokens) of a stage by at most `count` workers.

    LabellingStopped where one ends early: the others are stopped, and the sentence says what it said.
    """
    shares = [share for share in units.share(left, count) if share]
    places = devices(len(shares))
    with tempfile.TemporaryDirectory(prefix="qrelbook-label-") as folder:
        pipe, end = os.pipe()
        children: list[tuple[subprocess.Popen, Path]] = []
        try:
            for i, share in enumerate(shares):
                job, said = Path(folder) / f"{i}.json", Path(folder) / f"{i}.err"
                tokens = sum(left[unit] for unit in share)
                job.write_text(json.dumps({"stage": stage, "config": config, "key": key, "units": share, "tokens": tokens}))
                own = os.environ | ({} if places is None else {"CUDA_VISIBLE_DEVICES": places[i]})
                with open(said, "wb") as errors:
                    child = processes.child(MODULE, str(job), str(end), stdout=subprocess.DEVNULL, stderr=errors, pass_fds=(end,), env=own)
                children.append((child, said))
            os.close(end)
            end = -1
            _follow(config["set"], children, pipe, left)
        finally:
            for child, _ in children:
                child.terminate()
            for child, _ in children:
                child.wait()
            for descriptor in {pipe, end} - {-1}:
                os.close(descriptor)


def _follow(name: str, children: list[tuple[subprocess.Popen, Path]], pipe: int, left: Mapping[str, int]) -> None:
    """Tell progress until every worker has ended well."""
    began = told = time.monotonic()
    done: list[dict] = []
    for line in map(json.loads, lines(children, pipe, _stopped)):
        if "gate" in line:
            print(f"{name}: the gate is open on {line['device']}, its record is {line['gate'][:16]}", file=sys.stderr, flush=True)
            continue
        done.append(line)
        now = time.monotonic()
        if now - told >= EVERY or len(done) == len(left):
            told = now
            print(f"{name}: {progress(done, left, now - began)}", file=sys.stderr, flush=True)


def progress(done: list[dict], left: Mapping[str, int], seconds: float) -> str:
    """How far it is: `done` are manifest lines of units with their names, `left` all units to do, `seconds` those gone by."""
    pairs, tokens = (sum(line[name] for line in done) for name in ("pairs", "tokens"))
    counted = [line["timing"] for line in done if line["timing"]["share_of_peak"] is not None]
    busy = sum(timing["seconds"] for timing in counted)
    share = f"{sum(timing['share_of_peak'] * timing['seconds'] for timing in counted) / busy:.1%} of peak, " if busy else ""
    remaining = (sum(left.values()) - tokens) * seconds / tokens if tokens else 0.0
    return (f"{len(done)} of {len(left)} units, {pairs:,} pairs, {pairs / seconds:,.1f} pairs/s, {tokens / seconds:,.0f} tokens/s, "
            f"{share}{remaining:,.0f} s left")


def _stopped(code: int, said: Path) -> LabellingStopped:
    return LabellingStopped(f"{reason(MODULE, 'a labelling worker', code, said)} finished units are kept")
