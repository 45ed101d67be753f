"""The gate: one test a fault, each with a control that the same scores without the fault pass."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.student import gate
from lib.student.gate import GateFailed, GateReport

N = 256
ROWS = [32] * 8


def reference(n: int = N, seed: int = 0) -> np.ndarray:
    """Scores from -0.2 to 2.2, none within 0.03 of a cut."""
    values = np.random.default_rng(seed).uniform(-0.2, 2.2, 4 * n).astype(np.float32)
    return values[(np.abs(values - 0.5) > 0.03) & (np.abs(values - 1.5) > 0.03)][:n]


def bf16(values: np.ndarray) -> np.ndarray:
    """Rounded to the nearest bf16."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def refused(scores: np.ndarray, rows=ROWS, against: np.ndarray | None = None) -> str:
    with pytest.raises(GateFailed) as error:
        gate.check(reference() if against is None else against, scores, rows)
    return str(error.value)


def test_equal_scores_open_the_gate_and_the_report_says_so():
    report = gate.check(reference(), reference().copy(), ROWS)
    assert report == GateReport(n=256, rows=8, alone=0, pearson=pytest.approx(1), max_difference=0.0, slope=pytest.approx(1), changed=0, changed_away=0)


def test_the_measures_equal_their_plain_definitions():
    expected = reference()
    scores = bf16(expected)
    report = gate.check(expected, scores, ROWS)
    assert report.pearson == pytest.approx(np.corrcoef(expected, scores)[0, 1], abs=1e-9)
    assert report.slope == pytest.approx(np.polyfit(expected.astype(float), scores.astype(float), 1)[0], abs=1e-9)
    assert report.max_difference == max(abs(float(a) - float(b)) for a, b in zip(expected, scores, strict=True))


def test_noise_of_bf16_passes():
    noise = np.random.default_rng(1).normal(0, 0.003, N).astype(np.float32)
    report = gate.check(reference(), bf16(reference() + noise), ROWS)
    assert 0.999 <= report.pearson < 1 and 0 < report.max_difference < 0.05


def test_scores_times_0_8_have_a_pearson_of_1_and_are_refused():
    message = refused(0.8 * reference())
    assert "slope is 0.8000, within 1 +- 0.01" in message and "max |difference|" in message and "Pearson" not in message


def test_a_slope_of_1_02_around_the_mean_is_refused():
    values = reference()
    message = refused(values.mean() + 1.02 * (values - values.mean()))
    assert "slope is 1.0200" in message and "Pearson" not in message and "max |difference|" not in message


def test_a_lost_bias_has_a_pearson_of_1_and_is_refused():
    message = refused(reference() - 0.1)
    assert "max |difference| is 0.1000, at most 0.05" in message and "Pearson" not in message and "slope" not in message


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_score_that_is_not_finite_is_refused(bad):
    scores = reference()
    scores[7] = bad
    assert "1 of 256 scores are not finite" in refused(scores)
    assert "1 of 256 reference values are not finite" in refused(reference(), against=scores)


def test_one_score_missing_or_too_many_is_refused():
    assert "[255] scores for [256] pairs" in refused(reference()[:-1], [32] * 7 + [31])
    assert "[257] scores for [256] pairs" in refused(reference(257))
    assert "[256, 1] scores for [256] pairs" in refused(reference()[:, None])  # would broadcast to 256 x 256
    assert "[0] scores" in refused(reference(0), [], reference(0))


def test_rows_that_do_not_hold_the_pairs_are_refused():
    assert "the rows hold 255 pairs, there are 256" in refused(reference(), [32] * 7 + [31])
    assert "1 rows hold no pair" in refused(reference(), [*ROWS, 0])


def test_permuted_pairs_are_refused():
    assert "Pearson" in refused(np.random.default_rng(2).permutation(reference()))
    two = reference()
    two[[0, 1]] = 0.1, 1.9
    swapped = two.copy()
    swapped[[0, 1]] = swapped[[1, 0]]  # two alone hardly move a Pearson of 1,000 pairs
    message = refused(swapped, against=two)
    assert "max |difference| is 1.8000" in message and "2 labels change farther than 0.02 from a cut" in message


def test_pairs_that_see_their_neighbours_are_refused():
    """As transformers mixes a packed row whose lengths were lost: Pearson 0.29 to 0.38."""
    rng, values = np.random.default_rng(3), reference()
    mixed = (values.mean() + 0.35 * (values - values.mean()) + 0.93 * values.std() * rng.normal(size=N)).astype(np.float32)
    assert 0.2 < np.corrcoef(values, mixed)[0, 1] < 0.5
    assert "Pearson" in refused(mixed)
    one_row = values.copy()
    one_row[:32] = mixed[:32]  # in one row of eight only
    assert "Pearson" in refused(one_row)


def test_a_label_that_flips_away_from_a_cut_is_refused_although_all_else_is_well():
    values = reference()
    values[0] = 0.47
    scores = values.copy()
    scores[0] = 0.5
    message = refused(scores, against=values)
    assert "1 labels change farther than 0.02 from a cut, none may" in message
    assert not any(word in message for word in ("Pearson", "slope", "difference| is"))


def test_labels_may_flip_within_0_02_of_a_cut_for_2_percent_of_the_pairs():
    values = reference()
    values[:6] = 0.48, 0.4999, 1.48, 1.52, 0.5, 0.52  # 0.48 and 1.52 lie on the limit
    scores = values + np.array([0.03, 0.03, 0.03, -0.03, -0.03, 0] + [0] * (N - 6), np.float32)
    report = gate.check(values, scores, ROWS)
    assert (report.changed, report.changed_away) == (5, 0) and 5 <= 0.02 * 256 < 6
    scores[5] -= 0.03
    message = refused(scores, against=values)
    assert "6 of 256 labels change, at most 2%" in message and "farther" not in message


def test_a_difference_of_exactly_0_05_passes():
    values = np.where(np.arange(N) % 2, np.float32(1.0), np.float32(0.2)) + np.linspace(0, 0.1, N, dtype=np.float32)
    assert gate.check(values, values + np.float32(0.05), ROWS).max_difference == pytest.approx(0.05)
    assert "max |difference|" in refused(values + np.float32(0.0501), against=values)


def test_seven_rows_are_refused():
    assert "there are 7 packed rows, at least 8" in refused(reference(), [36] * 6 + [40])


def test_two_rows_with_a_single_pair_are_refused_and_one_is_not():
    assert gate.check(reference(), reference(), [36] * 7 + [3, 1]).alone == 1
    assert "2 rows hold a single pair, at most 1" in refused(reference(), [36] * 7 + [2, 1, 1])
    assert "256 rows hold a single pair" in refused(reference(), [1] * 256)  # nothing was packed


def test_a_reference_or_scores_without_variation_are_refused():
    flat = np.full(N, 0.7, np.float32)
    assert "the reference does not vary" in refused(flat, against=flat)
    assert "Pearson is nan" in refused(flat)


def test_the_sentence_names_every_measure_that_failed():
    message = refused(-0.5 * reference(), [128, 126, 1, 1])
    for part in ("Pearson is -1.0", "max |difference|", "slope is -0.5", "labels change farther", "at most 2%", "4 packed rows", "2 rows hold a single pair"):
        assert part in message
    assert "\n" not in message


@example(16, 0)
@given(st.integers(16, 60), st.integers(0, 10**6))
def test_any_reference_that_varies_opens_to_itself(n, seed):
    values = np.random.default_rng(seed).normal(1, 0.01, n).astype(np.float32)
    assert gate.check(values, values, np.bincount(np.arange(n) % 8)).changed == 0


def test_the_row_filled_to_the_limit_must_agree_too():
    values = np.tile(reference(5), 8)
    assert gate.check_row(values, bf16(values)) < 0.01
    assert gate.check_row(values[:1], values[:1]) == 0.0  # one pair has no Pearson
    for fault, said in ((values + 0.06, "max |difference|"), (values[:-1], r"\[39\] scores"), (np.where(np.arange(40) == 3, np.nan, values), "not finite")):
        with pytest.raises(GateFailed, match=f"the full row stays shut: .*{said.replace('|', '.')}"):
            gate.check_row(values, fault)


def test_a_label_that_flips_in_the_full_row_is_refused():
    values = np.full(3, 0.47, np.float32)
    with pytest.raises(GateFailed, match="the full row stays shut: 1 labels change farther than 0.02 from a cut"):
        gate.check_row(values, values + np.array([0, 0, 0.04], np.float32))


def test_a_control_that_passes_shuts_the_gate():
    values = reference()
    assert gate.check_control(values, np.random.default_rng(4).permutation(values)).pearson < 0.5
    with pytest.raises(GateFailed, match="the gate proves nothing: .* hardly looks at the text; train it further"):
        gate.check_control(values, bf16(values))
