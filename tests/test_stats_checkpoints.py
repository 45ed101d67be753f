"""The tables of the held-out pairs beside pandas, on checkpoints written by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib import contracts
from lib.stats import checkpoints as tables
from lib.stats.calibration import reliability, scores_by_label
from lib.stats.within_query import within_query_difference, within_query_r2
from lib.student import checkpoints


def heldout(run, arm, step, query, label, prediction, doc=None):
    columns = {"query": np.asarray(query, np.int32), "doc": np.arange(len(query), dtype=np.int32) if doc is None else doc,
               "label": np.asarray(label, np.int8), "prediction": np.asarray(prediction, np.float32)}
    contracts.write("predictions", contracts.table("predictions", columns), checkpoints.folder(run, arm, step) / "heldout.parquet")


def arm(noise, seed=0, pairs=600):
    random = np.random.default_rng(seed)
    query, label = np.sort(random.integers(0, 60, pairs)), random.integers(0, 3, pairs)
    return query, label, label * 0.7 + 0.3 + np.random.default_rng(seed + 1).normal(0, noise, pairs)


@pytest.fixture
def run(tmp_path):
    for step, noise in ((10, 0.9), (20, 0.5), (30, 0.4)):
        heldout(tmp_path, "larger", step, *arm(noise))
    for step, noise in ((10, 1.2), (20, 1.0)):
        heldout(tmp_path, "another", step, *arm(noise))
    return tmp_path


def test_the_checkpoint_table_has_every_checkpoint_and_marks_the_used_one(run):
    table = tables.checkpoint_table(tables.load(run, "larger", 20))
    assert table[["arm", "step"]].to_numpy().tolist() == [["larger", 10], ["larger", 20], ["larger", 30], ["another", 10], ["another", 20]]
    assert table["used"].tolist() == ["", "used", "", "", ""]
    assert (table["pairs"] == 600).all() and (table["queries"] == 60).all() and (table["undefined"] == "").all()
    query, label, prediction = arm(0.5)
    prediction = prediction.astype(np.float32)
    frame = pd.DataFrame({"label": label, "cut": np.where(prediction < 0.5, 0, np.where(prediction < 1.5, 1, 2))})
    used = table.iloc[1]
    assert used["within-query R2"] == within_query_r2(query, label, prediction)
    assert used["low"] < used["within-query R2"] < used["high"]
    assert used["exact"] == pytest.approx((frame["label"] == frame["cut"]).mean())
    assert used["LLM 2 kept"] == pytest.approx((frame.loc[frame["label"] == 2, "cut"] == 2).mean())
    assert used["LLM 2 pairs"] == (frame["label"] == 2).sum()
    assert used["flips"] == pytest.approx(((frame["label"] - frame["cut"]).abs() == 2).mean())
    assert table.loc[:2, "within-query R2"].is_monotonic_increasing  # less noise


def test_step_0_is_the_last_and_a_step_that_is_not_there_is_refused(run):
    assert [one.step for one in tables.load(run, "larger") if one.used] == [30]
    with pytest.raises(ValueError, match="has no checkpoint at step 40; it has 10, 20, 30"):
        tables.load(run, "larger", 40)
    with pytest.raises(ValueError, match="no checkpoint of the arm 'smaller'; it has another, larger"):
        tables.load(run, "smaller")


def test_another_arm_is_compared_at_the_used_step_or_at_its_last(run):
    assert [(one.arm, one.step) for one in tables.compared(tables.load(run, "larger", 10))] == [("larger", 10), ("another", 10)]
    assert [(one.arm, one.step) for one in tables.compared(tables.load(run, "larger", 30))] == [("larger", 30), ("another", 20)]


def test_the_spread_is_a_full_table_of_row_shares(run):
    table = tables.spread_table(tables.load(run, "larger", 20))
    _, label, prediction = arm(0.5)
    cut = np.digitize(prediction.astype(np.float32), [0.5, 1.5])
    plain = pd.crosstab(label, cut, normalize="index")
    assert table.loc[table["arm"] == "larger", ["0", "1", "2"]].to_numpy() == pytest.approx(plain.to_numpy())
    assert table.loc[table["arm"] == "larger", "pairs"].tolist() == np.bincount(label).tolist()
    assert len(table) == 6


def test_the_arms_stand_side_by_side_with_a_paired_difference(run):
    table = tables.arm_table(tables.load(run, "larger", 20))
    assert table["arm"].tolist() == ["larger", "another", "larger less another"] and table["step"].tolist() == [20, 20, 20]
    query, label, first = arm(0.5)
    found = within_query_difference(query, label, first.astype(np.float32), arm(1.0)[2].astype(np.float32))
    assert table.loc[2, ["within-query R2", "low", "high", "queries"]].tolist() == list(found)
    assert table.loc[2, "within-query R2"] == pytest.approx(table.loc[0, "within-query R2"] - table.loc[1, "within-query R2"])
    at_other_steps = tables.arm_table(tables.load(run, "larger", 30))
    assert at_other_steps["step"].isna().tolist() == [False, False, True]


def test_arms_with_other_held_out_pairs_are_not_compared(run):
    query, label, prediction = arm(0.5)
    heldout(run, "another", 20, query, np.roll(label, 1), prediction)
    with pytest.raises(ValueError, match="held-out pairs of the arms larger and another differ in their label; train both on the same examples"):
        tables.arm_table(tables.load(run, "larger", 20))
    heldout(run, "another", 20, query, label, prediction, doc=np.arange(1, 601, dtype=np.int32))
    with pytest.raises(ValueError, match="differ in their doc"):
        tables.arm_table(tables.load(run, "larger", 20))


def test_the_held_out_set_is_described_for_each_arm(run):
    table = tables.heldout_table(tables.load(run, "larger", 20))
    _, label, prediction = arm(0.5)
    first = table.iloc[0]
    assert first[["0", "1", "2"]].tolist() == pytest.approx((np.bincount(label) / 600).tolist())
    assert first["MSE"] == pytest.approx(((label - prediction.astype(np.float32)) ** 2).mean())
    assert table["between-query share"].nunique() == 1  # of the labels alone


def test_what_is_undefined_is_missing_and_says_why(tmp_path):
    heldout(tmp_path, "larger", 1, [0, 0, 1], [0, 0, 1], [0.1, 0.2, 0.9])
    found = tables.load(tmp_path, "larger")
    row = tables.checkpoint_table(found).iloc[0]
    assert math.isnan(row["within-query R2"]) and row["LLM 2 kept"] is None and row["exact"] == 1.0
    assert row["undefined"] == "within-query R2 of 3 pairs is undefined: no query has two different labels; no pair has LLM label 2"
    assert tables.spread_table(found)["pairs"].tolist() == [2, 1, 0] and math.isnan(tables.spread_table(found).iloc[2]["0"])
    assert tables.heldout_table(found).iloc[0]["undefined"] == "no query has two different labels"
    assert math.isnan(tables.arm_table(found).iloc[0]["low"])


def test_a_prediction_that_is_not_finite_is_refused(tmp_path):
    heldout(tmp_path, "larger", 1, [0, 0], [0, 1], [0.1, math.nan])
    with pytest.raises(ValueError, match="1 of 2 predictions are not finite"):
        tables.checkpoint_table(tables.load(tmp_path, "larger"))


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-1, 3)), max_size=60), st.integers(1, 12))
@example([(0, 1.0)] * 7 + [(2, 2.0)], 10)  # nearly all tied
@example([(1, 0.5)], 10)
@example([], 10)
def test_reliability_counts_every_pair_once_and_never_parts_equal_scores(rows, bins):
    label, score = np.array([label for label, _ in rows]), np.array([score for _, score in rows])
    table = reliability(label, score, bins)
    assert table["pairs"].sum() == len(rows) and len(table) <= bins and (table["pairs"] > 0).all()
    assert (table["low"].to_numpy()[1:] > table["high"].to_numpy()[:-1]).all()
    for row in table.itertuples():
        inside = (score >= row.low) & (score <= row.high)
        assert row.pairs == inside.sum() and row[5] == pytest.approx(label[inside].mean())


def test_reliability_without_ties_has_bins_of_one_size_and_a_calibrated_score_on_the_diagonal():
    score = np.random.default_rng(0).permutation(1000) / 500
    table = reliability(score, score)
    assert table["pairs"].tolist() == [100] * 10
    assert table["mean label"].to_numpy() == pytest.approx(table["mean score"].to_numpy())
    with pytest.raises(ValueError, match="not finite"):
        reliability(np.array([0.0]), np.array([np.nan]))


def test_scores_by_label_hold_every_pair_and_an_absent_label_has_no_share():
    table = scores_by_label(np.array([0, 0, 2]), np.array([0.1, 0.4, 1.0]), bins=3)
    assert table.groupby("label")["pairs"].sum().tolist() == [2, 0, 1]
    assert table.loc[table["label"] == 0, "share"].tolist() == [0.5, 0.5, 0] and table.loc[table["label"] == 1, "share"].isna().all()
    assert scores_by_label(np.array([1]), np.array([0.7]))["pairs"].sum() == 1  # one score has a width of its own
    assert len(scores_by_label(np.zeros(0, int), np.zeros(0))) == 0
