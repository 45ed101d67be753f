"""Routing v1, the probe and the coverage proof, on lists small enough to read."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.routing import RoutingError, check_coverage, route_probe, route_source_pages, route_v1
from lib.draw import unit_hash
from lib.routing.probe import probe_queries


def lists(*docs):
    """Dense lists of 20 places, -1 after the last hit."""
    return np.array([list(one) + [-1] * (20 - len(one)) for one in docs], dtype=np.int32)


def route(dense, long=(), scores=None, source=-1, **options):
    n = len(dense)
    score = np.full(dense.shape, np.nan)
    short = (dense >= 0) & (np.arange(20) >= 5) & ~np.isin(dense, list(long))
    score[short] = -dense[short] if scores is None else [scores[int(doc)] for doc in dense[short]]
    return route_v1(np.arange(n, dtype=np.int32), dense, np.isin(dense, list(long)), score, np.full(n, source, np.int32), **options)


def sent(intents, judge, stage):
    mask = [(j, s) == (judge, stage) for j, s in zip(intents["judge"].to_pylist(), intents["stage"].to_pylist(), strict=True)]
    return [doc for doc, keep in zip(intents["doc"].to_pylist(), mask, strict=True) if keep]


def test_ranks_1_to_5_go_to_the_llm_long_ones_too_and_short_ranks_6_to_20_to_the_student():
    intents = route(lists(range(100, 120)), long=[101, 110])
    assert sent(intents, "llm", "dense_1_5") == [100, 101, 102, 103, 104]
    assert sent(intents, "llm", "long") == [110]
    assert sent(intents, "student", "short") == [105, 106, 107, 108, 109, 111, 112, 113, 114, 115, 116, 117, 118, 119]
    assert set(intents["max_chars"].to_pylist()) == {30_000, 100_000, None}


def test_the_rerankers_best_five_are_picks_and_ties_go_to_the_better_dense_rank():
    scores = {doc: 0.0 for doc in range(105, 120)} | {119: 1.0, 118: 0.5}
    assert sent(route(lists(range(100, 120)), scores=scores), "llm", "pick") == [105, 106, 107, 118, 119]


def test_fewer_short_pairs_than_picks_gives_fewer_picks():
    assert sent(route(lists(range(100, 108)), long=[106]), "llm", "pick") == [105, 107]


def test_the_source_page_keeps_its_pick_place_and_its_intent_is_withdrawn():
    scores = {doc: float(-doc) for doc in range(105, 120)}
    intents = route(lists(range(100, 120)), scores=scores, source=106)
    assert sent(intents, "llm", "pick") == [105, 106, 107, 108, 109]  # no sixth slides in
    rows = intents.filter(pa.compute.equal(intents["doc"], 106)).to_pylist()
    assert [(r["judge"], r["withdrawn"]) for r in rows] == [("llm", True), ("student", False)]


def test_a_withdrawn_source_page_in_the_top_5_or_long_is_not_asked():
    for source, long in ((101, []), (112, [112])):
        intents = route(lists(range(100, 120)), long=long, source=source, student_on_long=1.0).to_pylist()
        assert [(r["judge"], r["withdrawn"]) for r in intents if r["doc"] == source] == [("llm", True)]


def test_a_score_that_is_not_finite_is_an_error_with_the_pair():
    with pytest.raises(RoutingError, match="query 0, document 107: the reranker's score is nan"):
        route(lists(range(100, 120)), scores={doc: float("nan") if doc == 107 else 0.0 for doc in range(105, 120)})


def test_student_on_long_takes_its_share_of_the_long_pairs():
    dense = np.arange(20 * 400, dtype=np.int32).reshape(400, 20)
    intents = route(dense, long=range(8000), student_on_long=0.25)
    share = len(sent(intents, "student", "long")) / len(sent(intents, "llm", "long"))
    assert 0.22 < share < 0.28
    assert sent(route(dense, long=range(8000)), "student", "long") == []


def test_rounds_split_the_picks_by_query_and_lose_none():
    dense = np.arange(20 * 60, dtype=np.int32).reshape(60, 20)
    whole, split = route(dense), route(dense, pick_rounds=3)
    assert sent(whole, "llm", "pick") == sent(split, "llm", "pick")
    picks = split.filter(pa.compute.equal(split["stage"], "pick"))
    rounds = {q: r for q, r in zip(picks["query"].to_pylist(), picks["round"].to_pylist(), strict=True)}
    assert set(rounds.values()) == {1, 2, 3}
    assert all(rounds[q] == r for q, r in zip(picks["query"].to_pylist(), picks["round"].to_pylist(), strict=True))


@given(st.lists(st.integers(0, 25), max_size=20, unique=True), st.sets(st.integers(0, 25)), st.integers(-1, 25), st.integers(0, 6))
@example([], set(), -1, 5)
@example(list(range(20)), set(range(26)), 7, 5)
def test_every_pair_of_the_list_is_routed_once(docs, long, source, picks):
    dense = lists(docs)
    intents = route(dense, long=long, source=source, picks=picks, student_on_long=0.5)
    check_coverage(np.zeros(1, np.int32), dense, intents)
    short = [doc for doc in docs[5:] if doc not in long]
    assert sent(intents, "student", "short") == sorted(short)
    assert len(sent(intents, "llm", "pick")) == min(picks, len(short))


def test_coverage_names_a_pair_without_intent_a_stranger_and_a_repeat():
    dense, query = lists(range(100, 120)), np.zeros(1, np.int32)
    intents = route(dense)
    with pytest.raises(RoutingError, match=r"1 pairs have no intent, the first: query 0 document 100;"):
        check_coverage(query, dense, intents.filter(pa.compute.not_equal(intents["doc"], 100)))
    with pytest.raises(RoutingError, match=r"in no dense top 20, the first: query 0 document 119;"):
        check_coverage(query, dense[:, :19], intents)
    with pytest.raises(RoutingError, match="sent twice to one judge"):
        check_coverage(query, dense, pa.concat_tables([intents, intents.slice(0, 1)]))


def test_the_probe_sends_the_union_once_with_the_cut_of_its_length():
    routes = {"dense": np.array([[3, 1, -1]]), "bm25": np.array([[1, 7, -1]]), "ngram": np.array([[-1, -1, -1]])}
    long = np.zeros(9, bool)
    long[7] = True
    rows = route_probe(np.array([4], np.int32), routes, long, np.array([3], np.int32)).to_pylist()
    assert [(r["query"], r["doc"], r["max_chars"], r["rank"], r["withdrawn"]) for r in rows] == [
        (4, 1, 30_000, 2, False), (4, 3, 30_000, 1, True), (4, 7, 100_000, 0, False)]


def test_a_document_that_dense_repeats_has_its_best_rank_in_the_probe():
    routes = {"dense": np.array([[5, 6, 5]])}
    rows = route_probe(np.array([0], np.int32), routes, np.zeros(9, bool), np.array([-1], np.int32)).to_pylist()
    assert [(r["doc"], r["rank"]) for r in rows] == [(5, 1), (6, 2)]


@pytest.mark.parametrize(("option", "value"), [("picks", -1), ("picks", 21), ("pick_rounds", 0), ("pick_rounds", 70_000), ("student_on_long", 7), ("student_on_long", -0.1)])
def test_an_option_outside_its_range_is_refused_with_the_range(option, value):
    with pytest.raises(RoutingError, match=f"{option} is {value}; it lies in"):
        route(lists(range(20)), **{option: value})


@pytest.mark.parametrize("n", [0, -5])
def test_a_probe_of_less_than_one_query_is_refused(n):
    with pytest.raises(RoutingError, match="a probe judges at least 1 query"):
        probe_queries(np.ones(9, bool), n, 0)


def test_a_probe_of_no_queries_is_an_empty_table():
    empty = {name: np.zeros((0, 100), np.int32) for name in ("dense", "bm25", "ngram")}
    assert route_probe(np.zeros(0, np.int32), empty, np.zeros(5, bool), np.zeros(0, np.int32)).num_rows == 0


def test_probe_queries_are_kept_ones_and_a_smaller_probe_is_a_part_of_a_larger():
    keep = np.arange(50) % 3 != 0
    ten, twenty = probe_queries(keep, 10, 0), probe_queries(keep, 20, 0)
    assert keep[twenty].all() and set(ten) <= set(twenty) and len(probe_queries(keep, 99, 0)) == keep.sum()


def test_source_pages_are_asked_for_every_query_that_has_one():
    rows = route_source_pages(np.arange(3, dtype=np.int32), np.array([5, -1, 6], np.int32)).to_pylist()
    assert [(r["query"], r["doc"], r["stage"], r["version"]) for r in rows] == [(0, 5, "source_page", "v1"), (2, 6, "source_page", "v1")]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_that_cannot_be_is_refused(seed):
    with pytest.raises(ValueError, match=f"the seed is {seed}; take a whole number from 0"):
        unit_hash(seed, np.array([0]))


def test_the_unit_hash_is_the_same_everywhere():
    assert unit_hash(0, np.array([0, 1, 2])).round(6).tolist() == unit_hash(0, np.array([0, 1, 2], np.int32)).round(6).tolist()
    assert abs(unit_hash(7, np.arange(10_000)).mean() - 0.5) < 0.02
