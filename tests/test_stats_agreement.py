"""Agreement beside scikit-learn, the krippendorff package and the plain definitions."""

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from lib.stats.agreement import MEASURES, agreement, measures_table, of_table

CASES = Path(__file__).parent / "cases"
LABELS = st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from([0, 1, 2, None])), max_size=30)


def split(rows):
    return [a for a, _ in rows], [b for _, b in rows]


def test_case_28_agreement_with_one_label_is_undefined_and_never_nan():
    case = json.loads((CASES / "28-agreement-with-one-label.json").read_text())
    given_, right = case["input"], case["right_answer"]
    one = agreement(given_["llm"], given_["model"])
    assert one.table.tolist() == right["table_1"] and one.exact == right["exact_1"] and one.kappa is right["kappa_1"]
    assert one.undefined == "both give all pairs (n = 3) the one label 1, so there is no disagreement by chance"
    assert [one.kappa_linear, one.kappa_quadratic, one.alpha_nominal, one.alpha_ordinal] == [None] * 4
    two = agreement(given_["then"]["llm"], given_["then"]["model"])
    assert two.table.tolist() == right["table_2"] and two.row_shares()[2] is right["row_shares_of_an_empty_row"]
    assert two.row_shares()[:2] == [[0.5, 0.5, 0], [0, 1, 0]] and two.undefined == ""
    empty = agreement(given_["then_empty"]["llm"], given_["then_empty"]["model"])
    assert empty.table.tolist() == [[0] * 3] * 3 and empty.row_shares() == [None] * 3 and empty.n == 0
    assert all(getattr(empty, name) is None for name in MEASURES) and empty.undefined == "there are no pairs"
    for found in (one, two, empty):
        assert json.loads(json.dumps(found.as_json(), allow_nan=False))["n"] == found.n


@given(LABELS)
@example([(0, 1)])
@example([(2, 2), (2, 2)])
@example([(0, 0), (1, 1), (2, 2), (None, 0)])
@example([(0, 2), (2, 0)])
def test_kappa_is_that_of_scikit_learn(rows):
    a, b = split(rows)
    both = [pair for pair in rows if None not in pair]
    found = agreement(a, b)
    assert (found.n, found.unevaluable) == (len(both), len(rows) - len(both))
    assume(both)
    plain_a, plain_b = split(both)
    assert found.table.tolist() == confusion_matrix(plain_a, plain_b, labels=[0, 1, 2]).tolist()
    assert found.exact == pytest.approx(sum(x == y for x, y in both) / len(both))
    assert found.opposite == pytest.approx(sum({x, y} == {0, 2} for x, y in both) / len(both))
    for name, weights in (("kappa", None), ("kappa_linear", "linear"), ("kappa_quadratic", "quadratic")):
        value = getattr(found, name)
        if len({*plain_a, *plain_b}) == 1:
            assert value is None
        else:
            assert value == pytest.approx(cohen_kappa_score(plain_a, plain_b, labels=[0, 1, 2], weights=weights), abs=1e-12)


@given(LABELS)
@example([(0, 1)])
@example([(0, 2), (2, 0)])
@example([(0, 0), (0, 1), (2, 2), (1, None)])
def test_alpha_is_that_of_krippendorff(rows):
    both = [pair for pair in rows if None not in pair]
    found = agreement(*split(rows))
    if len({label for pair in both for label in pair}) < 2:
        assert found.alpha_nominal is None and found.alpha_ordinal is None
        return
    data = np.array(both, float).T
    for name in ("nominal", "ordinal"):
        theirs = krippendorff.alpha(data, level_of_measurement=name, value_domain=[0, 1, 2])
        assert getattr(found, f"alpha_{name}") == pytest.approx(theirs, abs=1e-12)


def alpha_by_definition(pairs, ordinal):
    """1 - observed / expected disagreement, over pairs of values, in fractions."""
    values = [label for pair in pairs for label in pair]

    def apart(x, y):
        if not ordinal:
            return Fraction(x != y)
        low, high = sorted((x, y))
        between = sum(low <= label <= high for label in values)
        return (between - Fraction(values.count(low) + values.count(high), 2)) ** 2 if x != y else Fraction(0)

    observed = sum(apart(x, y) for x, y in pairs) / Fraction(len(pairs))
    every = list(combinations(values, 2))
    return 1 - observed / (sum(apart(x, y) for x, y in every) / Fraction(len(every)))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12))
def test_alpha_is_its_definition(pairs):
    assume(len({label for pair in pairs for label in pair}) > 1)
    found = agreement(*split(pairs))
    assert found.alpha_nominal == pytest.approx(float(alpha_by_definition(pairs, False)))
    assert found.alpha_ordinal == pytest.approx(float(alpha_by_definition(pairs, True)))


def test_kappa_by_hand():
    found = of_table([[20, 5, 0], [10, 15, 0], [0, 0, 0]])  # observed .7, by chance .5 * .6 + .5 * .4
    assert found.kappa == pytest.approx((0.7 - 0.5) / (1 - 0.5)) and found.exact == 0.7


def test_large_counts_do_not_overflow():
    few, many = of_table([[5, 2, 1], [1, 6, 2], [0, 1, 7]]), of_table(np.array([[5, 2, 1], [1, 6, 2], [0, 1, 7]]) * 10**8)
    assert many.alpha_ordinal == pytest.approx(few.alpha_ordinal, abs=0.02) and many.kappa == pytest.approx(few.kappa)


def test_a_table_summed_over_shards_says_the_same_as_all_pairs_at_once():
    random = np.random.default_rng(0)
    a, b = random.integers(0, 3, (2, 100))
    assert of_table(agreement(a[:40], b[:40]).table + agreement(a[40:], b[40:]).table).as_json() == agreement(a, b).as_json()


@pytest.mark.parametrize("null", [None, math.nan, pd.NA])
def test_null_is_counted_apart_whatever_its_spelling(null):
    found = agreement(pd.Series([0, null, 1, null], dtype=object), [0, 1, 1, null])
    assert (found.n, found.unevaluable, found.exact) == (2, 2, 1.0)
    assert agreement(pd.array([0, pd.NA], dtype="Int8"), np.array([0, 1], np.int8)).unevaluable == 1


def test_labels_out_of_range_are_refused_unless_a_rule_is_named():
    a, b = [0, 1, 3, 2, 9], [0, 1, 2, -1, None]
    with pytest.raises(ValueError, match=r"3 labels are none of \(0, 1, 2\), such as 3; name the rule clip or drop"):
        agreement(a, b)
    clip, drop = agreement(a, b, rule="clip"), agreement(a, b, rule="drop")
    assert clip.rule == "clip" and clip.table.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 1]]
    assert (clip.n, clip.clipped, clip.dropped, clip.unevaluable) == (4, 2, 0, 1)
    assert drop.rule == "drop" and drop.table.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert (drop.n, drop.clipped, drop.dropped, drop.unevaluable) == (2, 0, 2, 1)
    with pytest.raises(ValueError, match="1 labels lie between the labels .* such as 0.5; they cannot be clipped, name the rule drop"):
        agreement([0.5], [0], rule="clip")
    assert agreement([0.5], [0], rule="drop").dropped == 1
    assert "rule" not in measures_table({("x",): agreement([0], [1])}, ["part"])
    table = measures_table({("clip",): clip, ("drop",): drop, ("none",): agreement([0], [1])}, ["part"])  # the table prints a rule
    assert table[["rule", "clipped", "dropped"]].to_numpy().tolist() == [["clip", 2, 0], ["drop", 0, 2], ["refuse", 0, 0]]
    with pytest.raises(ValueError, match="is 'round'; it is clip, drop or None"):
        agreement(a, b, rule="round")


@pytest.mark.parametrize("labels", [["0", "1"], [True, False], [0, "1"]])
def test_text_and_truth_values_are_no_labels(labels):
    with pytest.raises(ValueError, match="labels are numbers or null, and these are"):
        agreement(labels, [0, 1])


def test_lists_of_different_pairs_are_refused():
    with pytest.raises(ValueError, match="2 labels and 1 labels are not of the same pairs"):
        agreement([0, 1], [0])
