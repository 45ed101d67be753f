"""Half-open buckets beside their plain definition, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib import buckets

CASE = json.loads((Path(__file__).parent / "cases" / "43-histogram-buckets.json").read_text())


def test_case_43_an_edge_a_fraction_and_the_last_value_are_counted_and_a_missing_one_is_refused():
    edges, values = np.array(CASE["input"]["edges"], float), [float(value) for value in CASE["input"]["values"]]
    kept = [value for value in values if not np.isnan(value)]
    counts = buckets.count(np.array(kept), edges)
    assert counts.tolist() == CASE["right_answer"]["counts"] and counts.sum() + 1 == len(values)
    with pytest.raises(ValueError, match="1 of 9 values are not finite; count them apart"):
        buckets.count(np.array(values), edges)


@given(st.lists(st.floats(0, 100), max_size=30))
@example([0, 9, 9.5, 10, 19.999, 20, 99.99, 100])
def test_every_value_lies_in_one_half_open_bucket_the_last_one_closed(values):
    edges = np.array([0.0, 10, 20, 100])
    plain = [sum(low <= v < high or v == high == 100 for v in values) for low, high in zip(edges, edges[1:])]
    assert buckets.count(np.array(values), edges).tolist() == plain and sum(plain) == len(values)


def test_float32_values_meet_float32_edges():
    stored = np.array([0.7, 0.8, 0.85, 0.9, 1.0], np.float32)  # 0.7 is stored below, 0.8 above the number of this name
    assert buckets.count(stored, np.array([0.7, 0.8, 0.85, 0.9, 1.0])).tolist() == [1, 1, 1, 2]
    assert buckets.count(np.nextafter(stored[1:], np.float32(0)), np.array([0.7, 0.8, 0.85, 0.9, 1.0])).tolist() == [1, 1, 1, 1]


def test_what_lies_outside_and_edges_that_do_not_ascend_are_refused():
    with pytest.raises(ValueError, match="1 of 2 values lie outside 0 to 100; widen the edges"):
        buckets.count(np.array([1, 100.5]), np.array([0.0, 100]))
    with pytest.raises(ValueError, match="do not ascend"):
        buckets.count(np.array([1]), np.array([0.0, 2, 2]))


def test_the_names_show_which_end_is_closed():
    assert buckets.names(np.array([0, 10, 20, 100])) == ["[0, 10)", "[10, 20)", "[20, 100]"]
