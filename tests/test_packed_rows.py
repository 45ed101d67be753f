"""Packing pairs into rows: every pair once, no row too long, rows nearly full."""

import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.packed.rows import pack


def first_fit_decreasing(lengths: list[int], row_tokens: int) -> list[list[int]]:
    """Each pair, longest first, into the first row with room for it."""
    rows, room = [], []
    for pair in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        at = next((i for i, left in enumerate(room) if left >= lengths[pair]), len(rows))
        if at == len(rows):
            rows.append([])
            room.append(row_tokens)
        rows[at].append(pair)
        room[at] -= lengths[pair]
    return rows


@given(st.lists(st.integers(1, 30), max_size=60), st.integers(30, 90))
@example([], 30)
@example([30, 30], 30)
@example([1], 30)
@example([7, 7, 7, 7, 2, 2, 2], 31)
def test_rows_are_those_of_first_fit_decreasing(lengths, row_tokens):
    rows = pack(lengths, row_tokens)
    assert [row.tolist() for row in rows] == first_fit_decreasing(lengths, row_tokens)
    assert sorted(np.concatenate([[], *rows]).tolist()) == list(range(len(lengths)))
    assert all(row.dtype == np.int64 and np.array(lengths)[row].sum() <= row_tokens for row in rows)


@pytest.mark.parametrize(("row_tokens", "least"), [(65_536, 0.97), (8192, 0.97)])
def test_a_million_pairs_fill_their_rows_in_ten_seconds(row_tokens, least):
    lengths = np.minimum(np.random.default_rng(0).lognormal(np.log(1450), 0.8, 1_000_000).astype(int) + 1, 8192)
    assert 1_900 < lengths.mean() < 2_100
    begun = time.process_time()
    rows = pack(lengths, row_tokens)
    assert time.process_time() - begun < 10
    assert lengths.sum() / (len(rows) * row_tokens) >= least
    assert sum(map(len, rows)) == len(lengths)


def test_the_same_lengths_are_packed_the_same_way_and_equal_ones_by_number():
    lengths = np.random.default_rng(1).integers(1, 50, 500)
    first, second = pack(lengths, 200), pack(list(lengths), 200)
    assert [row.tolist() for row in first] == [row.tolist() for row in second]
    for length in np.unique(lengths):
        order = [pair for row in first for pair in row if lengths[pair] == length]
        assert order == sorted(order)


@pytest.mark.parametrize(("lengths", "told"), [([3, 9, 11, 12], "pair 2 has 11 tokens \\(2 such pairs\\), a row holds 1 to 10"), ([3, 0], "pair 1 has 0 tokens")])
def test_a_pair_without_a_token_or_longer_than_a_row_is_refused(lengths, told):
    with pytest.raises(ValueError, match=told):
        pack(lengths, 10)
