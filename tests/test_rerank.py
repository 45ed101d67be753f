"""Scoring pairs: the overlap scorer, what is scored, where documents are cut, and scores that are no numbers."""

import numpy as np
import pyarrow as pa
import pytest

from lib import contracts, corpus, engine
from lib.draw import first_by_hash
from lib.retrieval import hits, rerank
from lib.retrieval.rerank import Scorer
from small_corpus import tokenizer_file

OPTIONS = {"scorer": "overlap", "long_tokens": 20, "auc_queries": 2, "routes": ["dense", "bm25", "ngram"], "seed": 2}
QUERIES, DOCUMENTS, LONG = 5, 30, (9, 17)


def filled(docs: list[int]) -> list[int]:
    return docs + [-1] * (contracts.DEPTH - len(docs))


def dense_list(query: int) -> list[int]:
    return [(query + i) % DOCUMENTS for i in range(25)]


def lexical_list(query: int) -> list[int]:
    return [29, 28, query] if query != 3 else []


@pytest.fixture
def config(tmp_path) -> dict:
    """Five queries in two parts, thirty documents of which two are long; query 1 has no list."""
    run = tmp_path / "run"
    text = ["the cat on the mat" if row not in LONG else "the mat " * 40 + "the cat sat" for row in range(DOCUMENTS)]
    documents = [{"docid": f"d{row}", "text": text[row] + f" {row}"} for row in range(DOCUMENTS)]
    queries = [{"qid": f"q{row}", "text": f"the cat {row + 6}", "source_docid": f"d{row + 7}"} for row in range(QUERIES)]
    corpus.write(run, documents, queries, tokenizer_file(tmp_path / "tokenizer"), 8, 3)
    for route, docs in {"dense": dense_list, "bm25": lexical_list, "ngram": lexical_list}.items():
        lines = []
        for part in corpus.parts(run, "queries"):
            doc = np.array([filled(docs(q) if q != 1 else []) for q in range(part.first, part.first + part.rows)], np.int32)
            table = hits.table(hits.Hits(doc, np.zeros(doc.shape, np.float32)))
            lines.append(contracts.write("hits", table, run / "hits" / route / f"{part.shard}.parquet"))
        contracts.finish(run / "hits" / route, lines)
    return OPTIONS | {"run": str(run)}


def scored(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["query"].to_pylist(), table["doc"].to_pylist(), strict=True))


def test_overlap_is_the_share_of_words_pairs_and_triples():
    found = rerank.overlap(["a b c", "a b c", "", "a a"], ["b c d a", "A, b; c!", "a", "a"])
    # of a, b, c | a b, b c | a b c the first document holds a, b, c and b c
    assert found.tolist() == [np.float32((3 * 1 + 1 * 2 + 0) / (3 * 1 + 2 * 2 + 1 * 3)), 1.0, 0.0, np.float32(1 / (1 + 2))]
    assert found.dtype == np.float32
    assert rerank.overlap([], []).shape == (0,)


def test_the_short_pairs_of_dense_ranks_6_to_20_are_scored_source_pages_too(config):
    engine.map(rerank.pairs, config)
    table = contracts.read("rerank", f"{config['run']}/rerank")
    expected = [(q, d) for q in range(QUERIES) if q != 1 for d in dense_list(q)[5:20] if d not in LONG]
    assert scored(table) == expected
    assert (0, 7) in expected  # the source page of query 0
    rows = [line["rows"] for line in contracts.parts(f"{config['run']}/rerank")]
    assert rows == [sum(q < 3 for q, _ in expected), sum(q >= 3 for q, _ in expected)]
    assert set(table["model"].to_pylist()) == {"overlap"}
    score = dict(zip(expected, table["score"].to_pylist(), strict=True))
    assert score[0, 6] > score[0, 7] > 0  # "the cat 6" holds the query's number


@pytest.mark.parametrize("batch", [7, 512])
def test_each_pair_has_the_score_of_its_own_texts(config, batch, monkeypatch):
    monkeypatch.setattr(rerank, "BATCH", batch)
    engine.map(rerank.pairs, config)
    table = contracts.read("rerank", f"{config['run']}/rerank")
    texts = corpus.all_queries(config["run"], ["text"]), corpus.all_documents(config["run"], ["text"])
    own = [known["text"].take(table[name]).to_pylist() for name, known in zip(("query", "doc"), texts, strict=True)]
    assert table["score"].to_pylist() == rerank.overlap(*own).tolist() and len(set(table["score"].to_pylist())) > 1


def test_a_document_of_exactly_the_threshold_is_short(config):
    tokens = corpus.all_documents(config["run"], ["n_tokens"])["n_tokens"][6].as_py()
    for threshold in (tokens, tokens - 1):
        engine.map(rerank.pairs, config | {"long_tokens": threshold})
        found = scored(contracts.read("rerank", f"{config['run']}/rerank"))
        assert ((0, 6) in found) == (threshold == tokens)


def probe(config: dict, queries: list[int]) -> None:
    run, lines = config["run"], []
    for part in corpus.parts(run, "queries"):
        rows = [
            {"query": q, "doc": 0, "judge": "llm", "version": "probe", "stage": "probe", "round": 1, "reason": "probe",
             "max_chars": 100, "rank": 0, "withdrawn": False}
            for q in queries if part.first <= q < part.first + part.rows
        ]
        line = contracts.write("intents", contracts.table("intents", rows), f"{run}/intents/probe/{part.shard}.parquet")
        lines.append(line | {"probed": sorted({row["query"] for row in rows})})
    contracts.finish(f"{run}/intents/probe", lines)


def test_the_pool_is_the_union_of_the_routes_without_the_source_page_for_a_draw_of_the_probe_queries(config):
    probe(config, [0, 3, 4])
    assert first_by_hash(np.array([0, 3, 4]), 2, 2).tolist() == [0, 3]
    engine.map(rerank.pool, config)
    table = contracts.read("rerank", f"{config['run']}/rerank_pool")
    union = {q: sorted({*dense_list(q), *lexical_list(q)} - {q + 7}) for q in (0, 3)}
    assert scored(table) == [(q, d) for q, docs in union.items() for d in docs]
    assert {29, 28} <= set(union[0]) and set(LONG) <= {d for _, d in scored(table)}
    assert [line["queries"] for line in contracts.parts(f"{config['run']}/rerank_pool")] == [1, 1]


def test_a_long_document_is_cut_before_it_is_scored(config, monkeypatch):
    seen = {}

    def watch(queries, documents):
        seen.update(zip(documents, queries, strict=True))
        return rerank.overlap(queries, documents)

    monkeypatch.setitem(rerank.SCORERS, "watch", Scorer("watch", watch))
    probe(config, [0])
    engine.map(rerank.pool, config | {"scorer": "watch"})
    text = corpus.Texts(config["run"]).texts([LONG[0]])[0]
    cut = corpus.cut_tokens(corpus.tokenizer(config["run"]), text, 20)
    assert cut in seen and text not in seen and 0 < len(cut) < len(text)
    assert corpus.Texts(config["run"]).texts([0])[0] in seen


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_stops_with_the_names_of_the_pair(config, monkeypatch, value):
    def broken(queries, documents):
        return np.where(np.array([text.endswith(" 6") for text in documents]), value, 1).astype(np.float32)

    monkeypatch.setitem(rerank.SCORERS, "broken", Scorer("broken", broken))
    with pytest.raises(ValueError, match=f"the scorer broken gave {value} for query q0 and document d6"):
        engine.map(rerank.pairs, config | {"scorer": "broken"})
    with pytest.raises(contracts.ContractError, match="not finished"):
        contracts.read("rerank", f"{config['run']}/rerank")


def test_a_document_that_a_route_repeats_is_one_pair_at_its_best_rank():
    dense = np.array([[0, 1, 2, 3, 4, 5, 0, 6, 5, *range(10, 30)]], np.int32)
    query, place = rerank.short_pairs(dense, np.ones(40, bool))
    assert dense[query, place].tolist() == [5, 6, *range(10, 21)]


def test_a_scorer_that_gives_other_than_one_float32_a_pair_is_refused():
    for wrong in (lambda queries, documents: [0.5], lambda queries, documents: np.zeros(1, np.float32)):
        with pytest.raises(ValueError, match="the scorer wrong gave .* for 2 pairs"):
            rerank.score_pairs(Scorer("wrong", wrong), ["a", "b"], ["a", "b"], lambda i: ("q", "ab"[i]))


def test_an_unknown_scorer_is_refused_by_name():
    with pytest.raises(ValueError, match="there is no scorer 'qwen'; take one of overlap"):
        rerank.scorer("qwen")
