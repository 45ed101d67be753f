"""The bench notebook of BM25 runs, and its lists are those of the brute force; its times are read by people."""

import json
from importlib.util import find_spec
from pathlib import Path

import bm25_reference
import numpy as np
import pandas as pd
import papermill
import pyarrow.parquet as pq
import pytest

from lib.retrieval import bm25_measure
from lib.text import tokens

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "bench" / "bm25.ipynb"


@pytest.mark.slow
def test_the_bench_notebook_runs_and_every_list_is_that_of_the_brute_force(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_HOME", str(tmp_path))
    small = {"documents": 1200, "length": 60, "words": 5000, "queries": 20, "megabytes": 1.0, "rounds": 1}
    papermill.execute_notebook(NOTEBOOK, tmp_path / "executed.ipynb", small, kernel_name="python3", progress_bar=False, cwd=tmp_path)
    folder = tmp_path / "runs" / "sample" / "bench"
    table, cost = (pd.read_csv(folder / f"{name}.csv") for name in ("bm25", "bm25_cost"))
    ways = ["blocks", *["bm25s"] * bool(find_spec("bm25s"))]
    assert table["way"].tolist() == ways * 2 and table["texts"].tolist() == ["drawn"] * len(ways) + ["files"] * len(ways)
    assert (table["places as float64"][table["way"] == "blocks"] == 1).all() and (table["places as float64"] > 0.99).all()
    assert (table[["build", "queries a second", "MiB", "two threads"]] > 0).all(axis=None)
    assert cost["documents"].tolist() == [300, 600, 1200, 4_340_000]
    assert {path.suffix for path in folder.glob("bm25.*")} == {".csv", ".md", ".tex", ".png", ".pdf"}


def test_the_ways_read_the_same_texts_and_the_brute_force_of_the_bench_is_the_reference(tmp_path):
    texts, queries = bm25_measure.zipf(300, 800, 20, 9, 7, 1)
    texts = list(texts)
    assert bm25_measure.write(tmp_path / "set", texts, queries, 0.15, 1) == 300
    removed = pq.read_table(tmp_path / "set" / "texts-00000.parquet")["removed"].to_numpy()
    assert 20 < removed.sum() < 80 and json.loads((tmp_path / "set" / "queries.json").read_text()) == queries
    expected = bm25_reference.top(texts[:250], queries, bm25_measure.K, removed[:250])
    for way in ("blocks", "brute"):
        search, postings = bm25_measure.WAYS[way](tmp_path / "set", 250, queries)
        found = search(1)
        assert found.doc.tobytes() == expected.doc.tobytes() and found.score.tobytes() == expected.score.tobytes() and postings > 500


def test_every_text_is_written_once_whatever_the_last_file_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(bm25_measure, "PART", 4)
    for count in (1, 4, 5, 7, 8):
        assert bm25_measure.write(tmp_path / str(count), (f"t{i}" for i in range(count)), [], 0.15, 0) == count
        read = [text for table in bm25_measure._read(tmp_path / str(count), count) for text in table["text"].to_pylist()]
        assert read == [f"t{i}" for i in range(count)]
        assert sum(len(table) for table in bm25_measure._read(tmp_path / str(count), count - 1)) == count - 1


def test_drawn_words_fall_as_zipf_says_and_lengths_keep_their_means():
    texts, queries = bm25_measure.zipf(400, 1000, 200, 300, 43, 0)
    words = [word for text in texts for word in text.split()]
    assert 190 < len(words) / 400 < 210 and 39 < np.mean([len(query.split()) for query in queries]) < 47
    share = words.count("w1") / len(words)
    assert abs(share - np.log(2) / np.log(1001)) < 0.01 and set(words) <= {f"w{r}" for r in range(1, 1001)}


def test_real_text_is_cut_at_line_ends_and_its_queries_are_runs_of_its_words(tmp_path):
    (tmp_path / "a.py").write_text("one two three\n" * 2000)
    (tmp_path / "b.bin").write_text("not text")
    found, queries, told = bm25_measure.real([tmp_path], 1, 5, 3, 0)
    assert "".join(found) == "one two three\n" * 2000 and max(map(len, found)) <= bm25_measure.PIECE + 1
    assert told.startswith("1 files, 0.0 MB, sha256") and all(tokens(query) and " ".join(tokens(query)) in "one two three " * 9 for query in queries)
