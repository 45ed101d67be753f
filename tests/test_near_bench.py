"""The bench notebook of the near-duplicate files runs, and every way finds the same rows; its times are read by people."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import papermill
import pytest

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "near_dups.ipynb"


@pytest.mark.slow
@pytest.mark.parametrize("row_group", [500, 1 << 20])
def test_the_bench_notebook_runs_and_every_way_finds_the_same_rows_in_little_memory(tmp_path, monkeypatch, row_group):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"documents": 20_000, "shards": 4, "ids": 300, "new": 20, "rounds": 1, "row_group": row_group}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table, rounds = pd.read_csv(folder / "near_dups.csv"), pd.read_csv(folder / "near_rounds.csv")
    assert table["way"].tolist() == ["two passes", *(name for name in ("polars", "duckdb") if find_spec(name)), "arrow dataset"]
    assert (table["same rows"] == "yes").all() and (table["rows"] == 300).all() and rounds["rows"].tolist() == [300, 300, 320]
    assert (table[["seconds", "processor seconds", "wall, to polars", "processor, to polars"]] > 0).all(axis=None)
    assert table["MiB"][0] < 300 and (rounds["MiB"] < 300).all()
    assert {path.suffix for path in folder.glob("near_dups.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}
