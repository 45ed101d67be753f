"""The ranked lists of a route: selecting the best k, merging lists of document parts, the `hits` table.

The order of every route is one total order: score rounded to float32, higher first, then
corpus row, lower first. A heap or a merge under it gives the same list whatever the order
in which documents arrive, and the list for k is a prefix of the list for k + 1.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib import contracts
from lib.retrieval import parallel


class Hits(NamedTuple):
    """Documents of each query, best first; -1 and 0 after the last hit."""

    doc: np.ndarray  # int32[queries, k], corpus rows
    score: np.ndarray  # float32[queries, k]


class Heap(NamedTuple):
    """The best k of each query so far, the worst of them at place 0."""

    doc: np.ndarray  # int32[queries, k]
    score: np.ndarray  # float32[queries, k]
    size: np.ndarray  # int32[queries]


def heap(queries: int, k: int, threads: int = 1) -> Heap:
    """An empty heap for each query."""
    if k < 1:
        raise ValueError(f"k is {k}; a route keeps at least 1 document a query")
    best = Heap(np.empty((queries, k), np.int32), np.empty((queries, k), np.float32), np.zeros(queries, np.int32))

    def emptied(first: int, last: int) -> None:
        best.doc[first:last], best.score[first:last] = -1, -np.inf

    parallel.in_ranges(emptied, queries, threads)  # what touches new memory first takes most of the time
    return best


def ranked(best: Heap, threads: int = 1) -> Hits:
    """The heaps as lists, best first, in the same memory: they are no heaps any more, and refuse to be written to."""
    from lib.retrieval import kernels  # numba: only who searches waits for it

    found = Hits(best.doc.view(), best.score.view())
    parallel.in_ranges(lambda first, last: kernels.ranked(first, last, *found), len(best.doc), threads)
    best.doc.flags.writeable = best.score.flags.writeable = False
    return found


def merge(a: Hits, b: Hits, k: int) -> Hits:
    """The best k of two lists over disjoint documents, for each query.

    Exact: a document's score does not depend on the part it stands in.
    """
    from lib.retrieval import kernels  # numba: only who searches waits for it

    merged = none(len(a.doc), k)
    kernels.merge(a.doc, a.score, b.doc, b.score, merged.doc, merged.score)
    return merged


def none(queries: int, k: int) -> Hits:
    """Lists without a hit."""
    return Hits(np.full((queries, k), -1, np.int32), np.zeros((queries, k), np.float32))


def removed_mask(removed, documents: int) -> np.ndarray:
    """bool[documents] from what the caller gave; None removes nothing."""
    mask = np.zeros(documents, bool) if removed is None else np.asarray(removed)
    if mask.dtype != bool or mask.shape != (documents,):
        raise ValueError(f"removed is {mask.dtype}{list(mask.shape)}; it is one bool for each of the {documents} documents")
    return mask


def first_places(found: Hits) -> Hits:
    """The lists with -1 and 0 where a document stands again: it counts once, at its best rank, and later places keep theirs.

    >>> first_places(Hits(np.array([[7, 9, 7, 5]]), ...)).doc  # [[7, 9, -1, 5]]
    """
    order = np.argsort(found.doc, axis=1, kind="stable")
    ordered = np.take_along_axis(found.doc, order, 1)
    again = np.zeros(found.doc.shape, bool)
    np.put_along_axis(again, order[:, 1:], (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0), 1)
    return Hits(np.where(again, np.int32(-1), found.doc), np.where(again, np.float32(0), found.score))


def table(found: Hits) -> pa.Table:
    """The `hits` table of lists, filled up to contracts.DEPTH places."""
    queries, k = found.doc.shape
    if k > contracts.DEPTH:
        raise ValueError(f"the hits table holds {contracts.DEPTH} places a query, not {k}; search with k={contracts.DEPTH}")
    full = none(queries, contracts.DEPTH)
    full.doc[:, :k], full.score[:, :k] = found
    return contracts.table("hits", {"doc": contracts.as_places(full.doc), "score": contracts.as_places(full.score)})


def from_table(hits: pa.Table) -> Hits:
    """The lists of a `hits` table, contracts.DEPTH places a query."""
    return Hits(contracts.places(hits["doc"]), contracts.places(hits["score"]))
