"""Units of labelling: balanced by tokens, named in order, dealt to workers."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.student import routed, units, workers

TOKENS = st.lists(st.integers(1, 8192), max_size=80)


def test_equal_pairs_make_equal_units():
    assert units.bounds(np.array([5, 5, 5, 5]), 10).tolist() == [0, 2, 4]
    assert units.bounds(np.array([5, 5, 5, 5]), 20).tolist() == [0, 4]
    assert units.bounds(np.array([5, 5, 5, 5]), 1).tolist() == [0, 1, 2, 3, 4]
    assert units.bounds(np.array([100, 1, 1]), 34).tolist() == [0, 1, 3]  # the long pair alone


def test_a_part_without_pairs_has_one_empty_unit():
    assert units.bounds(np.zeros(0, np.int64), 10).tolist() == [0, 0]
    with pytest.raises(ValueError, match="unit_tokens is 0"):
        units.bounds(np.array([1]), 0)


@example([8192] * 3 + [1] * 70, 5000)
@given(TOKENS, st.integers(1, 100_000))
def test_units_hold_every_pair_once_and_none_is_much_too_large(tokens, unit_tokens):
    tokens = np.array(tokens, np.int64)
    ends = units.bounds(tokens, unit_tokens)
    assert ends[0] == 0 and ends[-1] == len(tokens)
    assert len(tokens) == 0 or (np.diff(ends) > 0).all()
    for first, last in zip(ends, ends[1:], strict=False):
        assert tokens[first:last].sum() <= unit_tokens + (tokens.max() if len(tokens) else 0)


def test_pairs_are_listed_by_query_then_document_and_one_that_stands_twice_is_refused():
    assert [rows.tolist() for rows in routed.distinct(np.array([1, 0, 1]), np.array([4, 9, 3]))] == [[0, 1, 1], [9, 3, 4]]
    with pytest.raises(ValueError, match=r"query 1 and document 3 go to the relevance model twice \(1 such pairs\); route again"):
        routed.distinct(np.array([1, 0, 1]), np.array([3, 3, 3]))


def test_names_and_their_parts():
    assert units.names("part-00007", 2) == ["part-00007-00", "part-00007-01"]
    assert units.split("part-00007-113") == ("part-00007", 113)


@example([5, 5, 5], 5)
@given(st.lists(st.integers(0, 1000), max_size=40), st.integers(1, 6))
def test_workers_share_the_units_and_their_tokens_balance(tokens, count):
    loads = {f"part-00000-{i:02d}": load for i, load in enumerate(tokens)}
    shares = units.share(loads, count)
    assert len(shares) == count and sorted(sum(shares, [])) == sorted(loads)
    sums = [sum(loads[name] for name in one) for one in shares]
    assert max(sums) <= sum(tokens) / count + max(tokens, default=0)
    assert all(one == sorted(one) for one in shares)


def test_each_worker_has_a_device_of_its_own(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert workers.devices(3) == ["0", "1", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5, GPU-77")
    assert workers.devices(2) == ["2", "5"] and workers.devices(3)[2] == "GPU-77"
    with pytest.raises(ValueError, match="4 workers and CUDA_VISIBLE_DEVICES names 3 devices"):
        workers.devices(4)
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert workers.devices(2) is None


def test_progress_counts_pairs_tokens_share_of_peak_and_the_time_left():
    line = {"pairs": 100, "tokens": 2000, "timing": {"seconds": 4.0, "share_of_peak": 0.25}}
    other = {"pairs": 50, "tokens": 1000, "timing": {"seconds": 1.0, "share_of_peak": 0.75}}
    said = workers.progress([line, other], {"a": 2000, "b": 1000, "c": 6000}, 5.0)
    # (0.25 x 4 + 0.75 x 1) / 5 = 35%; 6,000 tokens at 3,000 in 5 s
    assert said == "2 of 3 units, 150 pairs, 30.0 pairs/s, 600 tokens/s, 35.0% of peak, 10 s left"
    empty = {"pairs": 0, "tokens": 0, "timing": {"seconds": 0.0, "share_of_peak": None}}
    assert workers.progress([empty], {"a": 0}, 1.0) == "1 of 1 units, 0 pairs, 0.0 pairs/s, 0 tokens/s, 0 s left"
