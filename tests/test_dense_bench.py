"""The bench notebook of the dense route runs, and every backend gives the same lists; its times are read by people."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import papermill
import pytest

from lib.retrieval import dense, dense_measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "dense.ipynb"


@pytest.mark.slow
def test_the_bench_notebook_runs_and_every_backend_gives_the_same_lists(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"sizes": {"24": 3_000, "96": 2_000}, "queries": 40, "few": 20, "rounds": 1, "k": 20}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table = pd.read_csv(folder / "dense.csv")
    ways = [way for way in dense_measure.WAYS if way != "ours, two threads"]
    assert table["way"].tolist() == 2 * ways and table["dimensions"].unique().tolist() == [24, 96]
    assert (table["differing places"][table["way"].str.startswith("ours")] == 0).all() and (table["of sgemm"] > 0).all()
    assert {path.suffix for path in folder.glob("dense.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


def test_the_float64_loop_of_the_bench_is_what_dense_search_gives():
    vectors, query = dense_measure.draw(500, 33, [3, 0]), dense_measure.draw(4, 33, [3, 1])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    rows = np.sort(np.random.default_rng(0).choice(2_000, 500, replace=False)).astype(np.int32)
    removed = ~np.isin(np.arange(2_000), rows)
    every = np.zeros((2_000, 33), np.float32)
    every[rows] = vectors
    found, true = dense.top(every, query, 30, removed), dense_measure.by_loop(vectors, rows, query, 30)
    assert found.doc.tobytes() == true.doc.tobytes() and found.score.tobytes() == true.score.tobytes()


def test_a_child_that_cannot_search_says_why_in_one_sentence():
    with pytest.raises(RuntimeError, match="lib.retrieval.dense_measure: k is 0; a route keeps at least 1"):
        dense_measure.child(dense_measure.Options(["ours, fp32"], 10, 4, 2, 1, 0.0, 0, 1, 0))


def test_faiss_is_measured_where_it_is_installed():
    assert ("IndexFlatIP" in dense_measure.WAYS) == bool(find_spec("faiss"))
