"""Nothing is taken for what it was made from another corpus, also where the corpora are equal in size."""

import json
import shutil
from pathlib import Path

import pytest

from lib import contracts, corpus, engine, paths
from lib.corpus import imported
from lib.corpus.lines import Place
from lib.corpus.trec import Ranked
from lib.retrieval import routes
from small_corpus import contents, tokenizer_file

TABLES = ("vectors", "query_vectors", "index/bm25", "index/ngram", "hits/dense", "hits/bm25", "hits/ngram", "fused")
MADE_AGAIN = "another run/documents; run the notebook that writes it again"


def import_corpus(run: Path, word: str, query: str = "a b c d e f") -> dict:
    """Six documents and two queries; corpora of other words have the same ids and rows."""
    documents = [{"docid": f"d{i}", "text": f"a b c d e f {word * (i + 1)} {i % 3}"} for i in range(6)]
    queries = [{"qid": f"q{i}", "text": f"{query} {i}"} for i in range(2)]
    corpus.write(run, documents, queries, tokenizer_file(run.parent / "tokenizer"), document_rows=4)
    return {"run": str(run), "dimensions": 3, "seed": 0, "weights": {"dense": 2, "bm25": 1, "ngram": 1}, "k": 60}


@pytest.fixture
def searched(tmp_path, monkeypatch) -> dict:
    """The configuration of a run that was searched whole."""
    monkeypatch.setattr(paths, "HOME", tmp_path)
    config = import_corpus(tmp_path / "run", "g ")
    routes.search(config)
    return config


def element(config: dict, stage: str) -> None:
    """One element of a job array."""
    file = Path(config["run"]).with_suffix(".json")
    file.write_text(json.dumps(config))
    engine.main([stage, str(file), "--shard", "0/1"])


def tables(config: dict) -> dict[str, bytes]:
    return {f"{name}/{file}": data for name in TABLES for file, data in contents(Path(config["run"]) / name).items() if file.endswith((".parquet", "manifest.json"))}


@pytest.mark.parametrize(("stage", "stale"), [
    ("lib.retrieval.routes:dense", "vectors"),
    ("lib.retrieval.routes:fused", "hits/dense"),
    ("lib.retrieval.bm25_index:search", "index/bm25"),
    ("lib.retrieval.ngram_index:search", "index/ngram"),
    ("lib.retrieval.rerank:pairs", "hits/dense"),
    ("lib.routing.stages:v2", "hits/dense"),
])
def test_a_stage_alone_refuses_what_was_made_from_another_corpus_of_the_same_rows(searched, stage, stale):
    config = import_corpus(Path(searched["run"]), "b a ") | {
        "scorer": "overlap", "long_tokens": 9, "long_chars": 9, "trial_queries": 0,
    }  # fmt: skip
    with pytest.raises(SystemExit, match=f"^lib.engine: run/{stale} was made from {MADE_AGAIN}$"):
        element(config, stage)
    with pytest.raises(contracts.ContractError, match=f"run/{stale} was made from {MADE_AGAIN}"):
        engine.map(engine.find(stage), config)
    with pytest.raises(contracts.ContractError, match="^run/fused|^run/hits/dense"):
        contracts.read("fused", Path(config["run"]) / "fused")


def test_all_stages_in_their_order_make_anew_what_the_corpus_changed(searched, tmp_path):
    before = tables(searched)
    routes.search(import_corpus(tmp_path / "run", "b a "))
    other = import_corpus(tmp_path / "other" / "run", "b a ")
    routes.search(other)
    assert tables(searched) == tables(other)
    changed = {name for name, data in tables(other).items() if data != before[name]}
    assert changed >= {f"{name}/part-00000.parquet" for name in ("vectors", "hits/dense", "hits/bm25")}
    import_corpus(tmp_path / "run", "g ")
    routes.search(searched)
    assert tables(searched) == before


def test_a_corpus_that_is_imported_again_as_it_was_leaves_all_finished(searched, tmp_path):
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("part-*.json")}
    import_corpus(tmp_path / "run", "b a ")
    import_corpus(tmp_path / "run", "g ")
    routes.search(searched)
    assert {path: path.stat().st_mtime_ns for path in times} == times and len(times) == 11


@pytest.mark.parametrize("folder", ["vectors", "query_vectors", "index/bm25", "hits/ngram"])
def test_a_folder_that_is_copied_from_a_run_of_another_corpus_is_refused(searched, tmp_path, folder):
    other = import_corpus(tmp_path / "other" / "run", "b a ", query="f e d c b a")
    routes.search(other)
    shutil.rmtree(tmp_path / "run" / folder)
    shutil.copytree(tmp_path / "other" / "run" / folder, tmp_path / "run" / folder)
    with pytest.raises(contracts.ContractError, match=f"^run/{folder} was made from another run/(documents|queries); "):
        contracts.parts(tmp_path / "run" / folder)
    with pytest.raises(contracts.ContractError, match=f"^run/{folder} was made from another run/(documents|queries); "):
        engine.key(routes.fused, searched)


def test_an_imported_route_that_is_copied_from_another_run_is_refused_by_the_search_and_by_the_fusion_alone(searched, tmp_path):
    own, other = tmp_path / "run/hits/own", tmp_path / "other/run"
    import_corpus(other, "b a ")
    imported.write_route(other, [Ranked(Place("r", 1), "q1", "d1", 1, 0.5)], "own")
    shutil.copytree(other / "hits/own", own)
    config = searched | {"weights": searched["weights"] | {"own": 1}}
    with pytest.raises(ValueError, match="^run/hits/own was imported for other documents or queries; import the run again"):
        routes.search(config)
    with pytest.raises(contracts.ContractError, match="^run/hits/own was made from another run/documents; "):
        engine.map(routes.fused, config)
    imported.write_route(tmp_path / "run", [Ranked(Place("r", 1), "q1", "d1", 1, 0.5)], "own")
    assert routes.search(config)["own"] == 0


def test_what_is_not_kept_any_longer_is_not_compared_and_a_run_from_before_is_taken_as_it_is(searched):
    run = Path(searched["run"])
    for name in ("vectors", "index"):  # the largest folders, which nobody reads after the search
        shutil.rmtree(run / name)
    engine.map(routes.fused, searched)
    import_corpus(run, "b a ")
    for name in TABLES[4:]:
        contracts.finish(run / name, contracts.lines(run / name))  # as manifests were written before they said what they were made from
    engine.map(routes.fused, searched)
    assert "made_from" in json.loads((run / "fused/manifest.json").read_text())
