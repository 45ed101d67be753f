"""Fusion: the order of exact fractions, ties, repeats, missing documents, and what is refused."""

import json
from fractions import Fraction
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.retrieval import fusion, fusion_kernel
from lib.retrieval.hits import Hits, first_places

CASES = Path(__file__).parent / "cases"
WEIGHTS = {"dense": 2, "bm25": 1, "gram": 1}


def hits(*lists: list[int]) -> Hits:
    """The lists of one route, one a query, filled up with -1."""
    doc = np.full((len(lists), max(1, *map(len, lists))), -1, np.int32)
    for query, docs in enumerate(lists):
        doc[query, : len(docs)] = docs
    return Hits(doc, np.zeros(doc.shape, np.float32))


def by_fractions(lists: dict[str, list[int]], weights: dict[str, int], k: int) -> list[tuple[int, Fraction, int]]:
    """(document, score, best rank) in order: dictionaries and fractions, nothing else."""
    ranks: dict[int, dict[str, int]] = {}
    for name, docs in lists.items():
        for rank, doc in enumerate(docs, 1):
            if weights[name]:
                ranks.setdefault(doc, {}).setdefault(name, rank)
    score = {doc: sum((Fraction(weights[name], k + rank) for name, rank in of.items()), Fraction(0)) for doc, of in ranks.items()}
    best = {doc: min(of.values()) for doc, of in ranks.items()}
    return [(doc, score[doc], best[doc]) for doc in sorted(ranks, key=lambda doc: (-score[doc], best[doc], doc))]


def named(routes: dict[str, list[str]], weights: dict[str, int], k: int = 60):
    """Fuse lists of letters: A is row 0 and so on; the order and the scores by letter."""
    letters = sorted({letter for docs in routes.values() for letter in docs})
    rows = {letter: row for row, letter in enumerate(letters)}
    fused = fusion.weighted_rrf({name: hits([rows[letter] for letter in docs]) for name, docs in routes.items()}, weights, k)
    order = [letters[row] for row in fused.doc[0] if row >= 0]
    return order, dict(zip(order, fused.score[0].tolist(), strict=False))


def test_case_09_a_document_repeated_inside_a_route_counts_once_at_its_best_rank():
    case = json.loads((CASES / "09-rrf-duplicate-inside-a-route.json").read_text())
    given_, right = case["input"], case["right_answer"]
    order, score = named(given_["routes"], given_["weights"], given_["k"])
    assert order == right["order"]
    assert score["A"] == float(Fraction(*right["score_A"]))
    assert score["C"] == float(Fraction(2, 60 + 4) + Fraction(1, 60 + 1))  # later ranks do not close up
    assert fusion.repeats({"dense": hits([0, 1, 0, 2]), "bm25": hits([2]), "gram": hits([])}) == {"dense": 1, "bm25": 0, "gram": 0}


@pytest.mark.parametrize("part", ["part1", "part2"])
def test_case_10_weights_are_used_and_a_route_that_lacks_a_document_adds_nothing(part):
    case = json.loads((CASES / "10-rrf-weights-and-missing-documents.json").read_text())
    right = case["right_answer"]
    order, score = named(case["input"][part]["routes"], case["input"]["weights"])
    assert order == right[f"{part}_order"]
    assert score == {letter: float(Fraction(*fraction)) for letter, fraction in right[f"{part}_scores"].items()}


def test_ranks_10_and_66_in_the_light_routes_equal_rank_30_in_the_heavy_one():
    assert Fraction(1, 60 + 10) + Fraction(1, 60 + 66) == Fraction(2, 60 + 30)
    dense, bm25, gram = list(range(100, 129)) + [7], list(range(200, 209)) + [9], list(range(300, 365)) + [9]
    fused = fusion.weighted_rrf({"dense": hits(dense), "bm25": hits(bm25), "gram": hits(gram)}, WEIGHTS, depth=300)
    order = fused.doc[0].tolist()
    places = order.index(7), order.index(9)
    assert fused.score[0][places[0]] == fused.score[0][places[1]] == 2 / 90
    assert places[0] == places[1] + 1  # 9 has the better best rank, 10 before 30


@numba.njit
def _both_ways(numerator, denominator):
    """Whether each row stands before the next one, and the next before it, by the order of the kernel."""
    forward, back = np.empty(len(numerator) - 1, np.bool_), np.empty(len(numerator) - 1, np.bool_)
    for i in range(len(forward)):
        a, b = (numerator[i], denominator[i]), (numerator[i + 1], denominator[i + 1])
        forward[i], back[i] = fusion_kernel.ahead(a, 1, 1, b, 1, 0), fusion_kernel.ahead(b, 1, 0, a, 1, 1)
    return forward, back


@numba.njit
def _scores(ranks, weights, k):
    numerator, denominator, best = np.empty(len(ranks), np.int64), np.empty(len(ranks), np.int64), np.empty(len(ranks), np.int64)
    for i in range(len(ranks)):
        packed = ranks[i, 0] | ranks[i, 1] << 16 | ranks[i, 2] << 32
        (numerator[i], denominator[i]), best[i] = fusion_kernel.exact_score(np.uint64(packed), weights, k)
    return numerator, denominator, best


def test_the_order_is_exact_over_all_rank_triples_up_to_100():
    weights = np.array([2, 1, 1])
    ranks = np.stack(np.meshgrid(*[np.arange(101)] * 3, indexing="ij"), -1).reshape(-1, 3)  # 0 is missing
    assert len(ranks) == 101**3
    numerator, denominator, best = _scores(ranks, weights, 60)
    np.testing.assert_array_equal(best[1:], np.where(ranks > 0, ranks, 101).min(axis=1)[1:])
    # the same scores from their definition, over the common denominator of each triple
    bottoms = np.where(ranks > 0, 60 + ranks, 1)
    tops = np.where(ranks > 0, weights, 0)
    np.testing.assert_array_equal(denominator, bottoms.prod(axis=1))
    np.testing.assert_array_equal(numerator, (tops * (bottoms.prod(axis=1)[:, None] // bottoms)).sum(axis=1))
    order = np.argsort(numerator / denominator, kind="stable")[::-1]
    n, d = numerator[order], denominator[order]
    assert int(n.max()) * int(d.max()) < 2**63
    left, right = n[:-1] * d[1:], n[1:] * d[:-1]  # exact: a/b >= c/d where a d >= c b
    assert (left >= right).all()  # so the order is that of the fractions
    tied = left == right
    forward, back = _both_ways(n, d)
    np.testing.assert_array_equal(forward & ~back, ~tied)  # a larger score stands before, whatever the tie-breakers say
    np.testing.assert_array_equal(back, tied)  # equal scores fall to the row, which is 0 for the second
    assert not forward[tied].any()
    np.testing.assert_array_equal(tied, (n / d)[:-1] == (n / d)[1:])  # and the stored floats tie where the fractions do
    exchanged = 100 * 101 // 2 * 101  # triples that only exchange their bm25 and 5-gram ranks
    assert tied.sum() > exchanged  # and there are ties beyond these, such as 30 alone with 10 and 66


def test_scores_with_one_float_are_told_apart_by_their_integers():
    n = 3037000497
    less, more = (n + 2, n + 1), (n + 1, n)  # 1 + 1/(n + 1) and 1 + 1/n
    assert less[0] / less[1] == more[0] / more[1] and less[0] * more[1] < 2**63
    assert fusion_kernel.ahead(more, 9, 9, less, 1, 1) and not fusion_kernel.ahead(less, 1, 1, more, 9, 9)


lists = st.lists(st.integers(0, 12), max_size=9)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(lists, lists, lists), min_size=1, max_size=3), st.tuples(*[st.integers(0, 3)] * 3), st.integers(0, 70), st.integers(1, 30))
@example([([], [], [])], (2, 1, 1), 60, 5)
@example([([1, 0], [0, 1], [])], (1, 1, 1), 60, 5)  # equal scores, equal best ranks: the lower row
@example([([5, 5, 5], [5], [])], (2, 1, 1), 60, 5)
@example([([1, 2], [3], [])], (0, 1, 0), 0, 5)  # a route of weight 0 takes no part
def test_fusion_equals_exact_fractions(queries, weights, k, depth):
    if not any(weights):
        return
    weights = dict(zip("abc", weights, strict=True))
    routes = {name: hits(*(query[i] for query in queries)) for i, name in enumerate("abc")}
    fused = fusion.weighted_rrf(routes, weights, k, depth)
    for q, query in enumerate(queries):
        expected = by_fractions(dict(zip("abc", query, strict=True)), weights, k)[:depth]
        filled = expected + [(-1, Fraction(0), 0)] * (depth - len(expected))
        assert list(zip(fused.doc[q].tolist(), fused.score[q].tolist(), fused.best_rank[q].tolist(), strict=True)) == [
            (doc, float(score), best) for doc, score, best in filled
        ]


@pytest.mark.parametrize("pool", [40, 120, 400, 100_000])
@pytest.mark.parametrize("weights", [(2, 1, 1), (1, 1, 1), (1, 3, 2)])
def test_full_lists_equal_exact_fractions(pool, weights):
    """Three lists of 100 with repeats and holes, from much to no overlap; the first 7 queries lack a route each in turn."""
    rng = np.random.default_rng(pool)
    drawn = rng.integers(0, pool, (3, 30, 100)).astype(np.int32)
    drawn[rng.random(drawn.shape) < 0.05] = -1
    for query in range(7):
        drawn[[route for route in range(3) if query >> route & 1 == 0], query] = -1
    weights = dict(zip(WEIGHTS, weights, strict=True))
    routes = {name: Hits(doc, np.zeros((30, 0), np.float32)) for name, doc in zip(WEIGHTS, drawn, strict=True)}
    for depth in (20, 300):
        fused = fusion.weighted_rrf(routes, weights, depth=depth)
        for q in range(30):
            kept: dict[int, dict[str, int]] = {}
            for name, doc in zip(WEIGHTS, drawn[:, q].tolist(), strict=True):
                for rank, d in enumerate(doc, 1):
                    if d >= 0:
                        kept.setdefault(d, {}).setdefault(name, rank)
            score = {d: sum(Fraction(weights[name], 60 + rank) for name, rank in of.items()) for d, of in kept.items()}
            best = {d: min(of.values()) for d, of in kept.items()}
            order = sorted(kept, key=lambda d: (-score[d], best[d], d))[:depth]
            assert fused.doc[q][: len(order)].tolist() == order and (fused.doc[q][len(order) :] == -1).all()
            assert fused.score[q][: len(order)].tolist() == [float(score[d]) for d in order]
            assert fused.best_rank[q][: len(order)].tolist() == [best[d] for d in order]


@pytest.mark.parametrize(("row", "place"), [(0, 19), (500, 20)])
def test_a_document_that_only_the_light_routes_list_can_tie_the_last_place(row, place):
    assert Fraction(1, 60 + 20) + Fraction(1, 60 + 20) == Fraction(2, 60 + 20)  # and all have best rank 20: the row decides
    light = [*range(300, 319), row], [*range(400, 419), row]
    fused = fusion.weighted_rrf({"dense": hits([*range(100, 200)]), "bm25": hits(light[0]), "gram": hits(light[1])}, WEIGHTS, depth=21)
    assert fused.doc[0].tolist().index(row) == place
    shallow = fusion.weighted_rrf({"dense": hits([*range(100, 200)]), "bm25": hits(light[0]), "gram": hits(light[1])}, WEIGHTS, depth=20)
    assert (row in shallow.doc[0]) == (place == 19) and shallow.doc[0].tolist() == fused.doc[0, :20].tolist()


def test_threads_and_slices_of_queries_change_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    routes = {name: hits(*(rng.permutation(300)[:100] for _ in range(50))) for name in WEIGHTS}
    one = fusion.weighted_rrf(routes, WEIGHTS)
    monkeypatch.setattr(fusion, "STACKED", 7)
    for threads in (1, 3):
        again = fusion.weighted_rrf(routes, WEIGHTS, threads=threads)
        assert [column.tobytes() for column in again] == [column.tobytes() for column in one]
        assert fusion.best_rank(routes, threads=threads).doc.tobytes() == fusion.best_rank(routes).doc.tobytes()


def test_routes_without_a_place_or_without_queries_give_empty_lists():
    for shape in ((2, 0), (0, 5)):
        fused = fusion.weighted_rrf({name: Hits(np.full(shape, -1, np.int32), np.zeros(shape, np.float32)) for name in WEIGHTS}, WEIGHTS)
        assert fused.doc.shape == (shape[0], 20) and (fused.doc == -1).all() and (fused.score == 0).all()


@pytest.mark.parametrize(
    ("fitting", "beyond"),
    [
        ((4, 10, 1, 10), (5, 10, 1, 10)),  # routes, of which a word holds the ranks of 4
        ((1, 2**16 - 1, 1, 2**16), (1, 2**16, 1, 2**16)),  # places, whose ranks have 16 bits
        ((1, 1, 2**53 - 1, 2), (1, 1, 2**53, 2)),  # the numerator
        ((1, 1, 1, 2**53 - 1), (1, 1, 1, 2**53)),  # the denominator
        ((2, 1, 2**15 - 1, 2**16), (2, 1, 2**15, 2**16)),  # their product
    ],
)
def test_each_limit_alone_sends_a_fusion_to_python(fitting, beyond):
    assert fusion_kernel.fits(*fitting) and not fusion_kernel.fits(*beyond)


@pytest.mark.parametrize(("routes", "weight", "k"), [(6, 1, 60), (5, 1, 1), (3, 1, 10**6), (3, 10**9, 60), (2, 10**17, 60)])
def test_numbers_beyond_int64_give_the_same_exact_order(routes, weight, k):
    rng = np.random.default_rng(4)
    names = [f"r{i}" for i in range(routes)]
    drawn = {name: [rng.permutation(15)[:10].tolist() for _ in range(4)] for name in names}
    weights = {name: weight * (1 + i % 2) for i, name in enumerate(names)}
    fused = fusion.weighted_rrf({name: hits(*docs) for name, docs in drawn.items()}, weights, k, depth=15)
    for q in range(4):
        expected = by_fractions({name: docs[q] for name, docs in drawn.items()}, weights, k)
        found = fused.doc[q][fused.doc[q] >= 0].tolist()
        assert found == [doc for doc, _, _ in expected]


@settings(max_examples=100, deadline=None)
@given(st.lists(lists, min_size=1, max_size=4), st.integers(1, 30))
@example([[3, 2], [2, 3]], 1)
def test_best_rank_orders_by_best_rank_then_row(query, depth):
    fused = fusion.best_rank({str(i): hits(docs) for i, docs in enumerate(query)}, depth)
    best = {doc: min(docs.index(doc) + 1 for docs in query if doc in docs) for docs in query for doc in docs}
    expected = sorted(best, key=lambda doc: (best[doc], doc))[:depth]
    assert fused.doc[0][fused.doc[0] >= 0].tolist() == expected
    assert fused.best_rank[0][: len(expected)].tolist() == [best[doc] for doc in expected]
    assert (fused.score == 0).all()


@pytest.mark.parametrize("depth", [1, 20, 299])
def test_a_shallower_list_is_a_prefix_of_a_deeper_one(depth):
    rng = np.random.default_rng(depth)
    routes = {name: hits(*(rng.permutation(250)[:100] for _ in range(20))) for name in WEIGHTS}
    shallow, deep = (fusion.weighted_rrf(routes, WEIGHTS, depth=at) for at in (depth, depth + 1))
    np.testing.assert_array_equal(shallow.doc, deep.doc[:, :depth])
    np.testing.assert_array_equal(shallow.score, deep.score[:, :depth])


def test_rank_in_gives_the_place_of_each_document_and_0_where_the_route_lacks_it():
    ranks = fusion.rank_in(hits([5, 3, 5, 9], [1]).doc, np.array([[9, 5, 4, -1], [1, 9, -1, -1]], np.int32))
    assert ranks.tolist() == [[4, 1, 0, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"dense": 2}, r"the weights name \['dense'\] and the routes are \['bm25', 'dense'\]"),
        ({"dense": 2, "bm25": 1, "splade": 1}, "the weights name"),
        ({"dense": 2, "bm25": -1}, r"the weights are {'bm25': -1}; give whole numbers from 0"),
        ({"dense": 2, "bm25": 0.5}, r"{'bm25': 0.5}"),
        ({"dense": True, "bm25": 1}, r"{'dense': True}"),
        ({"dense": 2, "bm25": float("nan")}, r"the weights are {'bm25': nan}; give whole numbers"),
        ({"dense": 2, "bm25": float("inf")}, r"{'bm25': inf}"),
        ({"dense": 2, "bm25": None}, r"{'bm25': None}"),
        ({"dense": 0, "bm25": 0}, "one of them above 0"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        fusion.weighted_rrf({"dense": hits([1]), "bm25": hits([2])}, weights)


@pytest.mark.parametrize("k", [float("nan"), float("inf"), None, -1, 0.5, True])
def test_a_k_that_is_no_whole_number_from_0_is_refused(k):
    with pytest.raises(ValueError, match=f"k is {k}; give a whole number from 0"):
        fusion.weighted_rrf({"dense": hits([1])}, {"dense": 2}, k)


def test_whole_numbers_of_any_type_are_weights():
    expected = fusion.weighted_rrf({"dense": hits([1, 4]), "bm25": hits([2])}, {"dense": 2, "bm25": 1}, 60)
    found = fusion.weighted_rrf({"dense": hits([1, 4]), "bm25": hits([2])}, {"dense": 2.0, "bm25": np.int64(1)}, np.float64(60))
    assert [column.tobytes() for column in found] == [column.tobytes() for column in expected]


def test_routes_of_different_queries_are_refused():
    with pytest.raises(ValueError, match="different numbers of queries"):
        fusion.best_rank({"dense": hits([1]), "bm25": hits([2], [3])})
    with pytest.raises(ValueError, match="no route to fuse"):
        fusion.best_rank({})


def test_a_repeated_document_keeps_its_first_place_only_and_later_places_keep_theirs():
    found = first_places(Hits(np.array([[7, 9, 7, 5, 9, -1, -1]], np.int32), np.array([[7, 6, 5, 4, 3, 0, 0]], np.float32)))
    assert found.doc.tolist() == [[7, 9, -1, 5, -1, -1, -1]] and found.score.tolist() == [[7, 6, 0, 4, 0, 0, 0]]
