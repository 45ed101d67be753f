"""The bench notebook of the store runs, and arrays tell what dictionaries tell; its times are read by people."""

from pathlib import Path

import pandas as pd
import papermill
import pytest

from lib.judge import contract, store, store_measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "store.ipynb"


@pytest.mark.slow
def test_the_bench_notebook_runs_and_arrays_lead(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"calls": 40_000, "parts": 3, "tail": 100, "few": 20_000, "few_parts": 2, "pairs": 400, "documents": 200}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table = pd.read_csv(folder / "store.csv")
    assert table["attempts"].tolist() == [40_000, 40_000, 20_000, 20_000, 20_000, 400, 400, 400]
    assert table["GiB at the peak"].max() < 1 and table["processor seconds"][2] < table["processor seconds"][3]
    assert {path.suffix for path in folder.glob("store.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


def test_drawn_attempts_are_attempts_and_a_part_has_as_many_as_asked(tmp_path):
    store_measure.write(tmp_path, 101, 3, 5, 1)
    rows = [row for source in store.every(tmp_path, "v1") for row in store.read(source)]
    assert len(rows) == 101 and sum(store_measure.sizes(101, 3)) == 101
    assert {row["status"] for row in rows} == {"ok", "server error"}
    assert all((row["score"] is None) == (row["status"] != "ok") for row in rows)
    assert [row["attempt"] for row in rows[:6]] == [1, 2, 1, 1, 1, 1] and set(contract.FIELDS) - set(rows[0]) == {"guideline_version"}


def test_a_step_that_fails_says_its_last_line(tmp_path):
    with pytest.raises(RuntimeError, match="ledger ended with 1: .*is not finished"):
        store_measure.child("ledger", tmp_path)
