"""Positives at depth, AUC and the bootstrap beside their plain definitions."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from lib.keys import of_pairs
from lib.stats.auc import auc, auc_by_query
from lib.stats.bootstrap import mean_interval
from lib.stats.positives import members, positives_at, share_inside


def test_positives_are_counted_within_each_depth_and_empty_places_never():
    docs = np.array([[4, 5, 6, 7, -1, -1], [9, 8, -1, -1, -1, -1]], np.int32)
    positive = np.array([[1, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]], bool)
    assert positives_at(docs, positive, (1, 2, 5)).tolist() == [[1, 1, 2], [0, 1, 1]]


def test_a_depth_beyond_the_order_is_refused():
    with pytest.raises(ValueError, match="3 places, too few for depth 5"):
        positives_at(np.zeros((1, 3), np.int32), np.zeros((1, 3), bool), (5,))


def test_members_finds_pairs_of_the_own_query_only():
    keys = np.sort(of_pairs(np.array([0, 1]), np.array([7, 3])))
    docs = np.array([[7, 3, -1], [7, 3, -1]], np.int32)
    assert members(docs, np.array([0, 1], np.int32), keys).tolist() == [[True, False, False], [False, True, False]]
    assert not members(docs, np.array([0, 1], np.int32), np.zeros(0, np.int64)).any()


def test_an_empty_place_is_no_member_though_document_0_is_one():
    docs = np.array([[-1, 0]], np.int32)
    assert members(docs, np.array([0], np.int32), of_pairs(np.array([0]), np.array([0]))).tolist() == [[False, True]]


def test_the_interval_does_not_depend_on_the_size_of_the_blocks(monkeypatch):
    values = np.random.default_rng(0).normal(0, 1, 50)
    whole = np.random.default_rng(0).integers(0, 50, (2000, 50))
    assert mean_interval(values)[1:3] == pytest.approx(np.quantile(values[whole].mean(axis=1), [0.025, 0.975]))


def test_share_inside_counts_documents_that_are_there():
    inner = np.array([[1, 2, -1], [5, 6, 7]])
    outer = np.array([[2, 9, 1], [7, 8, 9]])
    assert share_inside(inner, outer, 3) == (2 + 1, 2 + 3)
    assert share_inside(inner, outer, 1) == (0, 2)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
@example([(0, True), (0, False)])
def test_auc_is_the_share_of_right_pairs_with_ties_half(rows):
    score, positive = np.array([s for s, _ in rows], float), np.array([p for _, p in rows])
    plain = [(a > b) + 0.5 * (a == b) for a in score[positive] for b in score[~positive]]
    if not plain:
        assert np.isnan(auc(score, positive))
        return
    assert auc(score, positive) == pytest.approx(sum(plain) / len(plain))
    assert auc(score, positive) == pytest.approx(roc_auc_score(positive, score))


def test_auc_inside_each_query_is_undefined_for_one_class():
    query = np.array([3, 1, 1, 3, 2])
    values = auc_by_query(query, np.array([1.0, 2, 1, 0, 5]), np.array([True, True, False, False, True]))
    assert values[[0, 2]].tolist() == [1.0, 1.0] and np.isnan(values[1])
    assert len(auc_by_query(np.zeros(0, int), np.zeros(0), np.zeros(0, bool))) == 0


def test_a_score_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="1 of 2 scores are not finite"):
        auc(np.array([np.nan, 1.0]), np.array([True, False]))


def test_the_interval_holds_the_mean_and_is_the_same_each_time():
    values = np.random.default_rng(3).normal(2, 1, 200)
    first = mean_interval(values)
    assert first == mean_interval(values) and first.low < first.mean < first.high and first.n == 200
    assert first.high - first.low == pytest.approx(2 * 1.96 * values.std() / 200**0.5, rel=0.15)


def test_an_interval_of_nothing_says_so_and_one_of_nan_is_refused():
    assert str(mean_interval(np.zeros(0))) == "—"
    with pytest.raises(ValueError, match="1 of 2 values are not finite"):
        mean_interval(np.array([1.0, np.nan]))


def test_one_query_has_an_interval_of_no_width():
    assert mean_interval(np.array([4.0]))[:3] == (4.0, 4.0, 4.0)
