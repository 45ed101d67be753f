"""The bench notebook of the fusion runs, and every way gives the same lists but for near ties; its times are read by people."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import papermill
import pytest

from lib.retrieval import fusion, fusion_measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "fusion.ipynb"
WEIGHTS = {"dense": 2, "bm25": 1, "ngram": 1}


@pytest.mark.slow
def test_the_bench_notebook_runs_and_the_fusion_leads(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"queries": 300, "checked": 50, "disk_queries": 500, "part": 150, "rounds": 1}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table, disk = pd.read_csv(folder / "fusion.csv"), pd.read_csv(folder / "fusion_disk.csv")
    assert [way.split()[0] for way in table["way"]] == ["ours", *(name for name in fusion_measure.PEERS if find_spec(name))]
    assert (table["differing places"] < 0.02 * 300 * 20).all() and (table["times ours"][1:] > 1).all()
    assert disk["queries"].tolist() == [500, 500] and (disk["GiB at the peak"][:1] < 1).all()
    assert {path.suffix for path in folder.glob("fusion.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.peers) if name == "polars" else name for name in fusion_measure.PEERS])
def test_a_peer_gives_the_exact_order_but_for_scores_that_its_rounding_parts(name):
    lists = fusion_measure.draw(40, list(WEIGHTS), 1_000_000, 300, [1])
    ours = fusion.weighted_rrf(lists, WEIGHTS)
    assert (fusion_measure.by_fractions(lists, WEIGHTS, 60, 20) == ours.doc).all()
    theirs = fusion_measure.places(fusion_measure.PEERS[name](fusion_measure.listed(lists), WEIGHTS, 60, 20)(), 40, 20)
    assert (np.sort(theirs, axis=1) >= 0).all() and (theirs != ours.doc).mean() < 0.05
