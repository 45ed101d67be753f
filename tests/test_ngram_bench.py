"""The bench notebook of the 5-gram route runs, and its ways agree; its times are read by people."""

from pathlib import Path

import numpy as np
import pandas as pd
import papermill
import pyarrow as pa
import pytest

from lib.retrieval import ngram, ngram_measure as measure

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "ngram.ipynb"


@pytest.mark.slow
def test_the_bench_notebook_runs_and_every_way_gives_the_same_lists(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"documents": 120, "queries": 60, "phrases": 20, "many_documents": [100, 250], "many_queries": 90, "many_phrases": 40, "document_tokens": 120,
             "words": 3000, "shard": 70, "checked": 40, "rounds": 1}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table, stream = pd.read_csv(folder / "ngram.csv"), pd.read_csv(folder / "ngram_stream.csv")
    assert len(table) == 4 and (table["same lists"] == "yes").all() and (table["seconds"] > 0).all() and table["ours is faster"][0] == 1
    assert stream["documents"].tolist() == [100, 250, 250] and stream["threads"].tolist() == [1, 1, 2]
    assert (stream["postings"] > 0).all() and (stream["peak MiB"] > 50).all() and stream["words"].is_monotonic_increasing
    assert {path.suffix for path in folder.glob("ngram.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


def test_the_peers_and_the_brute_force_give_our_lists():
    drawn = measure.Drawn(90, 70, 60, 30, words=400, phrases=12, planted=(0.2, 0.7), shard=40)
    spoken = measure.language(drawn)
    shards, asked = list(measure.documents(drawn, spoken)), measure.queries(drawn, spoken)
    texts = pa.concat_arrays(shards).to_pylist()
    found = ngram.top(texts, asked, 7)
    assert (found.doc >= 0).sum() > 100 and len(shards) == 3
    for peer in (measure.by_dictionary, measure.by_known):
        other = peer(texts, asked.to_pylist(), 7)
        assert other.doc.tobytes() == found.doc.tobytes() and other.score.tobytes() == found.score.tobytes()
    assert measure.brute_force(drawn, 50, 7) == [[[doc, score] for doc, score in zip(*row, strict=True) if doc >= 0] for row in zip(found.doc[:50].tolist(), found.score[:50].tolist(), strict=True)]


def test_every_drawn_word_is_its_own():
    names = measure.language(measure.Drawn(1, 1, 9, 9, words=20_000)).names.to_pylist()
    assert len(set(names)) == 20_000 and any(len(name) > 8 for name in names) and all(name.isalpha() and name == name.lower() for name in names)


def test_a_race_counts_the_fastest_round():
    calls = []
    laps = measure.race({name: lambda name=name: calls.append(name) or np.ones(1) for name in "ab"}, 2)
    assert calls == ["a", "b", "a", "b"] and list(laps) == ["a", "b"] and all(0 <= taken < 1 for taken, _ in laps.values())
