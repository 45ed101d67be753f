"""BM25 beside a dictionary of counts and beside rank-bm25, in set and in order."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from lib.retrieval import bm25
from lib.text import tokens
from route_lists import listed

CASE = json.loads((Path(__file__).parent / "cases/02-bm25-common-words-and-empties.json").read_text())


class Lucene(BM25Okapi):
    """rank-bm25 with the idf that is above 0."""

    def _calc_idf(self, nd):
        for word, df in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - df + 0.5) / (df + 0.5))


def by_counts(texts: list[str], query: str, removed: list[bool], k: int) -> list[tuple[int, float]]:
    """(document, float32 score) in order, one document and one word at a time."""
    documents, asked = [Counter(tokens(text)) for text in texts], Counter(tokens(query))
    average = sum(document.total() for document in documents) / max(len(documents), 1)
    found = []
    for row, document in enumerate(documents):
        score = 0.0
        for word in sorted(asked):
            df, tf = sum(word in other for other in documents), document[word]
            if tf:
                idf = math.log(1.0 + (len(documents) - df + 0.5) / (df + 0.5))
                score += asked[word] * idf * (tf / (tf + 1.2 * (1 - 0.75 + 0.75 * document.total() / average)))
        if score > 0 and not removed[row]:
            found.append((row, float(np.float32(score))))
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:k]


def names(case: str) -> tuple[list[str], list[str], dict]:
    given_ = CASE["input"][case]
    return list(given_["documents"]), list(given_["documents"].values()), CASE["right_answer"].get(case)


def test_case_02_a_word_in_half_of_the_documents_scores_above_zero():
    docids, texts, right = names("half")
    found = {docids[row]: score for row, score in listed(bm25.top(texts, [CASE["input"]["half"]["query"]]))}
    assert list(found) == right["route"]
    idf, part = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5)), 1 / (1 + 1.2 * (1 - 0.75 + 0.75 * 2 / 2))
    assert found["t1"] == found["t2"] == pytest.approx(idf * part)
    assert found == pytest.approx(right["scores_if_idf_is_ln(1+(N-df+0.5)/(df+0.5))_without_(k1+1)"], abs=1e-6)


def test_case_02_a_match_never_stands_behind_a_non_match():
    docids, texts, right = names("most")
    found = {docids[row]: score for row, score in listed(bm25.top(texts, [CASE["input"]["most"]["query"]]))}
    assert list(found) == [right["route_first"], "c1", "c2"]
    assert found == pytest.approx(right["scores_same_formula"], abs=1e-6)


@pytest.mark.parametrize("case", ["empty_doc", "all_empty", "no_documents"])
def test_case_02_empty_texts_and_an_empty_corpus_are_legal(case):
    docids, texts, right = names(case)
    found = listed(bm25.top(texts, [CASE["input"][case]["query"]]))
    assert [docids[row] for row, _ in found] == (right["route"] if case != "no_documents" else [])


text = st.lists(st.sampled_from(["x", "let", "f", "2x", "zz"]), max_size=8).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(text, st.booleans()), max_size=9), st.lists(text, max_size=4), st.integers(1, 12))
@example([], ["x"], 3)
@example([("", False), ("", False)], ["x", ""], 3)
@example([("x f", False)] * 5, ["x"], 3)  # ties at the cut fall to the lower row
@example([("x", True)] * 3, ["x"], 2)  # every document removed
@example([("x", False), ("x x", False), ("x", True)], ["x x x"], 9)  # one word; k beyond the documents
def test_equals_the_count_of_words_in_set_and_order(documents, queries, k):
    texts, removed = [text for text, _ in documents], [gone for _, gone in documents]
    found = bm25.top(texts, queries, k, np.array(removed, bool))
    assert found.doc.shape == found.score.shape == (len(queries), k)
    for i, query in enumerate(queries):
        assert listed(found, i) == by_counts(texts, query, removed, k)
    longer = bm25.top(texts, queries, k + 1, np.array(removed, bool))
    np.testing.assert_array_equal(longer.doc[:, :k], found.doc)


def words(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{n}" for n in rng.zipf(1.3, rng.integers(1, 60)) % 300) for _ in range(count)]


def test_scores_are_those_of_rank_bm25_with_the_idf_above_zero():
    texts, queries = words(400, 1), words(20, 2)
    peer = Lucene([tokens(text) for text in texts], k1=1.2, b=0.75)
    found = bm25.top(texts, queries, k=400)
    for i, query in enumerate(queries):
        expected = peer.get_scores(tokens(query)) / (1.2 + 1)
        hits = dict(listed(found, i))
        assert set(hits) == set(np.flatnonzero(expected > 0).tolist())
        np.testing.assert_allclose(list(hits.values()), expected[list(hits)], rtol=1e-6)


def test_removed_documents_never_appear_and_still_count_in_the_statistics():
    texts = ["x y", "x z", "x", "y"]
    removed = np.array([False, False, True, False])
    full, cut = bm25.top(texts, ["x"]), bm25.top(texts, ["x"], removed=removed)
    assert listed(cut) == [hit for hit in listed(full) if hit[0] != 2]
    assert listed(cut) != listed(bm25.top(texts[:2] + texts[3:], ["x"]))


def test_threads_change_nothing(monkeypatch):
    texts, queries, removed = words(300, 3), words(31, 4), np.arange(300) % 7 == 2
    one = bm25.top(texts, queries, removed=removed)
    monkeypatch.setattr(bm25, "PART", 20)  # of 13 parts, which threads index as they come
    for threads in (1, 3):
        found = bm25.top(texts, queries, removed=removed, threads=threads)
        assert one.doc.tobytes() == found.doc.tobytes() and one.score.tobytes() == found.score.tobytes()
        part, counted = bm25.indexed(texts, bm25.vocabulary(queries, threads), removed, threads)
        assert counted.documents == 300 and counted.words == sum(len(tokens(text)) for text in texts)
        assert part.row.tolist() == np.flatnonzero(~removed).tolist()


def test_a_mask_of_the_wrong_kind_is_refused():
    with pytest.raises(ValueError, match=r"removed is int64\[2\]; it is one bool for each of the 2 documents"):
        bm25.top(["x", "y"], ["x"], removed=np.array([0, 1]))
    with pytest.raises(ValueError, match="k is 0"):
        bm25.top(["x"], ["x"], k=0)
