"""The reverse edges of near-duplicate files: who names a document, from one pass over each file, kept sorted on disk.

A file's index holds its edges turned around, sorted by the neighbour: `neighbour`, `docid` (of the row) and `jaccard`, ids in
the API spelling. It lies uncompressed in Arrow's format and is searched where it lies, by bisection, so that a later round
reads a few pages of it. A file that changed gets a new index; a build that was killed goes on with the next file.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import files
from lib.qrels import names
from lib.qrels.near_duplicates import arrow, near_schema

SCHEMA = pa.schema({"neighbour": pa.string(), "docid": pa.string(), "jaccard": pa.float32()})


def api(docids: pa.Array) -> pa.Array:
    """`lib.ids.api` of every id, in Arrow."""
    padded = pc.match_substring_regex(docids, r"^shard_[0-9]+_0[0-9]+$")  # a fifth of them: what follows is six times as slow as this
    shortened = pc.replace_substring_regex(docids.filter(padded), r"^(shard_[0-9]+)_0+([0-9]+)$", r"\1_\2")
    return pc.replace_with_mask(docids, padded, shortened)


def ready(path: Path, identity: str, cache: Path) -> Path:
    """The index of a near-duplicate file, made now where the cache has none of that identity."""
    index = cache / f"{names.safe(path.stem)}.arrow"
    if _mark(index) != {b"of": identity.encode()}:
        table = build(path).replace_schema_metadata({b"of": identity.encode()})
        with files.whole(index) as temporary, pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return index


def forget(cache: Path, near_files: Sequence[Path]) -> None:
    """Take away the indexes of files that have gone."""
    kept = {f"{names.safe(path.stem)}.arrow" for path in near_files}
    for index in cache.glob("*.arrow"):
        if index.name not in kept:
            index.unlink()


def build(path: Path) -> pa.Table:
    """The edges of a file turned around and sorted by the neighbour; self edges are left out."""
    near, found = near_schema.opened(path), []
    for rows, batch in near_schema.batches(near, [near.docid, near.duplicates]):
        own, edges = near_schema.docids(near, batch, rows), near_schema.edges(near, batch.column(near.duplicates), rows)
        own, neighbour = api(own).take(arrow.numbers(edges.row)), api(edges.neighbour)
        turned = pa.Table.from_arrays([neighbour, own, arrow.numbers(edges.jaccard)], schema=SCHEMA)
        found.append(turned.filter(pc.not_equal(own, neighbour)))
    table = (pa.concat_tables(found) if found else SCHEMA.empty_table()).combine_chunks()
    return table.take(pc.sort_indices(table["neighbour"])).combine_chunks()


def named(index: Path, wanted: pa.Array) -> Iterator[tuple[str, str, float]]:
    """Who names the wanted ids (API spelling, sorted): each as (wanted id, the row's id, Jaccard)."""
    with pa.memory_map(str(index)) as source:
        table = pa.ipc.open_file(source).read_all()
        for batch in table.to_batches():
            low, high = (arrow.values(pc.search_sorted(batch.column("neighbour"), wanted, side=side)).astype(np.int64) for side in ("left", "right"))
            counts = high - low
            rows = np.repeat(low, counts) + np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            found = batch.take(arrow.numbers(rows))
            yield from zip(*(found.column(name).to_pylist() for name in SCHEMA.names), strict=True)


def _mark(index: Path) -> dict | None:
    try:
        with pa.memory_map(str(index)) as source:
            return pa.ipc.open_file(source).schema.metadata
    except (OSError, pa.ArrowException):
        return None
