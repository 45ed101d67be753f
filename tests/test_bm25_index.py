"""The index of BM25 on disk: mapped as it was written, refused where it is damaged, resumed where it was killed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import bm25_reference
import numpy as np
import pytest

from lib import contracts, corpus, engine, files
from lib.retrieval import bm25, bm25_index, hits
from small_corpus import tokenizer_file

DOCUMENTS, QUERIES = 240, 30


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{n}" for n in rng.zipf(1.4, rng.integers(0, 50)) % 90) for _ in range(count)]


def corpus_in(run: Path, document_rows: int, query_rows: int = 1000) -> dict:
    documents = [{"docid": f"d{i}", "text": text, "removed": i % 7 == 3} for i, text in enumerate(texts(DOCUMENTS, 1))]
    queries = [{"qid": f"q{i}", "text": text} for i, text in enumerate(texts(QUERIES, 2))]
    corpus.write(run, documents, queries, tokenizer_file(run.parent / "tokenizer"), document_rows, query_rows)
    return {"run": str(run)}


def searched(config: dict) -> hits.Hits:
    for stage in (bm25_index.index, bm25_index.search):
        engine.map(stage, config)
    return hits.from_table(contracts.read("hits", Path(config["run"]) / "hits/bm25"))


def test_the_lists_of_the_stages_are_those_of_the_reference_whatever_the_parts(tmp_path):
    removed = np.arange(DOCUMENTS) % 7 == 3
    expected = bm25_reference.top(texts(DOCUMENTS, 1), texts(QUERIES, 2), removed=removed)
    assert (expected.doc >= 0).sum() > 1000
    for name, (document_rows, query_rows) in {"whole": (1000, 1000), "cut": (17, 4), "ends": (DOCUMENTS - 1, 1)}.items():
        found = searched(corpus_in(tmp_path / name, document_rows, query_rows))
        assert found.doc.tobytes() == expected.doc.tobytes() and found.score.tobytes() == expected.score.tobytes()


def test_blocks_are_mapped_as_they_were_written(tmp_path):
    known = bm25.vocabulary(texts(QUERIES, 2))
    part, _ = bm25.index(texts(DOCUMENTS, 1) + ["w1 " * 300], known)
    empty, _ = bm25.index([], known)
    for blocks in (part, empty):
        back = bm25_index.read(tmp_path / "x.blocks", bm25_index.write(blocks, tmp_path / "x.blocks"))
        for written, read in zip(blocks, back, strict=True):
            assert written.dtype == read.dtype and not read.flags.writeable
            np.testing.assert_array_equal(written, read)


def flip(path: Path) -> None:
    """One bit, in the middle of the numbers."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [flip, lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-9]), lambda path: path.write_bytes(b"x" * path.stat().st_size)])
def test_a_lost_or_damaged_index_is_refused_with_the_way_out_and_the_way_out_works(tmp_path, damage):
    config = corpus_in(tmp_path / "run", 100)
    found = searched(config)
    damage(tmp_path / "run/index/bm25/part-00001.blocks")
    (tmp_path / "run/hits/bm25/part-00000.parquet").unlink()
    with pytest.raises(contracts.ContractError, match=r"part-00001\.blocks is not the index that was written; remove part-00001\.json beside it"):
        searched(config)
    (tmp_path / "run/index/bm25/part-00001.json").unlink()
    np.testing.assert_array_equal(searched(config).doc, found.doc)


def test_a_process_reads_an_unchanged_index_whole_once_and_a_changed_one_again(tmp_path, monkeypatch):
    part, _ = bm25.index(texts(DOCUMENTS, 1), bm25.vocabulary(texts(QUERIES, 2)))
    path, hashed, sha256 = tmp_path / "x.blocks", [], files.sha256
    arrays = bm25_index.write(part, path)
    monkeypatch.setattr(files, "sha256", lambda path: (hashed.append(path), sha256(path))[1])
    for _ in range(3):
        bm25_index.read(path, arrays)
    assert hashed == [path]
    path.touch()
    bm25_index.read(path, arrays)
    assert hashed == [path, path]


def test_a_killed_index_build_resumes_to_the_same_bytes(tmp_path):
    unbroken, config = corpus_in(tmp_path / "unbroken", 2), corpus_in(tmp_path / "killed", 2)
    expected = searched(unbroken)
    (tmp_path / "config.json").write_text(json.dumps(config))
    folder = tmp_path / "killed/index/bm25"
    process = subprocess.Popen([sys.executable, "-m", "lib.engine", "lib.retrieval.bm25_index:index", str(tmp_path / "config.json")], stdout=subprocess.DEVNULL)
    while not len(list(folder.glob("part-*.json"))) > 3:
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("part-*.json")}
    assert 3 < len(kept) < DOCUMENTS // 2 and not (folder / "manifest.json").exists()
    found = searched(config)
    assert found.doc.tobytes() == expected.doc.tobytes() and found.score.tobytes() == expected.score.tobytes()
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for path in (tmp_path / "unbroken/index/bm25").glob("part-*.blocks"):
        assert path.read_bytes() == (folder / path.name).read_bytes()
