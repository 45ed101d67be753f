"""The stages: the same lists however the corpus is cut into parts, resumed shards, queries that do not go on."""

from pathlib import Path

import numpy as np
import pytest

from lib import contracts, corpus, engine
from lib.corpus import imported, trec
from lib.plan import reading
from lib.retrieval import bm25, dense, fusion, hits, lsa, ngram, routes
from small_corpus import tokenizer_file

WORDS = "let f be a continuous function on the interval and x y z prime sum of squares".split()
OPTIONS = {"dimensions": 6, "seed": 3, "weights": {"dense": 2, "bm25": 1, "ngram": 1}, "k": 60}
QUERIES, DOCUMENTS = 23, 160


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 12, (count, 3))  # runs of eight words of one sentence, so that 5-grams are shared
    drawn = [" ".join(" ".join(WORDS[at : at + 8]) for at in row[: rng.integers(1, 4)]) for row in starts]
    drawn[3] = ""
    drawn[5] = drawn[6]
    return drawn


def corpus_in(run, document_rows: int, query_rows: int) -> dict:
    documents = [{"docid": f"d{i}", "text": text, "removed": i % 11 == 4} for i, text in enumerate(texts(DOCUMENTS, 1))]
    queries = [{"qid": f"q{i}", "text": text, "source_docid": f"d{i}"} for i, text in enumerate(texts(QUERIES, 2))]
    run.mkdir(parents=True, exist_ok=True)
    kept = run / "kept.txt"
    kept.write_text("".join(f"q{i}\n" for i in range(QUERIES) if i != 8))
    corpus.write(run, documents, queries, tokenizer_file(run.parent / "tokenizer"), document_rows, query_rows, kept)
    return OPTIONS | {"run": str(run)}


def searched(config: dict) -> dict:
    routes.search(config)
    found = {name: hits.from_table(contracts.read("hits", f"{config['run']}/hits/{name}")) for name in routes.SEARCHES}
    return found | {"fused": contracts.read("fused", f"{config['run']}/fused")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    config = corpus_in(tmp_path_factory.mktemp("whole") / "run", 1000, 1000)
    return config, searched(config)


@pytest.mark.parametrize(("document_rows", "query_rows"), [(37, 7), (DOCUMENTS - 1, 1)])
def test_lists_do_not_depend_on_the_cut_into_parts(whole, tmp_path, document_rows, query_rows):
    cut = searched(corpus_in(tmp_path / "run", document_rows, query_rows))
    for name in routes.SEARCHES:
        assert cut[name].doc.tobytes() == whole[1][name].doc.tobytes()
        assert cut[name].score.tobytes() == whole[1][name].score.tobytes()
    assert cut["fused"].combine_chunks().equals(whole[1]["fused"].combine_chunks())


def test_stages_give_what_the_front_doors_give(whole):
    config, found = whole
    documents = corpus.all_documents(config["run"], ["text", "removed"])
    removed, text = documents["removed"].to_numpy(), documents["text"].to_pylist()
    queries = texts(QUERIES, 2)
    queries[8] = ""
    for name, expected in {"bm25": bm25.top(text, queries, removed=removed), "ngram": ngram.top(text, queries, removed=removed)}.items():
        assert (found[name].doc >= 0).any()
        np.testing.assert_array_equal(found[name].doc, expected.doc)
        np.testing.assert_array_equal(found[name].score, expected.score)
    model = lsa.Lsa(text, OPTIONS["dimensions"], OPTIONS["seed"])
    vectors = dense.top(model.vectors(text), model.vectors(texts(QUERIES, 2)), removed=removed)
    kept = np.arange(QUERIES) != 8
    np.testing.assert_array_equal(found["dense"].doc[kept], vectors.doc[kept])


def test_a_query_that_does_not_go_on_keeps_its_row_and_gets_empty_lists(whole):
    for name in routes.SEARCHES:
        assert len(whole[1][name].doc) == QUERIES
        assert (whole[1][name].doc[8] == -1).all() and (whole[1][name].score[8] == 0).all()
        assert (whole[1][name].doc[9] >= 0).any()
    assert contracts.places(whole[1]["fused"]["doc"])[8].max() == -1


def test_the_fused_table_holds_the_dense_rank_of_each_document(whole):
    found, fused = whole[1], whole[1]["fused"]
    doc, rank = contracts.places(fused["doc"]), contracts.places(fused["dense_rank"])
    expected = fusion.weighted_rrf({name: found[name] for name in routes.SEARCHES}, OPTIONS["weights"])
    np.testing.assert_array_equal(doc, expected.doc)
    for query in range(QUERIES):
        ranks = {d: i for i, d in enumerate(found["dense"].doc[query].tolist(), 1)}
        assert rank[query].tolist() == [ranks.get(d, 0) if d >= 0 else 0 for d in doc[query].tolist()]
    assert (rank > 0).any()


def test_a_second_search_makes_nothing_again(tmp_path, monkeypatch):
    config = corpus_in(tmp_path / "run", 50, 10)
    routes.search(config)
    monkeypatch.setattr(contracts, "write", lambda *_: pytest.fail("a finished shard was made again"))
    routes.search(config)


def test_a_lost_part_is_made_again_with_the_same_bytes_and_others_weights_only_fuse_again(tmp_path, monkeypatch):
    config = corpus_in(tmp_path / "run", 50, 10)
    routes.search(config)
    lost, written = tmp_path / "run/hits/ngram/part-00001.parquet", []
    before = lost.read_bytes()
    lost.unlink()
    write = contracts.write
    monkeypatch.setattr(contracts, "write", lambda name, *rest: (written.append(name), write(name, *rest))[1])
    routes.search(config)
    assert (written, lost.read_bytes()) == (["hits"], before)
    routes.search(config | {"weights": {"dense": 1, "bm25": 1, "ngram": 1}})
    assert written == ["hits", "fused", "fused", "fused"]


def test_an_imported_run_is_a_route_in_the_fusion_and_an_imported_dense_route_is_not_searched(tmp_path):
    config = corpus_in(tmp_path / "run", 1000, 1000)
    run = tmp_path / "run"
    for name, docs in (("mine", (7, 9, 7)), ("dense", (1, 2, 3))):
        lines = [f"q0 Q0 d{doc} {rank} {1 / rank} x" for rank, doc in enumerate(docs, 1)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        imported.write_route(run, trec.run(tmp_path / name), name)
    repeats = routes.search(config | {"weights": {"dense": 1, "mine": 3}})
    fused = contracts.read("fused", run / "fused")
    assert contracts.places(fused["doc"])[0][:5].tolist() == [7, 9, 1, 2, 3]  # 3/61, 3/62, 1/61, 1/62, 1/63
    assert repeats == {"dense": 0, "mine": 1}
    assert not (run / "vectors").exists() and not (run / "hits" / "bm25").exists()


def test_a_route_imported_for_former_documents_is_refused_until_it_is_imported_again(tmp_path):
    config = corpus_in(tmp_path / "run", 1000, 1000) | {"weights": {"dense": 1}}
    (tmp_path / "dense").write_text("q0 Q0 d1 1 1 x\n")
    imported.write_route(tmp_path / "run", trec.run(tmp_path / "dense"), "dense")
    corpus.write(tmp_path / "run", [{"docid": "d1", "text": "other"}], [{"qid": "q0", "text": "x"}], tmp_path / "run/tokenizer.json")
    with pytest.raises(ValueError, match="import the run again, or remove the folder"):
        routes.search(config)
    imported.write_route(tmp_path / "run", trec.run(tmp_path / "dense"), "dense")
    routes.search(config)
    assert contracts.places(contracts.read("fused", tmp_path / "run/fused")["doc"])[0][0] == 0


@pytest.mark.parametrize(("weights", "said"), [({"bm25": 1}, "dense must be one of them"), ({"dense": 1, "splade": 1}, "there is no route 'splade'")])
def test_a_route_that_nobody_searches_or_a_fusion_without_dense_is_refused(tmp_path, weights, said):
    with pytest.raises(ValueError, match=said):
        routes.search(corpus_in(tmp_path / "run", 1000, 1000) | {"weights": weights})


def test_dense_search_refuses_vectors_of_another_corpus(tmp_path):
    config = corpus_in(tmp_path / "run", 50, 10)
    routes.search(config)
    other = corpus_in(tmp_path / "run", 40, 10)
    for name in ("vectors", "query_vectors"):  # as they were finished before manifests said what they were made from
        contracts.finish(tmp_path / "run" / name, contracts.lines(tmp_path / "run" / name))
    with pytest.raises(contracts.ContractError, match="is not 40 vectors of one length; encode again"):
        engine.map(routes.dense, other)


def test_the_dense_backend_changes_no_byte_and_is_not_asked_of_what_is_done(tmp_path):
    config = corpus_in(tmp_path / "run", 50, 10)
    routes.search(config)
    part = tmp_path / "run/hits/dense/part-00001.parquet"
    before = part.read_bytes()
    part.unlink()
    lines = engine.map(routes.dense, config | {"dense_backend": "bf16"})
    assert part.read_bytes() == before and len(lines) == 3
    engine.map(routes.dense, config | {"dense_backend": "never read"})


def test_dense_search_names_the_corpus_row_of_a_vector_that_is_zero(tmp_path):
    config = corpus_in(tmp_path / "run", 50, 10)
    routes.search(config)
    folder = tmp_path / "run/vectors"
    lines = contracts.parts(folder)
    vectors = contracts.read_part("vectors", folder / lines[1]["part"])["vector"].to_pylist()
    vectors[7] = [0.0] * len(vectors[7])
    lines[1] = contracts.write("vectors", contracts.table("vectors", {"vector": vectors}), folder / lines[1]["part"])
    contracts.finish(folder, lines)
    with pytest.raises(ValueError, match=r"1 live document vectors cannot be searched: row 57 \(zero\); check them"):
        engine.map(routes.dense, config)


def test_dense_search_names_the_row_of_a_query_vector_that_is_zero(tmp_path):
    config = corpus_in(tmp_path / "run", 50, 10)
    routes.search(config)
    folder = tmp_path / "run/query_vectors"
    lines = contracts.parts(folder)
    vectors = contracts.read_part("vectors", folder / lines[1]["part"])["vector"].to_pylist()
    vectors[7] = [0.0] * len(vectors[7])
    lines[1] = contracts.write("vectors", contracts.table("vectors", {"vector": vectors}), folder / lines[1]["part"])
    contracts.finish(folder, lines)
    with pytest.raises(ValueError, match=r"1 query vectors cannot be searched: row 17 \(zero\); check them"):
        engine.map(routes.dense, config)


@pytest.mark.parametrize(
    "documents", [[("", False)], [("let f", True), ("let f be a continuous", True)], [("", False), ("f", True)]],
)
def test_nothing_to_find_gives_empty_lexical_lists_and_no_removed_document(tmp_path, documents):
    rows = [{"docid": f"d{i}", "text": text, "removed": removed} for i, (text, removed) in enumerate(documents)]
    queries = [{"qid": "q0", "text": "let f be a continuous"}, {"qid": "q1", "text": ""}]
    corpus.write(tmp_path / "run", rows, queries, tokenizer_file(tmp_path / "tokenizer"), document_rows=1)
    found = searched(OPTIONS | {"run": str(tmp_path / "run")})
    assert found["bm25"].doc.max() == found["ngram"].doc.max() == -1
    assert {0, 1} >= set(np.unique(found["dense"].doc)) - {-1} == {i for i, (_, removed) in enumerate(documents) if not removed}


def test_lsa_gives_the_same_bytes_twice_and_no_nan_for_texts_without_words():
    documents = texts(40, 5) + ["", "..."]
    first, second = (lsa.Lsa(documents, 8, 1).vectors([*documents, "unknown words"]) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-6)
    for wordless in (-1, -2, -3):
        assert first[wordless].tolist() == [0.0] * (first.shape[1] - 1) + [1.0]
    assert (first[0, -1], first[0] @ first[-1]) == (0, 0)


@pytest.mark.parametrize("documents", [[], [""], ["word"], ["one", "two"]])
def test_lsa_of_the_smallest_corpora_is_finite(documents):
    vectors = lsa.Lsa(documents, 8, 1).vectors([*documents, "word"])
    assert np.isfinite(vectors).all() and len(vectors) == len(documents) + 1


def test_the_hits_table_pads_and_gives_back_the_lists():
    found = hits.Hits(np.array([[4, 2], [7, -1]], np.int32), np.array([[2.5, 1], [3, 0]], np.float32))
    back = hits.from_table(hits.table(found))
    assert back.doc.shape == (2, contracts.DEPTH)
    np.testing.assert_array_equal(back.doc[:, :2], found.doc)
    assert (back.doc[:, 2:] == -1).all() and (back.score[:, 2:] == 0).all()
    with pytest.raises(ValueError, match="holds 100 places a query, not 101"):
        hits.table(hits.none(1, 101))


@pytest.mark.parametrize("left", [10_000, 100_000])  # less than the texts take, and less than the factors
def test_an_analysis_that_does_not_fit_the_memory_is_refused_before_it_tries(tmp_path, monkeypatch, left):
    config = corpus_in(tmp_path / "run", 50, 10)
    monkeypatch.setattr(lsa, "free", lambda: left)
    with pytest.raises(ValueError, match=r"of 160 documents takes some 0\.0 GiB of memory and 0\.0 GiB are free; give 02-retrieve fewer `dimensions` or another `encoder`"):
        lsa._fitted.__wrapped__(config["run"], "", 500, 0)


def test_the_notebook_offers_every_dense_backend():
    notebook = reading.notebook(Path(__file__).resolve().parents[1] / "notebooks" / "02-retrieve.ipynb")
    assert reading.choices(notebook.parameters["dense_backend"]) == list(dense.BACKENDS)
