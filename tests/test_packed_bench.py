"""The bench notebook of the packed forward runs, and its ways agree; its times are read by people."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import papermill
import pytest

from lib.packed import measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "packed.ipynb"
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}


@pytest.mark.slow
def test_the_bench_notebook_runs_and_every_way_gives_the_same_scores(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"n_pairs": 96, "rounds": 1, "device": "cpu", "device_sizes": SMALL, "device_pairs": 128, "device_tokens": 80,
             "device_pair_tokens": 256, "device_row_tokens": 2048}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table, hours, device = (pd.read_csv(folder / f"{name}.csv") for name in ("packed", "gpu_hours", "device"))
    ways = table["way"].tolist()
    assert [way.split(",")[0].split()[0] for way in ways] == ["packed"] * 3 + ["padded"] * 3 + ["CrossEncoder"] * bool(find_spec("sentence_transformers"))
    assert (table["same tokens"] == "yes").all() and (table["largest difference"] < 1e-5).all()
    assert table["tokens computed"][:3].nunique() == 1 and (table["tokens computed"][3:] >= table["tokens computed"][0]).all()
    assert (table[["seconds", "packed takes", "share of peak"]] > 0).all(axis=None)
    assert hours["GPU-hours"][hours["share"] == 1].between(388, 416).all() and hours["pairs a second"][hours["share"] == 1].round().eq(27).all()
    assert len(device) == 3 and (device["seconds"] > 0).all()
    assert {path.suffix for path in folder.glob("packed.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


def test_lognormal_lengths_keep_their_mean_under_the_cut():
    for mean, spread, most in ((2000, 0.8, 8192), (240, 1.0, 2048), (5, 2.0, 40)):
        lengths = measure.lognormal(np.random.default_rng(0), 5_000, mean, spread, most)
        assert abs(lengths.mean() - mean) < 0.01 * mean + 0.5 and lengths.min() >= 1 and lengths.max() <= most and len(np.unique(lengths)) > 10
    with pytest.raises(ValueError, match="at most 40 tokens cannot have a mean of 40"):
        measure.lognormal(np.random.default_rng(0), 5, 40, 1.0, 40)


def test_padded_tokens_are_those_of_the_longest_in_each_batch():
    lengths = np.array([5, 1, 3, 4, 2])
    assert measure.padded_tokens(lengths, np.arange(5), 2) == 2 * 5 + 2 * 4 + 1 * 2
    assert measure.padded_tokens(lengths, np.array([0, 3, 2, 4, 1]), 2) == 2 * 5 + 2 * 3 + 1 * 1


def test_a_race_counts_the_fastest_round_of_each_way_and_keeps_the_first_result():
    called = []
    laps = measure.race({name: lambda name=name: called.append(name) or len(called) for name in "ab"}, 2)
    assert called == ["a", "b", "a", "b", "a", "b"] and [lap.result for lap in laps.values()] == [1, 2]
    assert all(0 <= lap.seconds < 1 for lap in laps.values())
