"""Stages that run a model, mapped over their shards in children: a notebook's kernel never loads torch.

A child is an element of the job array that a cluster would start, on a device of its own, and dies with this process:
    python -m lib.engine lib.retrieval.encode:document_vectors RUN/vectors/config.json --shard 0/2
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lib import engine, files, processes
from lib.engine import Stage

EVERY = 10.0  # seconds between two lines of progress
_PART = ".parquet: "  # in the line that a child prints of a finished shard


class ModelStopped(RuntimeError):
    """A child ended before its last shard; finished shards are kept."""


def map(stage: Stage, config: dict, workers: int | str = 1) -> list[dict]:
    """`lib.engine.map` for a stage that runs a model: what is not done is made by `workers` children, or on Ray.

    The configuration is left beside the parts as `config.json`, for a job array. ModelStopped says in one sentence why a
    child ended early; run again to go on.
    """
    with processes.lock(Path(config["run"])):
        known = Path(config["run"]) / stage.out / "config.json"
        files.write_json(known, config)
        files.remove_leftovers(known.parent)  # before the children write there
        if workers != "ray":
            key, shards = engine.key(stage, config), stage.shards(config)
            if left := sum(engine.done(engine.part(config, stage, shard), key) is None for shard in shards):
                _run(stage, known, left, min(workers, len(shards)))
        return engine.map(stage, config, workers if workers == "ray" else 1)


def _run(stage: Stage, config: Path, left: int, count: int) -> None:
    places = devices(count)
    with tempfile.TemporaryDirectory(prefix="qrelbook-model-") as folder:
        pipe, end = os.pipe()
        children: list[tuple[subprocess.Popen, Path]] = []
        try:
            for i in range(count):
                said = Path(folder) / f"{i}.err"
                own = {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"} | ({} if places is None else {"CUDA_VISIBLE_DEVICES": places[i]})
                with open(said, "wb") as errors:
                    child = processes.child("lib.engine", stage.name, str(config), "--shard", f"{i}/{count}",
                                            stdout=end, stderr=errors, env=os.environ | own)
                children.append((child, said))
            os.close(end)
            end = -1
            _follow(stage.out, children, pipe, left)
        finally:
            for child, _ in children:
                child.terminate()
            for child, _ in children:
                child.wait()
            for descriptor in {pipe, end} - {-1}:
                os.close(descriptor)


def devices(count: int) -> list[str] | None:
    """What CUDA_VISIBLE_DEVICES is for each worker; None where it hides every device. ValueError where it names too few."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return [str(i) for i in range(count)]
    found = [name.strip() for name in given.split(",") if name.strip() not in ("", "-1")]
    if found and len(found) < count:
        raise ValueError(f"there are {count} workers and CUDA_VISIBLE_DEVICES names {len(found)} devices ({given}); take at most one worker a device")
    return found[:count] or None


def _follow(name: str, children: list[tuple[subprocess.Popen, Path]], pipe: int, left: int) -> None:
    """Pass on what the children print, each line once, and tell of finished shards now and then, until all have ended well."""
    began = told = time.monotonic()
    done, passed = 0, set()
    for line in lines(children, pipe, _stopped):
        if _PART not in line:
            if line not in passed:
                passed.add(line)
                print(f"{name}: {line}", file=sys.stderr, flush=True)
            continue
        done, now = done + 1, time.monotonic()
        if now - told >= EVERY:
            told = now
            remaining = max(left - done, 0) * (now - began) / done
            print(f"{name}: {done} of {left} parts, {remaining:,.0f} s left", file=sys.stderr, flush=True)


def lines(children: list[tuple[subprocess.Popen, Path]], pipe: int, stopped: Callable[[int, Path], Exception]) -> Iterator[str]:
    """What the children say into the pipe, line by line, until all have ended; as soon as one has failed, what `stopped` makes of it is raised.

    `stopped` is given the exit code and the file of the child's stderr.
    """
    rest = b""
    while True:
        ready = select.select([pipe], [], [], 0.2)[0]
        chunk = os.read(pipe, 1 << 16) if ready else b""
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
        if chunk:
            continue
        for child, said in children:
            if child.poll():
                raise stopped(child.returncode, said)
        if all(child.returncode == 0 for child, _ in children):
            return
        if ready:  # the pipe is closed, a child is about to end
            time.sleep(0.02)


def reason(module: str, who: str, code: int, said: Path) -> str:
    """What a failed child of a module said last, which ends in a way out, or how `who` was killed."""
    told = [line for line in said.read_text(errors="replace").splitlines() if line.strip()]
    own = [line.removeprefix(f"{module}: ") for line in told if line.startswith(f"{module}: ")]
    if own:
        return f"{own[-1]};"
    if code < 0:
        return f"{who} was killed by {signal.Signals(-code).name} (was memory short?); run again to go on,"
    return f"{who} ended with {code}: {told[-1] if told else 'it said nothing'}; run again to go on,"


def _stopped(code: int, said: Path) -> ModelStopped:
    return ModelStopped(f"{reason('lib.engine', 'a child that ran the model', code, said)} finished parts are kept")
