"""The bench notebook of the client runs on tiny sizes; its times are read by people."""

from pathlib import Path

import pandas as pd
import papermill
import pytest

from lib.judge import client_measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "client.ipynb"


@pytest.mark.slow
def test_the_bench_notebook_runs_and_every_way_gets_its_own_replies(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"calls": 60, "flying": 8, "rounds": 1, "pairs": 300, "few": 100, "characters": [500]}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table, memory = pd.read_csv(folder / "client.csv"), pd.read_csv(folder / "client_memory.csv")
    assert table["way"].tolist() == list(client_measure.WAYS) and (table["µs of processor a call"] > 0).all()
    assert memory["pairs"].tolist() == [300] and (memory["MiB grown after that"] < 50).all()
    assert {path.suffix for path in folder.glob("client.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


@pytest.mark.slow
def test_the_memory_of_the_client_hardly_grows_with_its_calls():
    with client_measure.serving() as url:
        found = client_measure.memory(url, 40_000, 10_000, 64)
    assert found["answered"] == found["calls"] == 40_000
    assert found["grown MiB"] < 14  # 9.1 here, in one step; half a kilobyte kept of a pair would be 15 MiB more
