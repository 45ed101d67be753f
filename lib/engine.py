"""Map a stage over its shards: in this process, in processes, or on Ray Core.

A stage is a function of one named shard that writes one part of one table. A shard is
done while its part is readable with the rows and the hash its line states, and the line's key
(the configuration, the input manifests, the source of the stage's `lib` modules) is today's.

A job array runs it without notebooks:
    python -m lib.engine lib.retrieval.bm25_index:search config.json --shard 3/100
"""

import argparse
import hashlib
import importlib
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from lib import contracts, files, paths, processes, sources, trace


class Stage(NamedTuple):
    """`config` is plain JSON; `config["run"]` is the run folder, every folder below is relative to it.

    run(shard, config) writes `<run>/<out>/<shard>.parquet` and returns its manifest line
    (what `contracts.write` gives, with counts of its own added; times, which differ from run to run, stand under `timing`).
    """

    name: str  # "lib.retrieval.bm25_index:search", where to import it from
    table: str  # the contract of the part
    out: str  # the folder it fills, "hits/bm25"
    inputs: tuple[str, ...] | Callable[[dict], tuple[str, ...]]  # the finished folders it reads, of a configuration
    options: tuple[str, ...]  # the keys of config that the result depends on
    shards: Callable[[dict], list[str]]
    run: Callable[[str, dict], dict]


def find(name: str) -> Stage:
    """Import a stage by `module:attribute`."""
    module, _, attribute = name.partition(":")
    stage = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(stage, Stage):
        raise ValueError(f"{name} is no stage; name one as module:attribute, such as lib.retrieval.routes:dense")
    return stage


def part(config: dict, stage: Stage, shard: str) -> Path:
    """The file that a shard of the stage fills."""
    return Path(config["run"]) / stage.out / f"{shard}.parquet"


def _inputs(stage: Stage, config: dict) -> tuple[str, ...]:
    return stage.inputs(config) if callable(stage.inputs) else stage.inputs


def key(stage: Stage, config: dict) -> str:
    """The hash that a finished shard must carry: options, input manifests, source of the stage's modules.

    ContractError where an input is not finished, or was made from something else than what lies there today.
    """
    missing = [name for name in ("run", *stage.options) if name not in config]
    if missing:
        raise ValueError(f"{stage.name} needs {', '.join(missing)} in its configuration")
    known = {
        "options": {name: config[name] for name in stage.options},
        "inputs": {name: [line["sha256"] for line in contracts.parts(Path(config["run"]) / name)] for name in _inputs(stage, config)},
        "modules": sources.hashes(stage.name.partition(":")[0]),
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def done(path: Path, wanted: str) -> dict | None:
    """The manifest line of a finished shard, or None where it has to be made (again)."""
    try:
        line = json.loads(path.with_suffix(".json").read_text())
        if line["key"] == wanted and pq.read_metadata(path).num_rows == line["rows"] and files.sha256(path) == line["sha256"]:
            return line
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no line, a torn line, no part or a torn part: not done
    return None


def run_shard(name: str, shard: str, config: dict, wanted: str) -> dict:
    """Run one shard where it is not done, and write its line beside the part."""
    stage = find(name)
    path = part(config, stage, shard)
    line = done(path, wanted)
    if line is None:
        (path.parent / "manifest.json").unlink(missing_ok=True)  # the folder is unfinished from here on
        path.with_suffix(".json").unlink(missing_ok=True)
        started = time.perf_counter()
        line = stage.run(shard, config) | {"key": wanted, "seconds": round(time.perf_counter() - started, 3)}
        files.write_json(path.with_suffix(".json"), line)
    return line


def map(stage: Stage, config: dict, workers: int | str = 1) -> list[dict]:
    """Bring every shard of the stage up to date and finish its folder; the lines come in shard order.

    workers: 1 is this process, n are n processes, "ray" is one Ray task a shard.
    Parts of a former configuration are removed, and so is what killed processes left half written. The folder is unfinished
    while it is worked on, and once an input, or what that was made from, holds something else.
    """
    sources.stand_on(stage.name.partition(":")[0])
    folder = Path(config["run"]) / stage.out
    with processes.lock(Path(config["run"])):
        files.remove_leftovers(folder)
        wanted, shards = key(stage, config), stage.shards(config)
        lines = {shard: done(folder / f"{shard}.parquet", wanted) for shard in shards}
        left = [shard for shard in shards if lines[shard] is None]
        if left:
            lines.update(zip(left, _each(stage.name, left, config, wanted, workers), strict=True))
        for old in folder.glob("part-*"):
            if old.stem not in lines:
                old.unlink()
        for shard in shards:
            trace.record("write", folder / f"{shard}.parquet")
        told = [{k: v for k, v in lines[shard].items() if k not in ("key", "seconds", "timing")} for shard in shards]
        contracts.finish(folder, told, [Path(config["run"]) / name for name in _inputs(stage, config)])
        return [lines[shard] for shard in shards]


def _each(name: str, shards: list[str], config: dict, wanted: str, workers: int | str) -> list[dict]:
    if workers == 1:
        return [run_shard(name, shard, config, wanted) for shard in shards]
    if workers == "ray":
        import ray

        task = ray.remote(run_shard)
        return ray.get([task.remote(name, shard, config, wanted) for shard in shards])
    # spawned, not forked: a kernel has threads; each worker dies with this process
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), processes.die_with_parent)
    try:
        with pool:
            return list(pool.map(run_shard, *zip(*[(name, shard, config, wanted) for shard in shards], strict=True)))
    except BrokenProcessPool as error:
        raise RuntimeError(f"a worker of {name} was killed (was memory short?); run again, finished shards are kept") from error


def _configuration(path: Path) -> dict:
    try:
        config = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); it holds the stage's options and `run`, the run folder") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path} is no JSON object; it holds the stage's options and `run`, the run folder")
    return config


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m lib.engine", description="Run the shards of a stage that are not done.")
    parser.add_argument("stage", help="module:attribute, such as lib.retrieval.routes:dense")
    parser.add_argument("config", type=Path, help="JSON file of the stage's configuration; `run` is the run folder")
    parser.add_argument("--shard", default="0/1", metavar="i/n", help="element i (from 0) of a job array of n: shards i, i+n, ...")
    given = parser.parse_args(arguments)
    try:
        i, n = (int(number) for number in given.shard.split("/"))
        if not 0 <= i < n:
            raise ValueError
    except ValueError:
        sys.exit(f"--shard {given.shard} is no element of a job array; write i/n with 0 <= i < n")
    try:
        stage, config = find(given.stage), _configuration(given.config)
        wanted, shards = key(stage, config), stage.shards(config)
        if not shards[i::n]:
            print(f"element {given.shard} has nothing to do: {given.stage} has {len(shards)} shards")
        for shard in shards[i::n]:
            with processes.lock(Path(config["run"]), shared=True), processes.lock(part(config, stage, shard)):
                line = run_shard(given.stage, shard, config, wanted)
            print(f"{paths.shown(part(config, stage, shard))}: {line['rows']:,} rows in {line['seconds']} s")
    except (ValueError, OSError, ImportError, processes.Locked) as error:
        sys.exit(f"lib.engine: {error}")


if __name__ == "__main__":
    engine = importlib.import_module("lib.engine")  # stages are made of its Stage, not of that of __main__
    engine.main()
