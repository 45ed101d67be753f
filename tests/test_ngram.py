"""The 5-gram route beside sets of tuples and exact fractions, in set and in order."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.retrieval import ngram, postings
from lib.retrieval.hits import Hits
from lib.text import grams, tokens
from route_lists import listed

CASE = json.loads((Path(__file__).parent / "cases/05-word-five-grams-not-character.json").read_text())


def by_sets(texts: list[str], query: str, removed: list[bool], k: int, n: int = 5) -> list[tuple[int, float]]:
    """(document, float32 score) in order; the sum is one of fractions over 2^32."""
    documents, asked = [grams(tokens(text), n) for text in texts], grams(tokens(query), n)
    found = []
    for row, document in enumerate(documents):
        score = Fraction(0)
        for gram in document & asked:
            df = sum(gram in other for other in documents)
            score += Fraction(round(math.log(1.0 + (len(texts) - df + 0.5) / (df + 0.5)) * 2**32), 2**32)
        if score > 0 and not removed[row]:
            found.append((row, float(np.float32(float(score)))))
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:k]


@pytest.mark.parametrize("query", ["qa", "qb", "qc"])
def test_case_05_only_word_five_grams_count_each_once(query):
    docids, texts = list(CASE["input"]["documents"]), list(CASE["input"]["documents"].values())
    shared = {"qa": {"g1": 1, "g3": 1}, "qb": {}, "qc": {"g5": 1}}[query]
    assert query == "qc" or CASE["right_answer"]["shared_word_5grams"][query] == shared
    found = {docids[row]: score for row, score in listed(ngram.top(texts, [CASE["input"]["queries"][query]]))}
    df = len(shared)
    assert found == {name: pytest.approx(count * math.log(1 + (5 - df + 0.5) / (df + 0.5))) for name, count in shared.items()}
    assert list(found) == list(shared)


word = st.sampled_from(["a", "b", "let"])
text = st.lists(word, max_size=14).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(text, st.booleans()), max_size=8), st.lists(text, max_size=4), st.integers(1, 10), st.sampled_from([1, 2, 5]))
@example([], ["a b a b a"], 3, 5)
@example([("", False), ("a a a a", False)], ["a a a a", ""], 3, 5)  # under five words: no 5-gram
@example([("a a a a a a a", False)] * 4, ["a a a a a"], 2, 5)  # a repeat counts once; ties at the cut
@example([("a b a b a", True)] * 2, ["a b a b a"], 2, 5)  # every document removed
@example([("a b", False), ("a", False), ("b let", False)], ["b a", "let a"], 9, 2)  # no 2-gram runs from one text into the next
def test_equals_the_sets_of_ngrams_in_set_and_order(documents, queries, k, n):
    texts, removed = [text for text, _ in documents], [gone for _, gone in documents]
    found = ngram.top(texts, queries, k, np.array(removed, bool), n)
    assert found.doc.shape == (len(queries), k)
    for i, query in enumerate(queries):
        assert listed(found, i) == by_sets(texts, query, removed, k, n)
    longer = ngram.top(texts, queries, k + 1, np.array(removed, bool), n)
    np.testing.assert_array_equal(longer.doc[:, :k], found.doc)


def sentences(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    base = [f"v{n}" for n in range(400)]
    return [" ".join(" ".join(base[at : at + 12]) for at in rng.integers(0, 380, rng.integers(1, 6))) for _ in range(count)]


def test_equals_the_sets_of_ngrams_on_many_texts_with_many_ties():
    texts, queries = sentences(150, 1), sentences(12, 2)
    found = ngram.top(texts, queries, k=20)
    ties = 0
    for i, query in enumerate(queries):
        expected = by_sets(texts, query, [False] * len(texts), 20)
        assert listed(found, i) == expected
        ties += len(expected) - len({score for _, score in expected})
    assert ties > 10


def test_a_sum_beyond_float64_is_rounded_once():
    # 2^60 + 2^36 is the middle of two float32; its neighbours would fall on it by way of float64
    for total in (2**60 + 2**36 + 1, 2**60 + 2**36, 2**60 + 2**36 - 1):
        one = postings.group(np.array([0]), np.array([0]), 1, 1)
        part = postings.Postings(one, np.array([1]))
        found = postings.search(part, one, np.array([total]), np.array([1]), 1.0, 1, None, 0, 1)
        nearest = min((2**60, 2**60 + 2**37), key=lambda f: (abs(f - total), f % 2**38 != 0))
        assert isinstance(found, Hits) and int(found.score[0, 0]) == nearest


def test_threads_change_nothing():
    texts, queries = sentences(200, 3), sentences(17, 4)
    one, three = ngram.top(texts, queries), ngram.top(texts, queries, threads=3)
    assert one.doc.tobytes() == three.doc.tobytes() and one.score.tobytes() == three.score.tobytes()


def test_an_ngram_of_no_words_is_refused():
    with pytest.raises(ValueError, match="n is 0; an n-gram has at least 1 word"):
        ngram.top(["a"], ["a"], n=0)


def test_an_idf_is_rounded_not_floored():
    texts, text = 1003, "let f be a function"
    idf = math.log(1 + 0.5 / (texts + 0.5)) * 2**32  # every text holds the gram: a small idf, where float32 shows a unit of 2^-32
    assert round(idf) != math.floor(idf)
    assert ngram.top([text] * texts, [text], k=1).score[0, 0] == np.float32(round(idf) / 2**32) != np.float32(math.floor(idf) / 2**32)
