"""What the indexes of the lexical routes share: arrays in a memory-mapped file beside the counts of each document part, and the queries' texts.

`index/ROUTE/part-00000.parquet` counts the documents that hold each unit, a word or an n-gram (contract `counts`); the arrays
of the part stand beside it in an Arrow file of one row. Both hang on the documents and the units of the queries only.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, files, paths, trace
from lib.retrieval.postings import Statistics


def schema(kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """A row of lists."""
    return pa.schema([pa.field(name, pa.large_list(pa.field("item", kind, nullable=False)), nullable=False) for name, kind in kinds.items()])


def write(arrays: Sequence[np.ndarray], row: pa.Schema, path: Path) -> int:
    """Write arrays whole, one a field; how many bytes."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), pa.array(values, field.type.value_type), type=field.type)
        for values, field in zip(arrays, row, strict=True)
    ]
    with files.whole(path) as temporary:
        with pa.ipc.new_file(str(temporary), row) as file:
            file.write_batch(pa.record_batch(columns, schema=row))
        return temporary.stat().st_size


def read(path: Path, size: int, row: pa.Schema) -> list[np.ndarray]:
    """The arrays, memory-mapped; ContractError where the file is not the `size` bytes that were written."""
    trace.record("read", path)
    try:
        found = path.stat().st_size
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0) if found == size else None
    except (OSError, pa.ArrowInvalid):
        batch = None
    if batch is None or batch.schema != row:
        raise contracts.ContractError(f"{paths.shown(path)} is not the index of {size:,} bytes that was written; remove {path.stem}.json beside it and run again")
    return [column.flatten().to_numpy() for column in batch.columns]


def texts(queries: pa.Table) -> pa.ChunkedArray:
    """The texts of queries; '' finds nothing: a query that does not go on."""
    return pc.if_else(queries["keep"], queries["text"], "")


def count(found: Statistics, path: Path) -> dict:
    """Write the counts of a document part; its manifest line."""
    unit = np.flatnonzero(found.df).astype(np.int32)
    table = contracts.table("counts", {"unit": unit, "df": found.df[unit].astype(np.int64)})
    return contracts.write("counts", table, path) | {"documents": found.documents, "words": found.words}


@lru_cache(maxsize=2)
def total(folder: Path, units: int, manifest: str) -> Statistics:
    """The counts of all document parts, summed once a process; `manifest` tells one index from the next."""
    lines, df = contracts.parts(folder), np.zeros(units, np.int64)
    for line in lines:
        counts = contracts.read_part("counts", folder / line["part"])
        df[counts["unit"].to_numpy()] += counts["df"].to_numpy()
    return Statistics(sum(line["documents"] for line in lines), sum(line["words"] for line in lines), df)
