"""The self-test behind the gate: which pairs, which rows, and which models and faults it tells apart."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.packed import pairs
from lib.packed.pairs import Ragged
from lib.student import gate, selftest

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=60)


def some_pairs(n: int = 64, seed: int = 0) -> Ragged:
    rng = np.random.default_rng(seed)
    return pairs.ragged(rng.integers(0, 100, size) for size in rng.integers(3, 40, n))


VALUE = np.random.default_rng(9).normal(0, 1, 100)


def reading(ids: np.ndarray) -> float:
    """A causal model that looks at its context: later tokens weigh more, so that every token of a pair counts."""
    weight = 0.9 ** np.arange(len(ids))[::-1]
    return 1 + float((VALUE[ids] * weight).sum() / weight.sum())


def one_by_one(given: Ragged, rows) -> np.ndarray:
    found = np.full(len(given.lengths), np.nan, np.float32)
    for row in rows:
        found[row] = [reading(given.list(pair)) for pair in row]
    return found


def across_borders(given: Ragged, rows) -> np.ndarray:
    """The fault: a row read as one text."""
    found = np.full(len(given.lengths), np.nan, np.float32)
    for row in rows:
        joined = [given.list(pair) for pair in row]
        found[row] = [reading(np.concatenate(joined[: i + 1])) for i in range(len(row))]
    return found


def reference(given: Ragged) -> np.ndarray:
    return one_by_one(given, [np.arange(len(given.lengths))])


def test_a_model_that_scores_as_in_training_opens_the_gate():
    given = some_pairs()
    report = selftest.run(one_by_one, given, reference(given), 300)
    assert report["pairs"]["n"] == 64 and report["pairs"]["rows"] >= 8 and report["pairs"]["max_difference"] == 0
    assert report["full row"]["max_difference"] == 0 and 300 - given.lengths.min() < report["full row"]["tokens"] <= 300
    assert report["control"]["pearson"] < 0.99


def test_a_pair_never_sees_its_neighbour():
    given = some_pairs()
    with pytest.raises(gate.GateFailed, match="the gate stays shut: Pearson"):
        selftest.run(across_borders, given, reference(given), 300)


def test_a_fault_that_only_a_full_row_shows_is_refused():
    given = some_pairs()

    def long_rows_lose_the_bias(given, rows):
        return one_by_one(given, rows) - np.float32(sum(map(len, rows)) > 64)

    with pytest.raises(gate.GateFailed, match="the full row stays shut: max .difference. is 1.0000"):
        selftest.run(long_rows_lose_the_bias, given, reference(given), 4000)


def test_a_model_that_reads_the_last_token_only_cannot_show_a_mixed_row_and_is_refused():
    given = some_pairs()

    def last_token(given, rows):
        return np.array([VALUE[given.list(pair)[-1]] for pair in range(len(given.lengths))], np.float32)

    with pytest.raises(gate.GateFailed, match="the gate proves nothing"):
        selftest.run(last_token, given, last_token(given, None), 300)


def test_a_model_that_says_the_same_of_every_pair_is_refused():
    given = some_pairs()
    flat = np.full(64, 0.8, np.float32)
    with pytest.raises(gate.GateFailed, match="the reference does not vary"):
        selftest.run(lambda given, rows: np.full(len(given.lengths), 0.8, np.float32), given, flat, 300)


def test_a_model_with_small_differences_is_told_apart_from_a_mixed_row():
    """A briefly trained model hardly leaves its bias: differences of 0.001 decide, and Pearson sees them."""
    given = some_pairs()

    def faint(given, rows):
        return (0.4 + 0.001 * one_by_one(given, rows).astype(np.float64)).astype(np.float32)

    report = selftest.run(faint, given, faint(given, [np.arange(64)]), 300)
    assert report["control"]["pearson"] < 0.99 and report["control"]["max_difference"] < 0.01


def test_a_score_that_is_missing_in_the_rows_is_refused():
    given = some_pairs()

    def loses_one(given, rows):
        found = one_by_one(given, rows)
        found[5] = np.nan
        return found

    with pytest.raises(gate.GateFailed, match="1 of 64 scores are not finite"):
        selftest.run(loses_one, given, reference(given), 300)


def test_the_draw_is_by_hash_and_a_smaller_one_is_a_part_of_a_larger():
    query, doc = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    small, large = selftest.draw(query, doc, 48, 0), selftest.draw(query, doc, 96, 0)
    assert len(small) == 48 and set(small) < set(large) and (np.diff(small) > 0).all()
    assert set(selftest.draw(query, doc, 48, 1)) != set(small)
    shuffled = np.random.default_rng(0).permutation(200)
    again = shuffled[selftest.draw(query[shuffled], doc[shuffled], 48, 0)]
    assert set(again) == set(small)  # it depends on the pairs, not on their places


@pytest.mark.parametrize("n", [0, 201])
def test_fewer_held_out_pairs_than_asked_are_refused(n):
    with pytest.raises(ValueError, match=f"gate_pairs is {n} and the checkpoint has 200 held-out pairs"):
        selftest.draw(np.arange(200), np.arange(200), n, 0)


@example([60] + [1] * 20, 100)  # the long pair has a row of its own
@example([1], 60)
@given(LENGTHS, st.integers(60, 500))
def test_rows_hold_every_pair_once_within_the_limit(lengths, row_tokens):
    lengths = np.array(lengths)
    rows = selftest.rows_of(lengths, row_tokens)
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(lengths)))
    limit = min(row_tokens, lengths.sum() // 8)
    assert all(lengths[row].sum() <= limit or len(row) == 1 for row in rows)
    if (lengths <= limit).all():
        assert len(rows) >= 8


@given(LENGTHS, st.integers(60, 500))
def test_a_full_row_has_no_room_for_another_pair(lengths, row_tokens):
    lengths = np.array(lengths)
    row = selftest.full_row(lengths, row_tokens)
    assert 0 <= row_tokens - lengths[row].sum() < lengths.min()
    assert row.tolist()[: min(len(row), 1)] == [0]


@example([3, 3, 3])  # pairs as long as the longest give up half
@example([1, 1])
@given(LENGTHS)
def test_the_control_puts_a_neighbour_before_every_pair_and_ends_as_the_pair_ends(lengths):
    at = np.cumsum([0, *lengths])
    given = pairs.ragged(np.arange(first, last) for first, last in zip(at, at[1:], strict=False))  # every token tells its pair
    rows = [np.arange(len(lengths))[::2], np.arange(len(lengths))[1::2]]
    order = np.concatenate(rows)
    crossed = selftest.contaminated(given, rows)
    assert max(crossed.lengths) <= max(max(lengths), 2)
    for place, pair in enumerate(order):
        before, own = given.list(order[place - 1]), given.list(pair)
        found = crossed.list(pair).tolist()
        kept = next(n for n in range(len(own), -1, -1) if found[len(found) - n :] == own[len(own) - n :].tolist())
        assert kept >= min(len(own), max(max(lengths), 2) // 2)
        assert found[: len(found) - kept] == before[len(before) - len(found) + kept :].tolist()
        assert len(found) > kept or len(lengths) == 1
