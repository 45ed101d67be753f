"""What reading near-duplicate files takes, each way in a fresh process: seconds, memory, and a hash of the rows it found.

`python -m lib.qrels.near_duplicates.near_measure WAY FOLDER IDS CACHE` runs one way and prints its JSON; IDS is a JSON list of ids as the
files spell them. A peer's rows are compared as they stand, its columns named `doc_id` and `duplicates` as the sample's are.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from lib import files, ids, paths, processes
from lib.qrels.near_duplicates import near, near_schema


class Measured(NamedTuple):
    """Wall and processor seconds after the imports; MiB by which the process's peak rose meanwhile; rows found, and a hash of them sorted."""

    seconds: float
    cpu_seconds: float  # of all threads: says more on a busy machine
    mib: float
    rows: int
    sha256: str


def two_passes(folder: Path, docids: list[str], cache: Path):
    """`near.rows`, forward edges alone: what the peers do."""
    return near.rows(near_schema.near_files(folder), docids)


def both_directions(folder: Path, docids: list[str], cache: Path):
    """`near.neighbours`, with what the cache holds."""
    return near.neighbours(folder, docids, cache)


def polars(folder: Path, docids: list[str], cache: Path):
    """A lazy scan filtered by the ids."""
    import polars

    return polars.scan_parquet(folder / "*.parquet").filter(polars.col("doc_id").is_in(docids)).collect()


def duckdb(folder: Path, docids: list[str], cache: Path):
    """A query with a semi-join on the ids."""
    import duckdb
    import pyarrow

    wanted = pyarrow.table({"doc_id": docids})  # noqa: F841 - the query reads it
    return duckdb.sql(f"SELECT doc_id, duplicates FROM read_parquet('{folder}/*.parquet') WHERE doc_id IN (SELECT doc_id FROM wanted)").to_arrow_table()


def arrow_dataset(folder: Path, docids: list[str], cache: Path):
    """pyarrow.dataset filtered by the ids."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(near_schema.near_files(folder)).to_table(filter=pyarrow.dataset.field("doc_id").isin(docids))


def python_lists(folder: Path, docids: list[str], cache: Path):
    """What is not to be done: the whole columns of the first file as Python lists, of which the wanted rows are kept."""
    import pyarrow.parquet

    table, wanted = pyarrow.parquet.read_table(near_schema.near_files(folder)[0]), set(docids)
    whole = zip(table["doc_id"].to_pylist(), table["duplicates"].to_pylist(), strict=True)
    return [near.Row(ids.api(docid), Path(), 0, [tuple(pair.values()) for pair in pairs or []]) for docid, pairs in whole if docid in wanted]


WAYS: dict[str, Callable] = {way.__name__: way for way in (two_passes, both_directions, polars, duckdb, arrow_dataset, python_lists)}
PEERS = [name for name in ("polars", "duckdb") if find_spec(name)] + ["arrow_dataset"]


def child(way: str, folder: Path, ids_file: Path, cache: Path) -> Measured:
    """Run one way in a fresh process; RuntimeError with the last line that it printed where it fails."""
    return Measured(**json.loads(processes.answer(way, "lib.qrels.near_duplicates.near_measure", way, str(folder), str(ids_file), str(cache), cwd=paths.ROOT)))


def race(ways: list[str], rounds: int, folder: Path, ids_file: Path, cache: Path) -> dict[str, Measured]:
    """Each way `rounds` times in turn; the least seconds of either kind and the most memory count. RuntimeError where a way's rows change."""
    laps = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            laps[way].append(child(way, folder, ids_file, cache))
    for way, runs in laps.items():
        if len({run.sha256 for run in runs}) > 1:
            raise RuntimeError(f"{way} found other rows in another round")
    return {way: _best(runs) for way, runs in laps.items()}


def _best(runs: list[Measured]) -> Measured:
    seconds, cpu_seconds = (min(getattr(run, kind) for run in runs) for kind in ("seconds", "cpu_seconds"))
    return runs[0]._replace(seconds=seconds, cpu_seconds=cpu_seconds, mib=max(run.mib for run in runs))


def measured(way: str, folder: Path, docids: list[str], cache: Path) -> Measured:
    """Run one way in this process; what it imports is imported before the clock starts."""
    if way in ("polars", "duckdb"):
        __import__(way)
    elif way == "arrow_dataset":
        __import__("pyarrow.dataset")
    before, start, cpu = processes.memory(most=False), time.perf_counter(), time.process_time()
    found = WAYS[way](folder, docids, cache)
    seconds, cpu_seconds, peak = time.perf_counter() - start, time.process_time() - cpu, processes.memory()
    listed = _listed(found)
    return Measured(seconds, cpu_seconds, peak - before, len(listed), hashlib.sha256(json.dumps(listed).encode()).hexdigest())


def _listed(found) -> list:
    """[id, [[neighbour, Jaccard], ...]] of each row, sorted by id; the lists in the order of the file."""
    if isinstance(found, dict):
        return sorted([docid, sorted(edges.items())] for docid, edges in found.items())
    if isinstance(found, list):
        return sorted([row.docid, [list(pair) for pair in row.duplicates]] for row in found)
    rows = found.to_pylist() if hasattr(found, "to_pylist") else found.to_dicts()
    return sorted([ids.api(row["doc_id"]), [list(pair.values()) for pair in row["duplicates"] or []]] for row in rows)


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], Path(sys.argv[2]), json.loads(files.read_bytes(sys.argv[3])), Path(sys.argv[4]))._asdict()))
