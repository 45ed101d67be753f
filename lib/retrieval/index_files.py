"""What the indexes of the lexical routes share: arrays in a memory-mapped file beside the counts of each document part, and the queries' texts.

`index/ROUTE/part-00000.parquet` counts the documents that hold each unit, a word or an n-gram (contract `counts`); the arrays
of the part stand beside it in an Arrow file of one row, whose hash the part's manifest line holds. Both hang on the documents and
the units of the queries only.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, files, paths, trace
from lib.retrieval.postings import Statistics


def schema(kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """A row of lists."""
    return pa.schema([pa.field(name, pa.large_list(pa.field("item", kind, nullable=False)), nullable=False) for name, kind in kinds.items()])


def write(arrays: Sequence[np.ndarray], row: pa.Schema, path: Path) -> str:
    """Write arrays whole, one a field; the hash of the file."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), pa.array(values, field.type.value_type), type=field.type)
        for values, field in zip(arrays, row, strict=True)
    ]
    with files.whole(path) as temporary:
        with pa.ipc.new_file(str(temporary), row) as file:
            file.write_batch(pa.record_batch(columns, schema=row))
        return files.sha256(temporary)


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """The hash of a file; a process reads an unchanged one whole once for all its shards."""
    return files.sha256(path)


def read(path: Path, sha256: str) -> list[np.ndarray]:
    """The arrays, memory-mapped; ContractError where the file is not the one that was written.

    Its numbers are places in arrays that compiled loops do not check, so no wrong byte may come to them.
    """
    trace.record("read", path)
    try:
        found = path.stat()
        whole = _sha256(path, found.st_size, found.st_mtime_ns) == sha256
    except OSError:
        whole = False
    if not whole:
        raise contracts.ContractError(f"{paths.shown(path)} is not the index that was written; remove {path.stem}.json beside it and run again")
    return [column.flatten().to_numpy() for column in pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0).columns]


def texts(queries: pa.Table) -> pa.ChunkedArray:
    """The texts of queries; '' finds nothing: a query that does not go on."""
    return pc.if_else(queries["keep"], queries["text"], "")


def count(unit: np.ndarray, found: Statistics, path: Path, arrays: str) -> dict:
    """Write the counts of a document part, `found.df` of each `unit` that stands there; its manifest line, with the hash of the file of its arrays."""
    table = contracts.table("counts", {"unit": unit.astype(np.int32), "df": found.df.astype(np.int64)})
    return contracts.write("counts", table, path) | {"documents": found.documents, "words": found.words, "arrays": arrays}


@lru_cache(maxsize=2)
def total(folder: Path, units: int, manifest: str) -> Statistics:
    """The counts of all document parts, summed once a process; `manifest` tells one index from the next."""
    lines, df = contracts.parts(folder), np.zeros(units, np.int32)
    for line in lines:
        counts = contracts.read_part("counts", folder / line["part"])
        df[counts["unit"].to_numpy()] += counts["df"].to_numpy()
    return Statistics(sum(line["documents"] for line in lines), sum(line["words"] for line in lines), df)
