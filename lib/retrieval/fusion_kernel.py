"""The compiled loops of the fusion.

A score is added as whole numbers of units, each w_r / (k + rank_r) rounded down. So it lies less than one unit a
route above its sum: sums further apart decide, nearer ones are compared as fractions of integers.
"""

import numpy as np

from lib.retrieval.compiled import compiled

ROUTES = 4  # a document's ranks stand in one word, 16 bits each

_U = np.uint64
_DOC, _RANK, _RANK_BITS = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF), np.uint64(16)


@compiled
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


@compiled
def exact_score(packed, weights, k):
    """The score as integers (numerator, denominator), and the best rank; no branch depends on the ranks.

    `packed` holds a rank in 16 bits of each route, the first lowest; 0 is a route that lacks the document.
    >>> exact_score(np.uint64(1 | 2 << 16), np.array([2, 1, 1]), 60)  # 2/61 + 1/62
    ((185, 3782), 1)
    """
    numerator, denominator, best = np.int64(0), np.int64(1), _RANK + _U(1)
    for r in range(len(weights)):
        rank = packed & _RANK
        packed >>= _RANK_BITS
        there = np.int64(rank > _U(0))
        bottom = there * (k + np.int64(rank) - 1) + 1
        numerator = numerator * bottom + there * weights[r] * denominator
        denominator *= bottom
        best = min(best, rank if rank > _U(0) else best)
    return (numerator, denominator), np.int64(best)


@compiled
def _exactly_ahead(a, b, cell, weights, k):
    """`ahead` for the documents in two cells of the table."""
    exact_a, best_a = exact_score(cell[a + _U(1)], weights, k)
    exact_b, best_b = exact_score(cell[b + _U(1)], weights, k)
    return ahead(exact_a, best_a, cell[a] & _DOC, exact_b, best_b, cell[b] & _DOC)


@compiled
def _home(d, shift):
    """Where the search for a document begins in the table."""
    return (_U(np.uint32(d)) * _U(0x9E3779B97F4A7C15)) >> shift << _U(1)


@compiled
def _total(ranks, flat, count, places):
    """The units of a document's ranks."""
    total, base = np.int64(0), _U(0)
    for _ in range(count):
        total += flat[base + (ranks & _RANK)]
        base += _U(places + 1)
        ranks >>= _RANK_BITS
    return total


@compiled
def fuse(routes, part, weights, k, unit, doc, score, best_rank):
    """Fuse `routes` int32[routes, queries, places], the heaviest first; `part[r, rank]` is its share in units, 0 for rank 0.

    A table of 2 * slots words holds a document and its ranks side by side. Its first word has the number of
    the query above the document, so that nothing is cleared between queries; sums carry their place in the table below a unit.
    Only documents that come to `bar`, just below the first route's depth-th, are sorted; of 3 x 100 places some 25.
    """
    count, queries, places = routes.shape
    depth, mask = doc.shape[1], _U(unit - 1)
    cell = np.zeros(unit, np.uint64)
    used = np.zeros(count * places + 1, np.uint64)
    taken = np.zeros(places + 1, np.uint64)  # places of a list whose documents may stand in the table
    cut_at, cuts = np.full(count, -1), np.zeros(count, np.int64)  # the bar that each route was cut at, and where
    best = np.zeros(depth + 1, np.int64)
    flat = part.copy().reshape(-1)
    slack = np.int64(count + 1) * unit  # sums so far apart are told apart: a unit a route, and the places below
    rest = np.zeros(count, np.int64)  # what the lighter routes can add
    for r in range(count):
        rest[r] = part[r + 1 :, 1].sum()
    shift = _U(64)
    while (_U(1) << (_U(65) - shift)) < _U(unit):
        shift -= _U(1)
    for q in range(queries):
        query, seen, bar = _U(q + 1) << _U(32), _U(0), np.int64(0)
        for r in range(count):
            row, points, at_rank = routes[r, q], part[r], _RANK_BITS * _U(r)
            # below `cut` a document that no heavier route lists cannot come to the bar
            if bar != cut_at[r]:
                cut_at[r], cuts[r] = bar, places
                while cuts[r] > 0 and points[cuts[r]] + rest[r] < bar:
                    cuts[r] -= 1
            cut, again = _U(cuts[r]), _U(0)
            for place in range(cut):
                d = row[place]
                if d < 0:
                    continue
                key, slot = query | _U(np.uint32(d)), _home(d, shift)
                while cell[slot] != key and cell[slot] >= query:
                    slot = (slot + _U(2)) & mask
                taken[again] = place
                if cell[slot] == key:
                    again += _U(1)
                    continue
                cell[slot], cell[slot + _U(1)] = key, _U(place + _U(1)) << at_rank
                used[seen] = slot
                seen += _U(points[place + _U(1)] >= bar)
                if r == 0 and seen == _U(depth) and bar == 0:
                    bar = max(points[place + _U(1)] - slack, 0)
            for place in range(cut, _U(places)):  # no branch: most stand in no heavier route
                taken[again] = place
                again += _U(cell[_home(row[place], shift)] >= query)
            for i in range(again):
                d = row[taken[i]]
                if d < 0:
                    continue
                key, slot = query | _U(np.uint32(d)), _home(d, shift)
                while cell[slot] != key and cell[slot] >= query:
                    slot = (slot + _U(2)) & mask
                ranks = cell[slot + _U(1)]
                if cell[slot] == key and (ranks >> at_rank) & _RANK == _U(0):  # [7, 9, 7]: 7 keeps rank 1, its repeat takes place 3
                    cell[slot + _U(1)] = ranks | _U(taken[i] + _U(1)) << at_rank
                    before = _total(ranks, flat, count, places)
                    used[seen] = slot
                    seen += _U((before < bar) & (before + points[taken[i] + _U(1)] >= bar))
        held = 0
        for i in range(seen):
            total, at = np.int64(used[_U(i)]) + _total(cell[used[_U(i)] + _U(1)], flat, count, places), held
            while at > 0:
                gap = total - best[at - 1]
                if gap <= -slack:
                    break
                if gap < slack and not _exactly_ahead(_U(total) & mask, _U(best[at - 1]) & mask, cell, weights, k):
                    break
                best[at] = best[at - 1]
                at -= 1
            best[at] = total  # place `depth` is one too many, and free
            held = min(held + 1, depth)
        for i in range(held):
            at = _U(best[i]) & mask
            exact, best_rank[q, i] = exact_score(cell[at + _U(1)], weights, k)
            doc[q, i], score[q, i] = np.int32(cell[at] & _DOC), exact[0] / exact[1]


def shares(weights: list[int], k: int, places: int) -> tuple[np.ndarray, int]:
    """int64[routes, places + 1] of w/(k + rank) rounded down to units, and the unit: two words for each slot of the table."""
    unit = 16
    while unit < 8 * len(weights) * places:
        unit *= 2
    units = (2**62 // unit - len(weights) - 2) * (k + 1) // max(sum(weights), 1)  # in a score of 1; no sum passes 2^62
    return np.array([[0] + [weight * units // (k + rank) * unit for rank in range(1, places + 1)] for weight in weights], np.int64), unit


def fits(routes: int, places: int, weight: int, largest: int) -> bool:
    """Whether ranks fit a word, every product of `ahead` stays in int64, and both sides of every quotient below 2^53.

    `weight` is the sum of the weights, `largest` the largest k + rank.
    """
    numerator, denominator = max(weight, 1) * largest ** max(routes - 1, 0), largest**routes
    return routes <= ROUTES and places < 2**16 and max(numerator, denominator) < 2**53 and numerator * denominator < 2**63


@compiled
def rank_in(route, doc, rank):
    for q in range(doc.shape[0]):
        row = route[q]
        for i in range(doc.shape[1]):
            d, best = doc[q, i], np.int32(32767)
            for place in range(len(row)):
                best = min(best, np.int32(place) if row[place] == d else np.int32(32767))
            rank[q, i] = best + 1 if d >= 0 and best < 32767 else 0
