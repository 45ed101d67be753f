"""Reciprocal rank fusion of several retrieval routes, in the order of exact fractions.

score(d) = sum over the routes r that list d of w_r / (k + rank_r(d)), ranks from 1 (Cormack, Clarke
and Buettcher 2009; weights as in the spec, "The candidate design").
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numba
import numpy as np

from lib.retrieval.hits import Hits


class Fused(NamedTuple):
    """The fused documents of each query, best first; -1, 0 and 0 after the last."""

    doc: np.ndarray  # int32[queries, depth]
    score: np.ndarray  # float64[queries, depth], the exact score rounded once
    best_rank: np.ndarray  # int32[queries, depth], over the routes


@numba.njit(cache=True, nogil=True)
def exact_score(ranks, weights, k):
    """The score as integers (numerator, denominator); a rank of 0 is a route that lacks the document.

    >>> exact_score(np.array([1, 2, 0]), np.array([2, 1, 1]), 60)  # 2/61 + 1/62
    (185, 3782)
    """
    numerator, denominator = 0, 1
    for r in range(len(ranks)):
        if ranks[r] > 0:
            numerator = numerator * (k + ranks[r]) + weights[r] * denominator
            denominator *= k + ranks[r]
    return numerator, denominator


@numba.njit(cache=True, nogil=True)
def ahead(a, best_a, doc_a, b, best_b, doc_b):
    """Whether a document stands before another; a and b are (numerator, denominator).

    A quotient of two integers below 2^53 is rounded once, so it never turns two scores round:
    unequal quotients decide, equal ones are decided by the integers.
    """
    left, right = a[0] / a[1], b[0] / b[1]
    if left != right:
        return left > right
    left_exact, right_exact = a[0] * b[1], b[0] * a[1]
    if left_exact != right_exact:
        return left_exact > right_exact
    return best_a < best_b or (best_a == best_b and doc_a < doc_b)


@numba.njit(cache=True, nogil=True)
def _fuse(routes, weights, k, doc, score, best_rank):
    route_count, queries, places = routes.shape
    depth = doc.shape[1]
    slots = 4
    while slots < 2 * route_count * places:
        slots *= 2
    slot_doc = np.full(slots, -1, np.int32)
    ranks = np.zeros((slots, route_count), np.int64)
    used = np.empty(route_count * places, np.int64)
    numerator, denominator = np.zeros(depth, np.int64), np.ones(depth, np.int64)
    for q in range(queries):
        seen = 0
        for r in range(route_count):
            for place in range(places):
                d = routes[r, q, place]
                if d < 0:
                    continue
                slot = (d * 40503) & (slots - 1)
                while slot_doc[slot] != d and slot_doc[slot] != -1:
                    slot = (slot + 1) & (slots - 1)
                if slot_doc[slot] == -1:
                    slot_doc[slot] = d
                    used[seen] = slot
                    seen += 1
                if ranks[slot, r] == 0:  # [7, 9, 7]: 7 keeps rank 1, its repeat takes place 3
                    ranks[slot, r] = place + 1
        held = 0
        for i in range(seen):
            slot = used[i]
            d, best = slot_doc[slot], places + 1
            for r in range(route_count):
                if ranks[slot, r] > 0:
                    best = min(best, ranks[slot, r])
            exact = exact_score(ranks[slot], weights, k)
            low, high = 0, held
            while low < high:
                middle = (low + high) // 2
                if ahead(exact, best, d, (numerator[middle], denominator[middle]), best_rank[q, middle], doc[q, middle]):
                    high = middle
                else:
                    low = middle + 1
            if low < depth:
                held = min(held + 1, depth)
                for at in range(held - 1, low, -1):
                    doc[q, at], best_rank[q, at] = doc[q, at - 1], best_rank[q, at - 1]
                    numerator[at], denominator[at] = numerator[at - 1], denominator[at - 1]
                doc[q, low], best_rank[q, low] = d, best
                numerator[low], denominator[low] = exact
            slot_doc[slot] = -1
            ranks[slot] = 0
        for i in range(held):
            score[q, i] = numerator[i] / denominator[i]


def _fits(routes: int, weight: int, largest: int) -> bool:
    """Whether every product of `ahead` stays in int64 and both sides of every quotient below 2^53.

    `weight` is the sum of the weights, `largest` the largest k + rank.
    """
    numerator, denominator = max(weight, 1) * largest ** max(routes - 1, 0), largest**routes
    return max(numerator, denominator) < 2**53 and numerator * denominator < 2**63


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


def _stacked(routes: Mapping[str, Hits]) -> np.ndarray:
    """int32[routes, queries, places]."""
    if not routes:
        raise ValueError("there is no route to fuse; give at least one")
    lengths = {name: len(route.doc) for name, route in routes.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the routes have different numbers of queries: {lengths}; search all of them with the same queries")
    places = max(route.doc.shape[1] for route in routes.values())
    stacked = np.full((len(routes), next(iter(lengths.values())), places), -1, np.int32)
    for r, route in enumerate(routes.values()):
        stacked[r, :, : route.doc.shape[1]] = route.doc
    return stacked


def _fused(stacked: np.ndarray, weights: list[int], k: int, depth: int) -> Fused:
    if depth < 1:
        raise ValueError(f"depth is {depth}; a fused list keeps at least 1 document")
    count, queries, places = stacked.shape
    fused = Fused(np.full((queries, depth), -1, np.int32), np.zeros((queries, depth)), np.zeros((queries, depth), np.int32))
    if _fits(count, sum(weights), k + places):
        _fuse(stacked, np.array(weights, np.int64), k, *fused)
    else:
        _fuse_in_python(stacked, weights, k, fused)
    return fused


def weighted_rrf(routes: Mapping[str, Hits], weights: Mapping[str, int], k: int = 60, depth: int = 20) -> Fused:
    """Fuse the routes of each query by weighted reciprocal rank.

    `routes[name].doc` is int32[queries, any], best first, -1 after the last hit. Scores are compared as exact
    fractions; ties go to the better best rank over the routes, then to the lower corpus row. A document that a route
    repeats counts at its best rank, and later ranks do not close up (`repeats` counts them). Weights are whole
    numbers from 0; a route of weight 0 takes no part, neither its documents nor its ranks.
    With up to 4 routes, 100 places and the usual k the order is proven in int64; beyond that Python integers take over.
    """
    if set(weights) != set(routes):
        raise ValueError(f"the weights name {sorted(weights)} and the routes are {sorted(routes)}; give one weight for each route")
    wrong = {name: weight for name, weight in weights.items() if isinstance(weight, bool) or int(weight) != weight or weight < 0}
    if wrong or not any(weights.values()):
        raise ValueError(f"the weights are {wrong or dict(weights)}; give whole numbers from 0, one of them above 0")
    if int(k) != k or k < 0:
        raise ValueError(f"k is {k}; give a whole number from 0")
    used = {name: route for name, route in routes.items() if weights[name] > 0}
    _stacked(routes)
    return _fused(_stacked(used), [int(weights[name]) for name in used], int(k), depth)


def best_rank(routes: Mapping[str, Hits], depth: int = 20) -> Fused:
    """Order the documents of each query by best rank over the routes, then corpus row; every score is 0.

    The design before weighted RRF replaced it (spec, "The candidate design").
    """
    return _fused(_stacked(routes), [0] * len(routes), 1, depth)


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
    same = (doc[:, :, None] == route[:, None, :]) & (doc >= 0)[:, :, None]
    return np.where(same.any(axis=2), same.argmax(axis=2) + 1, 0).astype(np.int16)
