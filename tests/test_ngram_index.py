"""The index of the 5-grams on disk: the lists of the reference whatever the parts, refused where it is damaged, made again where it is lost."""

from pathlib import Path

import ngram_reference
import numpy as np
import pytest

from lib import contracts, corpus, engine
from lib.retrieval import hits, ngram, ngram_index
from small_corpus import tokenizer_file

DOCUMENTS, QUERIES = 240, 30
REMOVED = np.arange(DOCUMENTS) % 7 == 3


def texts(count: int, seed: int) -> list[str]:
    """Runs of a sentence of 40 words, so that 5-grams are shared by many."""
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{(at + i) % 40}" for at in rng.integers(0, 40, rng.integers(0, 4)) for i in range(rng.integers(3, 15))) for _ in range(count)]


def corpus_in(run: Path, document_rows: int, query_rows: int = 1000, kept=range(QUERIES)) -> dict:
    documents = [{"docid": f"d{i}", "text": text, "removed": bool(REMOVED[i])} for i, text in enumerate(texts(DOCUMENTS, 1))]
    queries = [{"qid": f"q{i}", "text": text} for i, text in enumerate(texts(QUERIES, 2))]
    run.mkdir(parents=True)
    (run / "kept.txt").write_text("".join(f"q{i}\n" for i in kept))
    corpus.write(run, documents, queries, tokenizer_file(run.parent / "tokenizer"), document_rows, query_rows, run / "kept.txt")
    return {"run": str(run)}


def searched(config: dict) -> hits.Hits:
    for stage in (ngram_index.index, ngram_index.search):
        engine.map(stage, config)
    return hits.from_table(contracts.read("hits", Path(config["run"]) / "hits/ngram"))


def test_the_lists_of_the_stages_are_those_of_the_reference_whatever_the_parts(tmp_path):
    expected = ngram_reference.top(texts(DOCUMENTS, 1), texts(QUERIES, 2), removed=REMOVED)
    assert (expected.doc >= 0).sum() > 1000
    for name, (document_rows, query_rows) in {"whole": (1000, 1000), "cut": (17, 4), "ends": (DOCUMENTS - 1, 1)}.items():
        found = searched(corpus_in(tmp_path / name, document_rows, query_rows))
        assert found.doc.tobytes() == expected.doc.tobytes() and found.score.tobytes() == expected.score.tobytes()


def test_queries_that_do_not_go_on_get_empty_lists_even_where_none_does(tmp_path):
    assert (searched(corpus_in(tmp_path / "run", 100, kept=[])).doc == -1).all()
    kept, whole = range(0, QUERIES, 3), searched(corpus_in(tmp_path / "whole", 100))
    some = searched(corpus_in(tmp_path / "some", 100, kept=kept))
    assert (some.doc[kept] == whole.doc[kept]).all() and (some.doc[4] == -1).all() and (whole.doc[4] >= 0).any()


def flip(path: Path) -> None:
    """One bit, in the middle of the numbers."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [flip, lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_a_lost_or_damaged_index_is_refused_with_the_way_out_and_the_way_out_works(tmp_path, damage):
    config = corpus_in(tmp_path / "run", 100)
    found = searched(config)
    damage(tmp_path / "run/index/ngram/part-00001.postings")
    (tmp_path / "run/hits/ngram/part-00000.parquet").unlink()
    with pytest.raises(contracts.ContractError, match=r"part-00001\.postings is not the index that was written; remove part-00001\.json beside it"):
        searched(config)
    (tmp_path / "run/index/ngram/part-00001.json").unlink()
    np.testing.assert_array_equal(searched(config).doc, found.doc)


def test_what_is_held_of_a_part_leaves_removed_documents_out():
    queries = ngram.read_queries(texts(QUERIES, 2))
    part = ngram.index(texts(DOCUMENTS, 1), queries)
    whole = ngram_index.held(ngram.find(texts(DOCUMENTS, 1), queries))
    for removed in (REMOVED, np.zeros(DOCUMENTS, bool), np.ones(DOCUMENTS, bool)):
        held = ngram_index.kept(whole, removed)
        assert len(held.doc) == (~removed[part.units.member]).sum() and (np.diff(held.unit) > 0).all() and (np.diff(held.start) > 0).all()
        for unit, a, b in zip(held.unit, held.start[:-1], held.start[1:], strict=True):
            documents = part.units.member[part.units.start[unit] : part.units.start[unit + 1]]
            assert held.doc[a:b].tolist() == documents[~removed[documents]].tolist()
