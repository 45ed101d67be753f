"""The bench notebook of the lexical stages runs, and what it measures gives the lists of the front doors."""

from pathlib import Path

import numpy as np
import pandas as pd
import papermill
import pyarrow as pa
import pytest

from lib import contracts
from lib.retrieval import bm25, hits, ngram, ngram_measure, parts_measure as measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "parts.ipynb"
DRAWN = measure.Drawn(130, 50, 60, 20, words=400, phrases=12, planted=(0.2, 0.7), shard=40)


def test_the_stages_over_drawn_parts_give_the_lists_of_the_front_doors(tmp_path):
    measure.write(tmp_path, DRAWN, 20)
    spoken, removed = ngram_measure.language(DRAWN), np.arange(130) % 7 == 3
    texts, queries = pa.concat_arrays(list(ngram_measure.documents(DRAWN, spoken))), ngram_measure.queries(DRAWN, spoken)
    for route, front in (("bm25", bm25), ("ngram", ngram)):
        told, expected = measure.measured(tmp_path, route), front.top(texts, queries, removed=removed)
        found = hits.from_table(contracts.read("hits", tmp_path / "hits" / route))
        assert found.doc.tobytes() == expected.doc.tobytes() and found.score.tobytes() == expected.score.tobytes()
        assert told.hits == (expected.doc >= 0).sum() > 100 and told.index > 0 and told.search > 0 and told.mib > 50


def test_what_was_measured_before_is_measured_again_and_whole(tmp_path):
    measure.write(tmp_path, DRAWN, 20)
    first = measure.measured(tmp_path, "ngram")
    changed = {path: path.stat().st_mtime_ns for path in (tmp_path / "index").rglob("*.parquet")}
    assert measure.measured(tmp_path, "ngram").hits == first.hits and len(changed) == 4
    assert all(path.stat().st_mtime_ns > before for path, before in changed.items())


@pytest.mark.slow
def test_the_bench_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"documents": 512, "queries": 200, "document_rows": 64, "query_rows": 50, "words": 3000, "phrases": 40, "document_tokens": 100}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table = pd.read_csv(folder / "parts.csv")
    assert table["route"].tolist() == ["bm25", "ngram"] and np.isfinite(table.drop(columns="route").to_numpy()).all() and (table["peak MiB"] > 50).all()
    assert {path.suffix for path in folder.glob("parts.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}
