"""Routing and tables of a drawn run equal loops and data frames, and the bench notebook runs; its times are read by people."""

from pathlib import Path

import numpy as np
import pandas as pd
import papermill
import pyarrow.parquet as pq
import pytest

from lib import contracts
from lib.stats import bootstrap, overlap, routing_draw, routing_measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "routing.ipynb"


@pytest.mark.slow
def test_the_bench_notebook_runs_and_leaves_nothing_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"queries": 400, "documents": 3000, "part": 150, "checked": 30}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table, together = pd.read_csv(folder / "routing.csv"), pd.read_csv(folder / "routing_together.csv")
    assert set(routing_measure.TABLES) < set(table["step"]) and (table["rows"] > 0).all() and len(together) == 2
    assert (together["GiB at the peak"] < together["at most, GiB"]).all()
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []
    assert {path.suffix for path in folder.glob("routing.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


@pytest.mark.parametrize("documents", [250, 20_000])  # lists that share most documents, and nearly none
def test_routing_and_tables_of_shards_equal_loops_and_data_frames(tmp_path, documents):
    same = routing_measure.check(tmp_path, 60, documents, seed=3)
    assert same["labels"] > 1_000 and same["pairs with both"] > 200 and same["intents of v2"] > 100
    assert same["intents of v1"] == sum(pq.read_metadata(path).num_rows for path in (tmp_path / "intents/v1").glob("*.parquet"))


def test_the_same_seed_draws_the_same_run(tmp_path):
    for name in ("a", "b"):
        routing_draw.candidates(tmp_path / name, 40, 300, 20, seed=1)
    for table in ("documents", "queries", "hits/dense", "fused", "rerank"):
        assert contracts.contents(tmp_path / "a" / table) == contracts.contents(tmp_path / "b" / table)


def test_coded_columns_hold_the_same_texts(tmp_path):
    routing_draw.candidates(tmp_path, 40, 300, 40, seed=1)
    routing_measure.routed(tmp_path, "v1")
    path = tmp_path / "intents/v1/part-00000.parquet"
    plain, coded = (contracts.read_part("intents", path, ["stage", "judge"], coded=coded) for coded in ((), ("stage", "judge")))
    assert [coded[name].to_pylist() == plain[name].to_pylist() for name in ("stage", "judge")] == [True, True]
    assert str(coded["stage"].type).startswith("dictionary")


def test_a_pair_scored_twice_stops_the_overlap(tmp_path):
    routing_measure.check(tmp_path, 30, 2_000, seed=0)
    path = tmp_path / "scores/v2/part-00000-00.parquet"
    rows = contracts.read_part("scores", path)
    twice = contracts.read_part("scores", tmp_path / "scores/v1/part-00000-00.parquet").slice(0, 1)
    line = contracts.write("scores", contracts.table("scores", rows.to_pylist() + twice.to_pylist()), path)
    contracts.finish(path.parent, [line, *contracts.parts(path.parent)[1:]])
    with pytest.raises(ValueError, match=r"1 pairs are scored twice, the first: query 0 document \d+; label again"):
        overlap.parts(tmp_path, overlap.seen(tmp_path))


def test_equal_texts_have_the_number_of_the_first_row_that_holds_them():
    texts = [["a", "b", ""], ["b", "é", "a"], [], ["\0", "a\0", ""]]
    flat = [text for some in texts for text in some]
    found = overlap._numbered(np.array(some, dtype=object) for some in texts)
    assert found.tolist() == [flat.index(text) for text in flat]


def test_a_rate_of_many_queries_has_the_interval_of_draws_of_queries(monkeypatch):
    values = (np.random.default_rng(0).random(3_000) < 0.3).astype(float)
    drawn = bootstrap.mean_interval(values)
    monkeypatch.setattr(bootstrap, "MANY", 1_000)
    counted = bootstrap.mean_interval(values)
    assert counted.mean == drawn.mean and counted == bootstrap.mean_interval(values) and counted != drawn
    assert abs(counted.low - drawn.low) < 0.002 and abs(counted.high - drawn.high) < 0.002
    many = np.random.default_rng(1).random(3_000)  # no two alike: queries are drawn as ever
    assert bootstrap.mean_interval(many) == _drawn(many)


def _drawn(values, resamples=2_000):
    random, block = np.random.default_rng(0), max(1, 2**24 // len(values))
    rows = (random.integers(0, len(values), (min(block, resamples - at), len(values))) for at in range(0, resamples, block))
    means = np.concatenate([values[some].mean(axis=1) for some in rows])
    return bootstrap.Interval(float(values.mean()), *map(float, np.quantile(means, [(1 - 0.95) / 2, (1 + 0.95) / 2])), len(values))


@pytest.mark.parametrize("draws", [lambda seed: bootstrap.mean_interval(np.ones(3), seed=seed),
                                   lambda seed: bootstrap.sums_interval(np.ones((3, 1)), lambda sums: sums[:, 0], seed=seed)])
def test_a_seed_below_zero_is_refused_in_one_sentence(draws):
    with pytest.raises(ValueError, match="^the seed of the bootstrap is -1; take a whole number from 0 on$"):
        draws(-1)
