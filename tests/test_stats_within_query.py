"""Within-query R2 and its bootstrap beside plain loops, pandas and scikit-learn."""

import math
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import mean_squared_error, r2_score

from lib.stats import within_query as within
from lib.stats.bootstrap import sums_interval
from lib.stats.within_query import Undefined, within_query_difference, within_query_interval, within_query_r2


def by_loops(query, label, prediction):
    """(sum of squared differences, sum of squared centred labels), one pair after the other."""
    error = total = 0.0
    for one in set(query):
        rows = [i for i, other in enumerate(query) if other == one]
        mean_label, mean_prediction = (sum(values[i] for i in rows) / len(rows) for values in (label, prediction))
        for i in rows:
            error += ((label[i] - mean_label) - (prediction[i] - mean_prediction)) ** 2
            total += (label[i] - mean_label) ** 2
    return error, total


PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.floats(-1, 3, width=32)), max_size=40)


@given(PAIRS)
@example([])
@example([(0, 1, 0.5)])  # one pair
@example([(0, 1, 0.1), (0, 1, 2.0), (1, 2, 1.0)])  # no variation, though the predictions vary
@example([(0, 0, 0.1), (0, 2, 2.0), (1, 2, 1.0), (2, 1, 0.0), (2, 1, 3.0)])  # a one-pair and a one-label query
def test_r2_is_that_of_plain_loops(rows):
    query, label, prediction = ([row[i] for row in rows] for i in range(3))
    error, total = by_loops(query, label, prediction)
    if total == 0:
        with pytest.raises(Undefined, match="no query has two different labels|there are no pairs"):
            within_query_r2(query, label, prediction)
    else:
        assert within_query_r2(query, label, prediction) == pytest.approx(1 - error / total, abs=1e-9)


def drawn(pairs=3000, queries=400, seed=0):
    random = np.random.default_rng(seed)
    query = random.integers(0, queries, pairs)
    label = random.integers(0, 3, pairs)
    return query, label, label * 0.4 + random.normal(0.5, 0.5, pairs) + query % 3


def test_r2_is_that_of_pandas_and_of_scikit_learn_on_centred_values():
    query, label, prediction = drawn()
    frame = pd.DataFrame({"label": label, "prediction": prediction})
    centred = frame - frame.groupby(query).transform("mean")
    found = within_query_r2(query, label, prediction)
    assert found == pytest.approx(1 - ((centred["label"] - centred["prediction"]) ** 2).sum() / (centred["label"] ** 2).sum())
    assert found == pytest.approx(r2_score(centred["label"], centred["prediction"]))  # the centred labels have mean 0
    measures = within.measures(query, label, prediction)
    assert measures.within == found and measures.undefined == ""
    assert measures.pooled == pytest.approx(r2_score(label, prediction))
    assert measures.mse == pytest.approx(mean_squared_error(label, prediction))
    squares = (centred["label"] ** 2).sum()
    assert measures.between == pytest.approx(1 - squares / (len(label) * label.var()))
    assert measures.uncentred == pytest.approx(1 - ((label - prediction) ** 2).sum() / squares)
    assert (measures.pairs, measures.queries) == (3000, len(set(query.tolist())))


def test_r2_by_hand():
    # query a: labels 0 2 about 1, predictions .5 1.5 about 1: errors .25 + .25 of 2; query b: one label, adds .5
    assert within_query_r2(["a", "a", "b", "b"], [0, 2, 1, 1], [0.5, 1.5, 0, 1]) == 1 - (0.25 + 0.25 + 0.25 + 0.25) / 2


@given(st.floats(-1e6, 1e6), st.integers(0, 2**32))
def test_a_level_for_each_query_changes_nothing(level, seed):
    query, label, prediction = drawn(60, 12, seed)
    moved = prediction + level * np.random.default_rng(1).random(12)[query]
    assert within_query_r2(query, label, moved) == pytest.approx(within_query_r2(query, label, prediction), abs=1e-6)


def test_equal_labels_are_no_variation_also_where_their_mean_is_rounded():
    with pytest.raises(Undefined, match="of 3 pairs is undefined: no query has two different labels"):
        within_query_r2([0, 0, 0], [0.1, 0.1, 0.1], [0.0, 1.0, 2.0])
    measures = within.measures([0, 0, 0], [0.1, 0.1, 0.1], [0.0, 1.0, 2.0])
    assert (measures.within, measures.pooled, measures.between) == (None, None, None) and measures.mse > 0
    assert measures.undefined == "all labels are the same"


def test_what_has_no_value_is_none_and_says_why():
    assert within.measures([], [], []) == (0, 0, None, None, None, None, None, "there are no pairs")
    between_only = within.measures([0, 0, 1], [0, 0, 2], [0, 0, 1])
    assert between_only.within is None and between_only.undefined == "no query has two different labels"
    assert between_only.between == 1.0 and between_only.pooled == pytest.approx(1 - 1 / (8 / 3))


@pytest.mark.parametrize("values", [([0, 1], [0], [0.0]), ([0], [0], [0.0, 1.0])])
def test_lengths_that_differ_are_refused(values):
    with pytest.raises(ValueError, match="are not of the same pairs"):
        within_query_r2(*values)


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="1 of 2 predictions are not finite; leave those pairs out, and count them"):
        within_query_r2([0, 0], [0, 1], [0.0, math.nan])
    with pytest.raises(ValueError, match="1 of 2 labels are not finite"):
        within_query_r2([0, 0], [0, None], [0.0, 1.0])


def test_the_interval_is_that_of_drawing_whole_queries():
    query, label, prediction = drawn(200, 30)
    found = within_query_interval(query, label, prediction, resamples=200, seed=5)
    names, random, plain = np.unique(query), np.random.default_rng(5), []
    sums = np.array([by_loops([0] * (query == one).sum(), label[query == one].tolist(), prediction[query == one].tolist()) for one in names])
    for _ in range(200):
        error, total = sums[random.integers(0, len(names), len(names))].sum(axis=0)
        plain.append(1 - error / total)
    assert found.value == within_query_r2(query, label, prediction) and found.queries == 30
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(plain, [0.025, 0.975])))


def test_the_difference_of_two_arms_is_paired():
    query, label, prediction = drawn(2000, 300)
    worse = prediction + np.random.default_rng(2).normal(0, 0.3, 2000)
    found = within_query_difference(query, label, prediction, worse)
    assert found.value == pytest.approx(within_query_r2(query, label, prediction) - within_query_r2(query, label, worse))
    one, other = (within_query_interval(query, label, values) for values in (prediction, worse))
    assert 0 < found.low < found.value < found.high
    assert found.high - found.low < 0.5 * ((one.high - one.low) + (other.high - other.low))  # narrower than two alone
    same = within_query_difference(query, label, prediction, prediction)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_draws_without_a_value_are_left_out_and_too_many_of_them_give_no_ends():
    def ratio(sums):
        return np.divide(sums[:, 0], sums[:, 1], out=np.full(len(sums), np.nan), where=sums[:, 1] != 0)

    one_of_two = sums_interval(np.array([[1.0, 2.0], [0.0, 0.0]]), ratio)  # a quarter of the draws has no value
    assert one_of_two.value == 0.5 and math.isnan(one_of_two.low) and math.isnan(one_of_two.high)
    one_of_ten = sums_interval(np.array([[1.0, 2.0]] * 9 + [[0.0, 0.0]]), ratio)
    assert one_of_ten == (0.5, 0.5, 0.5, 10)
    assert sums_interval(np.zeros((0, 2)), ratio).queries == 0
    with pytest.raises(ValueError, match="1 of 2 queries have a sum that is not finite"):
        sums_interval(np.array([[1.0, 2.0], [np.inf, 0.0]]), ratio)


def test_the_interval_of_the_paper_s_size_takes_seconds():
    query, label, prediction = drawn(31_830, 6_000)
    started = time.process_time()
    found = within_query_interval(query, label, prediction)
    assert found.low < found.value < found.high and found.high - found.low < 0.1
    assert time.process_time() - started < 5
