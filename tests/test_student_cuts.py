"""The cuts of the relevance model's score: one side, stated once; no number, no label."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.student import cuts

CASE = json.loads((Path(__file__).parent / "cases" / "26-cuts-at-exactly-half.json").read_text())


def plain_label(score: float) -> int:
    return 0 if score < 0.5 else 1 if score < 1.5 else 2


def test_case_26_the_cut_value_goes_up_and_nan_is_an_error():
    scores = [float(score) for score in CASE["input"]["scores"]]
    *expected, last = CASE["right_answer"]["labels_if_cut_value_goes_up"]
    assert cuts.label_of(np.array(scores[:-1], np.float32)).tolist() == expected == [0, 0, 1, 1, 2, 2]
    assert last == "error" and np.isnan(scores[-1])
    with pytest.raises(ValueError, match=r"score at 6 is nan and has no label \(1 of 7"):
        cuts.label_of(scores)


def test_case_26_scores_on_the_steps_of_bf16_fall_on_the_upper_side():
    bits = np.array([float(score) for score in CASE["input"]["bf16"]], np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)  # to the nearest bf16, half to even
    assert rounded.tolist() == [0.5, 1.5]
    assert cuts.label_of(rounded).tolist() == [1, 2]


@example(0.5)
@example(1.5)
@example(float(np.nextafter(np.float32(1.5), np.float32(0))))
@example(-0.0)
@example(float(np.finfo(np.float32).max))
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_labels_equal_the_plain_rule(score):
    assert cuts.label_of(score) == plain_label(score)
    assert cuts.label_of(np.full((2, 3), score, np.float32)).tolist() == [[plain_label(score)] * 3] * 2
    assert cuts.label_of([score]).dtype == np.int8


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_an_error_never_a_label(bad):
    with pytest.raises(ValueError, match="not finite"):
        cuts.label_of(np.array([1.0, bad]))


def test_distance_is_to_the_nearer_cut():
    assert cuts.distance(np.array([0.25, 0.5, 1.0, 1.75, 9.0])).tolist() == [0.25, 0.0, 0.5, 0.25, 7.5]
    assert cuts.label_of(np.zeros(0)).shape == cuts.distance(np.zeros(0)).shape == (0,)
