"""Near-duplicate files of any size: Parquet shards, one row a document, its near-duplicates as a list of structs.

Made like the real ones: ids are zero-padded, most documents have no neighbour, the sizes of the groups of near-duplicates
follow a power law, Jaccards are float32 from 0.7 up, and an edge may stand at one of its two ends only.
`python -m lib.sample.near_files FOLDER --documents 4340000 --shards 80 --seed 0`
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lib import files

EDGE = pa.struct({"doc_id": pa.string(), "jaccard": pa.float32()})
SCHEMA = pa.schema({"doc_id": pa.string(), "duplicates": pa.list_(EDGE)})
FLOOR = 0.7  # no lower Jaccard is written
LARGEST = 400  # documents in a group
POWER = 3.0  # a group of s documents is s**-POWER as frequent as one of 1


class Groups(NamedTuple):
    """Groups of near-duplicates: `of` is int32[documents], -1 without one; `members` int32, group g from `ends[g]` to `ends[g + 1]`."""

    of: np.ndarray
    members: np.ndarray
    ends: np.ndarray


def write(folder: str | Path, documents: int, shards: int, seed: int = 0, paired: float = 0.3, both: float = 0.5, row_group: int = 1 << 20) -> int:
    """Write `shards` Parquet files, one at a time, and return the number of edges they hold; same arguments, same rows.

    `paired` is the share of documents in a group, `both` the share of edges that stand at both ends; the others stand at one,
    drawn by the edge. Every tenth pair of a group is no edge. ValueError where there are more shards than documents.
    """
    if not 0 < shards <= documents:
        raise ValueError(f"{documents} documents cannot lie in {shards} shards; take 1 to {documents} shards")
    rng = np.random.default_rng(seed)
    groups, starts = _groups(rng, documents, paired), np.linspace(0, documents, shards + 1).astype(np.int64)
    folder, written = Path(folder), 0
    for shard in range(shards):
        first, last = starts[shard : shard + 2]
        source, target, jaccard = _edges(groups, first, last, seed, both)
        ends = np.concatenate([[0], np.cumsum(np.bincount(source - first, minlength=last - first))]).astype(np.int32)
        edges = pa.StructArray.from_arrays([_spelled(target, starts), pa.array(jaccard)], fields=list(EDGE))
        lists = pa.ListArray.from_arrays(pa.array(ends), edges)
        with files.whole(folder / f"doc_duplicates_{shard:05d}.parquet") as temporary:
            table = pa.table([_spelled(np.arange(first, last), starts), lists], schema=SCHEMA)
            pq.write_table(table, temporary, row_group_size=row_group, compression="zstd")
        written += len(target)
    return written


def docids(documents: int, shards: int, chosen: np.ndarray) -> list[str]:
    """The zero-padded ids of the chosen documents, counted from 0 over all shards."""
    return _spelled(np.asarray(chosen), np.linspace(0, documents, shards + 1).astype(np.int64)).to_pylist()


def _groups(rng: np.random.Generator, documents: int, paired: float) -> Groups:
    sizes = np.arange(2, max(3, min(LARGEST, documents) + 1))
    share = sizes**-POWER / (sizes**-POWER).sum()
    wanted = int(paired * documents)
    drawn = rng.choice(sizes, size=int(wanted / (sizes * share).sum()) + 1, p=share)
    ends = np.concatenate([[0], np.cumsum(drawn)])
    ends = ends[ends <= documents].astype(np.int64)
    members = rng.permutation(documents)[: ends[-1]].astype(np.int32)
    of = np.full(documents, -1, np.int32)
    of[members] = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return Groups(of, members, ends)


def _edges(groups: Groups, first: int, last: int, seed: int, both: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source, target and Jaccard of the edges that stand in the rows from first to last, in the order of the rows."""
    rows = first + np.flatnonzero(groups.of[first:last] >= 0)
    own = groups.of[rows]
    sizes = np.diff(groups.ends)[own]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    source, target = np.repeat(rows, sizes), groups.members[np.repeat(groups.ends[own], sizes) + within].astype(np.int64)
    low, high = np.minimum(source, target).astype(np.uint64), np.maximum(source, target).astype(np.uint64)
    drawn = _mixed((low << np.uint64(32) | high) + np.uint64(seed))  # of the pair, so that both ends agree
    one_end = (drawn >> np.uint64(40)) / 2**24 >= both
    at_low = (drawn >> np.uint64(39)) & np.uint64(1) == 0
    kept = (source != target) & (drawn % np.uint64(10) != 0) & (~one_end | (at_low == (source < target)))
    unit = ((drawn[kept] >> np.uint64(8)) & np.uint64((1 << 24) - 1)) / 2**24
    return source[kept], target[kept], (FLOOR + (1 - FLOOR) * unit**2).astype(np.float32)


def _mixed(keys: np.ndarray) -> np.ndarray:
    """Each uint64 mixed to another that looks drawn (the finalizer of SplitMix64; Steele, Lea and Flood 2014)."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ keys >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ keys >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return keys ^ keys >> np.uint64(31)


def _spelled(rows: np.ndarray, starts: np.ndarray) -> pa.Array:
    """Zero-padded ids, five digits of the shard and at least five of the place in it."""
    shard = np.searchsorted(starts, rows, side="right") - 1
    digits = [pc.utf8_lpad(pc.cast(pa.array(part), pa.string()), 5, "0") for part in (shard, rows - starts[shard])]
    return pc.binary_join_element_wise("shard", *digits, "_")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lib.sample.near_files", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where the shards are written")
    parser.add_argument("--documents", type=int, default=4_340_000)
    parser.add_argument("--shards", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--paired", type=float, default=0.3, help="share of documents that have a near-duplicate")
    parser.add_argument("--both", type=float, default=0.5, help="share of edges that stand at both ends")
    parser.add_argument("--row-group", type=int, default=1 << 20, help="rows of a row group")
    given = parser.parse_args()
    edges = write(given.folder, given.documents, given.shards, given.seed, given.paired, given.both, given.row_group)
    print(f"{given.documents:,} documents and {edges:,} edges in {given.shards} files of {given.folder}")


if __name__ == "__main__":
    main()
