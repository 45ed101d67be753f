"""A near-duplicate file: which column is which, by type alone, and its rows and edges as Arrow arrays.

One row a document: one string column, the document's id, and one column of lists of structs, each struct with one string,
the neighbour's id, and one float, the Jaccard. Any of Arrow's string and list types will do, dictionary-encoded strings too;
float64 is rounded to float32. Columns and fields of other types are not read; two of one kind are refused, for nothing says which counts.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lib import paths, trace
from lib.qrels.near_duplicates import arrow
from lib.qrels.refusals import Refused

FORMAT = 1  # of what is cached of a file; what has another is made again
BATCH = 1 << 16  # rows decoded at once, fewer where the lists are long, so that a row group of any size stays small in memory
EDGES = 1 << 19  # edges decoded at once, about


class NearFile(NamedTuple):
    """An open file, the row (from 0) at which each of its row groups ends, and the names of its two columns and of the struct's two fields."""

    path: Path
    parquet: pq.ParquetFile
    ends: np.ndarray
    docid: str
    duplicates: str
    neighbour: str
    jaccard: str


class Edges(NamedTuple):
    """Edges in Arrow and numpy: `row` int64, a place in what they were read from; `neighbour` strings as they stand; `jaccard` float32."""

    row: np.ndarray
    neighbour: pa.Array
    jaccard: np.ndarray


def near_files(folder: Path) -> list[Path]:
    """The Parquet files right in the folder, by name; Refused where there is none."""
    folder = Path(folder)
    found = sorted(path for path in folder.glob("*.parquet") if path.is_file() and not path.name.startswith("."))
    if not found:
        way_out = "name the folder of the near-duplicate files by --near-dup-dir or QRELS_NEAR_DUP_DIR"
        raise Refused(f"{paths.shown(folder)} holds no .parquet file; {way_out}")
    return found


def identity(path: Path) -> str:
    """What a cache knows a file by: the cache's own format, and the file's name, bytes, time of change in nanoseconds and hash of the footer."""
    trace.record("read", path)
    try:
        with open(path, "rb") as handle:
            status = os.fstat(handle.fileno())
            handle.seek(max(0, status.st_size - 8))
            length = int.from_bytes(handle.read(8)[:4], "little")
            handle.seek(max(0, status.st_size - 8 - length))
            footer = hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise Refused(f"{paths.shown(path)} cannot be read ({error.strerror}); make it readable") from error
    return f"{FORMAT} {path.name} {status.st_size} {status.st_mtime_ns} {footer}"


def opened(path: Path) -> NearFile:
    """Open a file and find its columns; Refused, by name, where it is damaged, foreign or ambiguous."""
    with _readable(path):
        parquet = pq.ParquetFile(path)
    schema = parquet.schema_arrow
    docid = _only(path, schema, _is_string, "column of strings for the document ids")
    duplicates = _only(path, schema, lambda kind: _is_list(kind) and pa.types.is_struct(kind.value_type), "column of lists of structs")
    struct = schema.field(schema.get_field_index(duplicates)).type.value_type
    neighbour = _only(path, struct, _is_string, f"string in the structs of {duplicates!r} for the neighbour's id")
    jaccard = _only(path, struct, lambda kind: kind in (pa.float32(), pa.float64()), f"float32 in the structs of {duplicates!r} for the Jaccard")
    held = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    return NearFile(path, parquet, np.cumsum(held, dtype=np.int64), docid, duplicates, neighbour, jaccard)


def batches(near: NearFile, columns: list[str], row_groups: list[int] | None = None) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """The columns of some or all row groups (ascending), a batch at a time, each with the row of the file, from 0, of each of its rows."""
    groups = range(len(near.ends)) if row_groups is None else row_groups
    held = [near.parquet.metadata.row_group(group) for group in groups]
    runs = (np.arange(near.ends[group] - one.num_rows, near.ends[group]) for group, one in zip(groups, held, strict=True))
    rows = np.concatenate([np.zeros(0, np.int64), *runs])
    longest = max((_values(one, columns) / one.num_rows for one in held if one.num_rows), default=1)
    at = 0
    with _readable(near.path):
        size = max(1, min(BATCH, int(EDGES / max(1, longest))))
        for batch in near.parquet.iter_batches(size, row_groups=list(groups), columns=columns, use_threads=False):
            yield rows[at : at + batch.num_rows], batch
            at += batch.num_rows


def groups(near: NearFile, rows: np.ndarray) -> list[int]:
    """The row groups that hold the rows, ascending."""
    return np.unique(np.searchsorted(near.ends, rows, side="right")).tolist()


def ascending(strings: Iterable[str]) -> pa.Array:
    """Strings in the order in which Arrow and Parquet compare them: by their bytes in UTF-8."""
    array = arrow.strings(strings)
    return array.take(pc.sort_indices(array))


def possible(near: NearFile, values: pa.Array) -> tuple[list[int], pa.Array]:
    """The row groups that may hold one of the values (ascending) as an id, by their statistics, and the values that the file may hold."""
    leaf = next(leaf for leaf in range(len(near.parquet.schema)) if near.parquet.schema.column(leaf).path == near.docid)
    bounds = {}
    for group in range(len(near.ends)):
        statistics = near.parquet.metadata.row_group(group).column(leaf).statistics
        if statistics is None or not statistics.has_min_max or not statistics.has_null_count or statistics.null_count:
            return list(range(len(near.ends))), values
        try:
            bounds[group] = statistics.min, statistics.max
        except UnicodeDecodeError:  # a writer may cut a bound inside a character
            return list(range(len(near.ends))), values
    firsts, lasts = (arrow.strings(bound[i] for bound in bounds.values()) for i in (0, 1))
    low, high = arrow.values(pc.search_sorted(values, firsts, side="left")), arrow.values(pc.search_sorted(values, lasts, side="right"))
    found = np.flatnonzero(low < high)
    return found.tolist(), values[int(low[found].min()) : int(high[found].max())] if len(found) else values[:0]


def docids(near: NearFile, batch: pa.RecordBatch, rows: np.ndarray) -> pa.Array:
    """The ids of a batch of these rows of the file; Refused where one is null."""
    column = batch.column(near.docid)
    if column.null_count:
        row = rows[pc.index(column.is_null(), True).as_py()]
        raise Refused(f"{paths.shown(near.path)} row {row} has no id in {near.docid!r}; every row needs the id of its document")
    return _plain(column)


def edges(near: NearFile, lists: pa.Array, rows: np.ndarray) -> Edges:
    """The edges of lists that stand in the given rows of the file; `row` is the place among the lists.

    A null or empty list has none. Refused, with file and row, where a struct, an id or a Jaccard is null, or a Jaccard is
    not finite or not in 0 to 1.
    """
    there = arrow.values(pc.indices_nonzero(lists.is_valid())).astype(np.int64)
    parents, structs = np.repeat(there, arrow.values(pc.list_value_length(lists).drop_null())), pc.list_flatten(lists)
    neighbour, jaccard = (structs.field(structs.type.get_field_index(name)) for name in (near.neighbour, near.jaccard))
    for what, part in (("struct", structs), (f"{near.neighbour!r}", neighbour), (f"{near.jaccard!r}", jaccard)):
        if part.null_count:
            row = rows[parents[pc.index(part.is_null(), True).as_py()]]
            raise Refused(f"{paths.shown(near.path)} row {row} holds a neighbour whose {what} is null; every one needs an id and a Jaccard")
    values = arrow.values(jaccard)
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))  # not of `values < 0 | values > 1`, which NaN passes
    if len(wrong):
        row = rows[parents[wrong[0]]]
        raise Refused(f"{paths.shown(near.path)} row {row} holds the Jaccard {values[wrong[0]]}; a Jaccard lies in 0 to 1")
    return Edges(parents, _plain(neighbour), values.astype(np.float32, copy=False))


def _values(group: pq.RowGroupMetaData, columns: list[str]) -> int:
    """The values in the longest leaf of the columns."""
    return max(leaf.num_values for leaf in map(group.column, range(group.num_columns)) if leaf.path_in_schema.startswith(tuple(columns)))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what Arrow says of a damaged file into a refusal by name."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise Refused(f"{paths.shown(path)} is no Parquet file that can be read ({reason}); fetch it again or take it out of the folder") from error


def _only(path: Path, fields, fits, what: str) -> str:
    names = [field.name for field in fields]
    found = [field.name for field in fields if fits(field.type)]
    if len(found) != 1:
        named = f"{len(found)}: {', '.join(found)}" if found else "none"
        raise Refused(f"{paths.shown(path)} needs exactly one {what}, and has {named}; take the file out of the folder, or write it with one")
    if names.count(found[0]) > 1:
        raise Refused(f"{paths.shown(path)} has {names.count(found[0])} columns or fields named {found[0]!r}; write it with names of their own")
    return found[0]


def _is_string(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view))


def _plain(strings: pa.Array) -> pa.Array:
    return strings if strings.type == pa.string() else strings.cast(pa.string())
