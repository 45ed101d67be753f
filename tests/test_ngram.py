"""The 5-gram route beside sets of tuples with exact fractions, and beside the grams numbered step by step, to the byte."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ngram_reference
from lib.retrieval import grams as loops, ngram, postings, tokenizer
from lib.retrieval.hits import Hits
from lib.retrieval.postings import Groups
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
        one = Groups(np.array([0, 1]), np.array([0], np.int32))
        part = postings.Postings(one, np.array([1]))
        found = postings.search(part, np.array([total]), one, 1.0, 1, None, 0, 1)
        nearest = min((2**60, 2**60 + 2**37), key=lambda f: (abs(f - total), f % 2**38 != 0))
        assert isinstance(found, Hits) and int(found.score[0, 0]) == nearest


def same(a, b) -> bool:
    return all(one.dtype == other.dtype and one.tobytes() == other.tobytes() for one, other in zip(a, b, strict=True))


def equal_step_by_step(texts, queries, n=5, k=20, removed=None) -> int:
    """Hold queries, postings and lists to the reference; how many places the lists fill."""
    asked, by_steps = ngram.read_queries(queries, n), ngram_reference.read_queries(queries, n)
    # the reference numbers the words in the order of their bytes, and the grams in the order of their words
    rank = np.argsort(np.argsort(tokenizer.listed(asked.vocabulary)))
    words = rank[asked.word[asked.at[:, None] + np.arange(n)]] if asked.size else np.empty((0, n))
    order = np.lexsort(words.T[::-1])
    number = np.argsort(order)
    of = np.repeat(np.arange(len(queries)), np.diff(asked.units.start))
    sorted_ = np.lexsort((number[asked.units.member], of))
    renamed = Groups(asked.units.start, number[asked.units.member][sorted_].astype(np.int32))
    assert asked.size == by_steps.size and same(renamed, by_steps.units)
    part, other = ngram.index(texts, asked), ngram_reference.index(texts, by_steps)
    assert same([part.length], [other.length])
    for new, old in enumerate(order):
        a, b = (slice(*units.start[unit : unit + 2]) for units, unit in ((part.units, old), (other.units, new)))
        assert same([part.units.member[a]], [other.units.member[b]])
    found = ngram.top(texts, queries, k, removed, n)
    assert same(found, ngram_reference.top(texts, queries, k, removed, n))
    return int((found.doc >= 0).sum())


odd = st.sampled_from(["a", "B", "\u0130", "\u212a", "abcdefghij", "abcdefghik", "ABCDEFGH", "\u00e9", "-", "x1"])
odd_text = st.lists(odd, max_size=20).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(odd_text, max_size=6), st.lists(odd_text, max_size=4), st.sampled_from([1, 2, 3, 5, 8]))
@example(["a b c"], ["", "a"], 2)
@example(["a a a a a a a a a", "a a a a a"], ["a a a a a a", "a a a a a a a"], 5)
@example([], [], 5)
def test_equals_the_grams_numbered_step_by_step_to_the_byte(texts, queries, n):
    equal_step_by_step(texts, queries, n)


@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_many_texts_equal_the_grams_numbered_step_by_step_to_the_byte(n):
    texts, queries = sentences(400, 5) + ["v1 v2 v3 v4 v5"] * 40, sentences(60, 6) + ["v1 v2 v3 v4 v5"]
    removed = np.arange(len(texts)) % 7 == 0
    assert equal_step_by_step(texts, queries, n, removed=removed) > 500


def test_a_word_that_no_query_holds_breaks_a_gram():
    texts = ["let f be a function", "let f be qq a function", "let f be a, function!", "f be a function let f be a"]
    assert [row for row, _ in listed(ngram.top(texts, ["Let f be a function"]))] == [0, 2]


def test_a_hash_that_is_always_the_same_merges_nothing(monkeypatch):
    texts, queries = sentences(12, 7), sentences(6, 8)
    expected = ngram.top(texts, queries)
    for name in ("_of_gram", "_of_word", "_power"):
        monkeypatch.setattr(loops, name, lambda _: np.uint64(0))
    for name in ("spread", "number", "sift", "match", "find", "_next"):
        monkeypatch.setattr(loops, name, getattr(loops, name).py_func)
    with np.errstate(over="ignore"):
        assert same(ngram.top(texts, queries), expected) and (expected.doc >= 0).any()


@pytest.mark.parametrize("count", [1, 4, 40])
def test_a_table_filled_by_many_ranges_finds_the_same(count, monkeypatch):
    monkeypatch.setattr(ngram, "LARGE", 0)
    monkeypatch.setattr(ngram, "RANGES", 16)  # of one place each at first, which is too little
    assert equal_step_by_step(sentences(100, 5), sentences(count, 6), k=10) > 0 and equal_step_by_step(["a b"], ["a b", "b"], 1) == 2


def test_long_words_of_one_key_are_told_apart_by_their_bytes():
    asked = ngram.read_queries(["a b abcdefghij c d"])
    for text, expected in (("a b abcdefghij c d", 1), ("a b abcdefghik c d", 0), ("a b abcdefghijk c d", 0)):
        for _, block in tokenizer.read(tokenizer.of([text])):
            block.key[:] = asked.key[asked.word]  # as if the long word's hash were the same
            at, hashes, unit, doc = (np.empty(5, kind) for kind in (np.int32, np.uint64, np.int32, np.int32))
            assert loops.sift(block.key, 5, asked.bits, at, hashes) == 1
            known = asked.vocabulary
            found = loops.match(at[:1], hashes[:1], *block, 5, asked.slots, asked.room, asked.at, asked.word, asked.key, known.data, known.start, 0, unit, doc)
            assert found == expected


@pytest.mark.parametrize("texts_at_once", [1, 7, 512])
def test_threads_and_shards_change_nothing(texts_at_once, monkeypatch):
    texts, queries = sentences(200, 3), sentences(17, 4)
    one = ngram.top(texts, queries)
    asked = ngram.read_queries(queries)
    whole = ngram.index(texts, asked)
    monkeypatch.setattr(ngram, "TEXTS", texts_at_once)
    assert same(ngram.top(texts, queries, threads=3), one)
    for cuts in ([0, 200], [0, 0, 13, 150, 200]):
        for threads in (1, 2):
            part = ngram.index_shards((texts[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)), asked, threads)
            assert same(part.units, whole.units) and same([part.length], [whole.length])


@settings(max_examples=100, deadline=None)
@given(st.lists(odd_text, max_size=9), st.sampled_from([1, 2, 5]), st.sampled_from([2, 3, 5]))
@example([], 5, 2)
@example(["", "a b", ""], 1, 3)
@example(["a b a b a b"] * 5, 2, 4)
def test_queries_read_by_several_threads_are_the_same(queries, n, threads):
    one, several = ngram.read_queries(queries, n), ngram.read_queries(queries, n, threads)
    assert same(one.units, several.units) and same(one[4:5], several[4:5]) and same(one.vocabulary[:2], several.vocabulary[:2])
    assert same(one[2:4], several[2:4]) and same(ngram.index(queries, one).units, ngram.index(queries, several).units)


@pytest.mark.parametrize("block", [1, 300, 2000])
def test_blocks_change_nothing(block, monkeypatch):
    texts, queries = [*sentences(60, 3), "", "v1 v2 v3 v4 v5 " * 200, "", *sentences(60, 5)], sentences(17, 4)
    asked = ngram.read_queries(queries)
    whole = ngram.find(texts, asked)
    monkeypatch.setattr(tokenizer, "BLOCK", block)
    assert len(tokenizer.blocks(tokenizer.of(texts))[0]) > 5 and same(ngram.find(texts, asked), whole)
    assert len(whole.unit) > 500 and same(ngram.top(texts, queries), ngram_reference.top(texts, queries))


def test_what_is_found_stands_once_a_document_and_in_order():
    texts = sentences(40, 3) + ["v1 v2 v3 v4 v5 v6 " * 60, "v7 v8 v9 v10 v11 " * 2]
    found = ngram.find(texts, ngram.read_queries([*sentences(9, 4), "v1 v2 v3 v4 v5 v6 v1 v2 v3 v4", "v7 v8 v9 v10 v11"]))
    pairs = list(zip(found.doc.tolist(), found.unit.tolist(), strict=True))
    assert pairs == sorted(set(pairs)) and [(found.doc == row).sum() for row in (40, 41)] == [6, 1]
    assert found.length.tolist() == [len(tokens(one)) for one in texts]


@pytest.mark.parametrize("places", [1 << 18, 0])
def test_many_queries_read_by_several_threads_are_the_same(places, monkeypatch):
    monkeypatch.setattr(ngram, "LARGE", places)
    queries = sentences(3000, 9)
    one, several = ngram.read_queries(queries), ngram.read_queries(queries, threads=3)
    assert same(one.units, several.units) and same([one.at, one.word], [several.at, several.word])
    assert same(ngram.index(queries, one).units, ngram.index(queries, several).units)


def test_texts_may_come_from_arrow():
    texts, queries = sentences(50, 3), sentences(9, 4)
    one = ngram.top(texts, queries)
    assert same(ngram.top(pa.array(texts), pa.chunked_array([queries[:4], queries[4:]])), one)
    assert same(ngram.top(pa.chunked_array([texts[:20], texts[20:]]), pa.array(queries, pa.large_string())), one)


def test_the_order_of_queries_changes_no_list():
    texts, queries = sentences(100, 3), sentences(17, 4)
    there, back = ngram.top(texts, queries), ngram.top(texts, queries[::-1])
    assert same(there, (back.doc[::-1], back.score[::-1]))


def test_an_ngram_of_no_words_is_refused():
    with pytest.raises(ValueError, match="n is 0; an n-gram has at least 1 word"):
        ngram.top(["a"], ["a"], n=0)


def test_an_idf_is_rounded_not_floored():
    texts, text = 1003, "let f be a function"
    idf = math.log(1 + 0.5 / (texts + 0.5)) * 2**32  # every text holds the gram: a small idf, where float32 shows a unit of 2^-32
    assert round(idf) != math.floor(idf)
    assert ngram.top([text] * texts, [text], k=1).score[0, 0] == np.float32(round(idf) / 2**32) != np.float32(math.floor(idf) / 2**32)
