"""The inverted index of one document part over the units that the queries hold.

A unit is a word (BM25) or a word n-gram (5-gram route). The queries are known ahead, so
only their units are indexed and counted. Statistics are sums: they add over document parts.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from lib.retrieval import hits, kernels, tokenizer
from lib.retrieval.hits import Heap, Hits


class Groups(NamedTuple):
    """Distinct members of each group: group g has `member[start[g]:start[g + 1]]`, ascending, each `count` times."""

    start: np.ndarray  # int64[groups + 1]
    member: np.ndarray  # int32
    count: np.ndarray  # int64


class Postings(NamedTuple):
    """One document part: `units` groups its documents (rows inside the part) by unit; `length` is int64[documents], in words."""

    units: Groups
    length: np.ndarray


class Statistics(NamedTuple):
    """Of all documents, the removed ones too: how many, their words, and how many hold each unit (int64[units])."""

    documents: int
    words: int
    df: np.ndarray


def group(key: np.ndarray, member: np.ndarray, keys: int, members: int) -> Groups:
    """Group flat (key, member) pairs by key; both count from 0, and keys * members < 2**63."""
    pairs, count = np.unique(key.astype(np.int64) * max(members, 1) + member, return_counts=True)
    start = np.searchsorted(pairs, np.arange(keys + 1, dtype=np.int64) * max(members, 1))
    return Groups(start, (pairs % max(members, 1)).astype(np.int32), count)


def vocabulary(queries: Iterable[str]) -> dict[str, int]:
    """The distinct words of the queries, numbered in the order of their bytes."""
    known = tokenizer.vocabulary(tokenizer.of(list(queries)))
    return {word: number for number, word in enumerate(tokenizer.listed(known))}


def words(texts: Sequence[str], known: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """The word numbers of all texts end to end (-1: not known), and the length of each text in words."""
    return tokenizer.words(tokenizer.of(texts), tokenizer.of_words(known))


def statistics(postings: Postings) -> Statistics:
    """The statistics of one document part."""
    return Statistics(len(postings.length), int(postings.length.sum()), np.diff(postings.units.start))


def add(best: Heap, units: Groups, queries: Groups, weight, part, scale: float, removed, row: int, threads: int = 1) -> None:
    """Put documents of a part into the heaps, one a query, by the sum over the query's units u, ascending, of weight * part.

    `weight` goes with `queries.member`, `part` with `units.member`; both are above 0 and both float64 or int64. The sum is rounded
    to float32, then multiplied by `scale`, a power of two. `removed` is bool[documents], `row` the corpus row of the first of them.
    """

    def one_range(first: int, last: int) -> None:
        kernels.sum_units(
            first, last, queries.start, queries.member, weight, units.start, units.member, part, removed,
            row, np.float32(scale), best.doc, best.score, best.size,
        )

    hits.in_threads(one_range, len(best.size), threads)


def search(postings: Postings, queries: Groups, weight, part, scale: float, k: int, removed, row: int, threads: int) -> Hits:
    """The best k documents of the part for each query, as `add` scores them; `removed` may be None."""
    best = hits.heap(len(queries.start) - 1, k, threads)
    add(best, postings.units, queries, weight, part, scale, hits.removed_mask(removed, len(postings.length)), row, threads)
    return hits.ranked(best, threads)
