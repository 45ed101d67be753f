"""The inverted index of one document part over the n-grams that the queries hold.

The queries are known ahead, so only their n-grams are indexed and counted. Statistics are sums: they add over document parts.
"""

from typing import NamedTuple

import numpy as np

from lib.retrieval import hits, kernels, parallel
from lib.retrieval.hits import Heap, Hits


class Groups(NamedTuple):
    """Distinct members of each group: group g has `member[start[g]:start[g + 1]]`, ascending."""

    start: np.ndarray  # int64[groups + 1]
    member: np.ndarray  # int32


class Postings(NamedTuple):
    """One document part: `units` groups its documents (rows inside the part) by n-gram; `length` is int64[documents], in words."""

    units: Groups
    length: np.ndarray


class Statistics(NamedTuple):
    """Of all documents, the removed ones too: how many, their words, and how many hold each unit (int64[units])."""

    documents: int
    words: int
    df: np.ndarray


def statistics(postings: Postings) -> Statistics:
    """The statistics of one document part."""
    return Statistics(len(postings.length), int(postings.length.sum()), np.diff(postings.units.start))


def add(best: Heap, units: Groups, weight: np.ndarray, queries: Groups, scale: float, removed, row: int, threads: int = 1) -> None:
    """Put documents of a part into the heaps, one a query, by the sum of the weights of the units that they share with the query.

    `weight` (int64, above 0) goes with the groups of `units`. The sum is rounded to float32, then multiplied by `scale`, a power
    of two. `removed` is bool[documents], `row` the corpus row of the first of them.
    """

    def one_range(first: int, last: int) -> None:
        kernels.sum_units(first, last, *queries, weight, *units, removed, row, np.float32(scale), *best)

    parallel.in_ranges(one_range, len(best.size), threads)


def search(postings: Postings, weight: np.ndarray, queries: Groups, scale: float, k: int, removed, row: int, threads: int) -> Hits:
    """The best k documents of the part for each query, as `add` scores them; `removed` may be None."""
    best = hits.heap(len(queries.start) - 1, k, threads)
    add(best, postings.units, weight, queries, scale, hits.removed_mask(removed, len(postings.length)), row, threads)
    return hits.ranked(best, threads)
