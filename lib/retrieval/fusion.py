"""Reciprocal rank fusion of several retrieval routes, in the order of exact fractions.

score(d) = sum over the routes r that list d of w_r / (k + rank_r(d)), ranks from 1 (Cormack, Clarke
and Buettcher 2009; weights as in the spec, "The candidate design").
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from lib.retrieval import fusion_kernel, parallel
from lib.retrieval.hits import Hits

STACKED = 1024  # queries that are laid side by side at a time, so that they stay in the cache


class Fused(NamedTuple):
    """The fused documents of each query, best first; -1, 0 and 0 after the last."""

    doc: np.ndarray  # int32[queries, depth]
    score: np.ndarray  # float64[queries, depth], the exact score rounded once
    best_rank: np.ndarray  # int32[queries, depth], over the routes


def _fuse_in_python(routes: np.ndarray, weights: list[int], k: int, fused: Fused) -> None:
    """The same for numbers of any size."""
    for q in range(routes.shape[1]):
        ranks: dict[int, dict[int, int]] = {}
        for r, route in enumerate(routes[:, q].tolist()):
            for rank, doc in enumerate(route, 1):
                if doc >= 0:
                    ranks.setdefault(doc, {}).setdefault(r, rank)
        exact = {doc: sum(Fraction(weights[r], k + rank) for r, rank in of.items()) for doc, of in ranks.items()}
        order = sorted(ranks, key=lambda doc: (-exact[doc], min(ranks[doc].values()), doc))[: fused.doc.shape[1]]
        for i, doc in enumerate(order):
            fused.doc[q, i], fused.score[q, i], fused.best_rank[q, i] = doc, float(exact[doc]), min(ranks[doc].values())


def _stacked(docs: list[np.ndarray], first: int, last: int) -> np.ndarray:
    """int32[routes, queries, places] of a range of the queries."""
    stacked = np.empty((len(docs), last - first, max(1, *(doc.shape[1] for doc in docs))), np.int32)
    for r, doc in enumerate(docs):
        stacked[r, :, : doc.shape[1]], stacked[r, :, doc.shape[1] :] = doc[first:last], -1
    return stacked


def _fused(routes: Mapping[str, Hits], weights: Mapping[str, int], k: int, depth: int, threads: int) -> Fused:
    if not routes:
        raise ValueError("there is no route to fuse; give at least one")
    lengths = {name: len(route.doc) for name, route in routes.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the routes have different numbers of queries: {lengths}; search all of them with the same queries")
    if depth < 1:
        raise ValueError(f"depth is {depth}; a fused list keeps at least 1 document")
    queries, used = next(iter(lengths.values())), [name for name in routes if weights[name] or not any(weights.values())]
    used.sort(key=lambda name: -weights[name])
    docs, given = [routes[name].doc for name in used], [int(weights[name]) for name in used]
    places = max(1, *(doc.shape[1] for doc in docs))
    fused = Fused(np.full((queries, depth), -1, np.int32), np.zeros((queries, depth)), np.zeros((queries, depth), np.int32))
    if fusion_kernel.fits(len(used), places, sum(given), k + places):
        part, unit = fusion_kernel.shares(given, k, places)

        def fuse(stacked: np.ndarray, some: Fused) -> None:
            fusion_kernel.fuse(stacked, part, np.array(given, np.int64), k, unit, *some)
    else:

        def fuse(stacked: np.ndarray, some: Fused) -> None:
            _fuse_in_python(stacked, given, k, some)

    def one_range(first: int, last: int) -> None:
        for at in range(first, last, STACKED):
            end = min(at + STACKED, last)
            fuse(_stacked(docs, at, end), Fused(*(column[at:end] for column in fused)))

    parallel.in_ranges(one_range, queries, threads)
    return fused


def _is_whole(number) -> bool:
    """Whether it is a whole number from 0; NaN, infinity, None and True are none."""
    whole = isinstance(number, (int, np.integer)) or isinstance(number, (float, np.floating)) and number.is_integer()
    return whole and not isinstance(number, bool) and number >= 0


def weighted_rrf(routes: Mapping[str, Hits], weights: Mapping[str, int], k: int = 60, depth: int = 20, threads: int = 1) -> Fused:
    """Fuse the routes of each query by weighted reciprocal rank.

    `routes[name].doc` is int32[queries, any], best first, -1 after the last hit. Scores are compared as exact
    fractions; ties go to the better best rank over the routes, then to the lower corpus row. A document that a route
    repeats counts at its best rank, and later ranks do not close up (`repeats` counts them). Weights are whole
    numbers from 0; a route of weight 0 takes no part, neither its documents nor its ranks.
    With up to 4 routes, 100 places and the usual k the order is proven in int64; beyond that Python integers take over.
    """
    if set(weights) != set(routes):
        raise ValueError(f"the weights name {sorted(weights)} and the routes are {sorted(routes)}; give one weight for each route")
    wrong = {name: weight for name, weight in weights.items() if not _is_whole(weight)}
    if wrong or not any(weights.values()):
        raise ValueError(f"the weights are {wrong or dict(weights)}; give whole numbers from 0, one of them above 0")
    if not _is_whole(k):
        raise ValueError(f"k is {k}; give a whole number from 0")
    return _fused(routes, weights, int(k), depth, threads)


def best_rank(routes: Mapping[str, Hits], depth: int = 20, threads: int = 1) -> Fused:
    """Order the documents of each query by best rank over the routes, then corpus row; every score is 0.

    The design before weighted RRF replaced it (spec, "The candidate design").
    """
    return _fused(routes, dict.fromkeys(routes, 0), 1, depth, threads)


def repeats(routes: Mapping[str, Hits]) -> dict[str, int]:
    """How many places of each route repeat a document that stands earlier in the same list."""
    counted = {}
    for name, route in routes.items():
        ordered = np.sort(route.doc, axis=1)
        counted[name] = int(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).sum())
    return counted


def rank_in(route: np.ndarray, doc: np.ndarray) -> np.ndarray:
    """int16[queries, n]: the best rank, from 1, of each `doc` int32[queries, n] in the list of its query.

    `route` is int32[queries, places]; 0 where the document is not in the list.
    """
    rank = np.empty(doc.shape, np.int16)
    fusion_kernel.rank_in(np.ascontiguousarray(route, np.int32), np.ascontiguousarray(doc, np.int32), rank)
    return rank
