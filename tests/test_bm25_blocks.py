"""The block-major index beside the plain reference, byte by byte: several blocks, long lists, ties, cuts, threads, files."""

import bm25_reference
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.retrieval import bm25, block_kernels, blocks, hits


def zipf(count: int, longest: int, seed: int, words: int = 400) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{n}" for n in rng.zipf(1.3, rng.integers(0, longest)) % words) for _ in range(count)]


def same(found, expected) -> None:
    np.testing.assert_array_equal(found.doc, expected.doc)
    assert found.doc.tobytes() == expected.doc.tobytes() and found.score.tobytes() == expected.score.tobytes()


def in_parts(texts, queries, k, removed, edges, order=None, threads=1):
    """Indexed part by part, searched part by part in any order with the heaps carried."""
    known = bm25.vocabulary(queries)
    cuts = list(zip([0, *edges], [*edges, len(texts)], strict=True))
    made = [bm25.index(texts[a:b], known, removed[a:b]) for a, b in cuts]
    total = made[0][1]
    for _, found in made[1:]:
        total = bm25.added(total, found)
    asked, best = bm25.ask(queries, known, total), hits.heap(len(queries), k)
    for i in order or range(len(cuts)):
        bm25.search(best, bm25.ready(made[i][0], total, asked), asked, cuts[i][0], threads)
    return hits.ranked(best)


@pytest.fixture(scope="module")
def large():
    texts, queries = zipf(11_000, 40, 1), [*zipf(30, 60, 2), "", "none of these"]
    removed = np.random.default_rng(3).random(len(texts)) < 0.15
    expected = bm25_reference.top(texts, queries, 101, removed)
    assert (expected.doc[:30, 100] >= 0).sum() > 20  # the lists are full
    return texts, queries, removed, expected


def test_lists_of_several_blocks_are_those_of_the_reference_and_a_shorter_one_is_their_beginning(large):
    texts, queries, removed, expected = large
    for k in (1, 2, 99, 100, 101):
        same(bm25.top(texts, queries, k, removed), hits.Hits(expected.doc[:, :k].copy(), expected.score[:, :k].copy()))
    assert not removed[expected.doc[expected.doc >= 0]].any()


def test_the_index_of_the_test_has_long_and_short_lists_and_the_filter_leaves_most_documents_out(large):
    texts, queries, removed, _ = large
    known = bm25.vocabulary(queries)
    part, statistics = bm25.indexed(texts, known, removed)
    asked = bm25.ask(queries, known, statistics)
    made = bm25.ready(part, statistics, asked)
    assert len(part.base) - 1 == 3 and len(part.row) == (~removed).sum() and part.base[-1] == len(part.row)
    assert (made.entry >= 0).any() and (made.entry < -1).any() and (np.diff(made.rows)[:2] > 3).all()
    assert (np.diff(part.base)[:-1] == block_kernels.BLOCK).all()


@pytest.mark.parametrize("edges", [[5000], [1, 2, 4097, 10_999], [0, 0, 3000, 3000]])
def test_parts_their_order_and_threads_change_no_byte(large, edges):
    texts, queries, removed, expected = large
    whole = hits.Hits(expected.doc[:, :100].copy(), expected.score[:, :100].copy())
    same(in_parts(texts, queries, 100, removed, edges), whole)
    same(in_parts(texts, queries, 100, removed, edges, list(range(len(edges), -1, -1)), threads=3), whole)


def test_the_order_of_queries_changes_no_byte(large):
    texts, queries, removed, expected = large
    order = np.random.default_rng(5).permutation(len(queries))
    found = bm25.top(texts, [queries[i] for i in order], 101, removed, threads=2)
    same(found, hits.Hits(expected.doc[order], expected.score[order]))


def test_thousands_of_equal_documents_fall_to_the_lower_rows():
    texts = ["x y z", "x x y"] * 5000
    removed = np.arange(10_000) % 7 == 0
    queries = ["x", "y x", "z z q", "x y z q"]
    same(bm25.top(texts, queries, 5, removed), bm25_reference.top(texts, queries, 5, removed))
    same(in_parts(texts, queries, 5, removed, [4000, 9000], [2, 0, 1]), bm25_reference.top(texts, queries, 5, removed))


def test_a_word_may_stand_in_a_text_hundreds_of_times():
    rng = np.random.default_rng(0)
    texts = [" ".join(["x"] * int(n) + ["y"] * int(m) + [f"z{n % 7}"] * 3) for n, m in zip(rng.integers(0, 700, 300), rng.integers(250, 260, 300), strict=True)]
    texts[7] = "rare " * 70_000
    queries = ["x", "y x", "z1 z2 y", "rare x", "x " * 300]
    same(bm25.top(texts, queries, 20), bm25_reference.top(texts, queries, 20))
    same(bm25.top(texts * 4, queries, 20), bm25_reference.top(texts * 4, queries, 20))  # x is in more than a fifth of 1,200, and of 4,096 in more than none


def test_a_long_list_holds_hundreds_too():
    rng = np.random.default_rng(1)
    texts = [" ".join(["x"] * int(n) + ["y"]) for n in rng.choice([1, 2, 254, 255, 256, 300], 2000)]
    known = bm25.vocabulary(["x y"])
    part, statistics = bm25.indexed(texts, known, np.zeros(2000, bool))
    asked = bm25.ask(["x y"], known, statistics)
    made = bm25.ready(part, statistics, asked)
    assert made.rows[-1] == 2 and len(part.many_tf) > 800 and (made.dense_tf == block_kernels.MANY).any()
    same(bm25.top(texts, ["x y", "x"], 50), bm25_reference.top(texts, ["x y", "x"], 50))


def test_a_query_of_thousands_of_words_is_exact():
    texts = zipf(500, 60, 4, 5000)
    queries = [" ".join(texts), " ".join(texts[:50])]
    same(bm25.top(texts, queries), bm25_reference.top(texts, queries))


def test_a_query_of_more_words_than_the_margin_knows_is_exact(large, monkeypatch):
    texts, queries, removed, expected = large
    monkeypatch.setattr(blocks, "_MOST", 10)
    same(bm25.top(texts, queries, 101, removed), expected)
    same(in_parts(texts, queries, 101, removed, [5000]), expected)


@pytest.mark.parametrize("count", [1000, 4096, 9000])  # lists of up to 1,024 documents a block are short
def test_documents_that_only_the_order_of_float32_sums_tells_apart_fall_to_the_lower_rows(count):
    """Each document holds all words, some of them twice: their float64 keys are equal or nearly so, their float32 sums differ by some units."""
    rng, words = np.random.default_rng(7), [f"w{i}" for i in range(40)]
    texts = [" ".join([*words, *rng.choice(words, 13, replace=False)]) for _ in range(count)] + ["other words"] * 700
    queries = [" ".join(words), " ".join(words[:17]), " ".join(rng.choice(words, 90))]
    for k in (1, 3, 20, 100):
        same(bm25.top(texts, queries, k), bm25_reference.top(texts, queries, k))


few = st.lists(st.sampled_from(["a", "b", "c", "dd", "e"]), max_size=6).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(few, st.booleans()), min_size=1, max_size=12), st.lists(few, max_size=3), st.integers(1, 6), st.integers(1, 900), st.data())
@example([("a", False)], ["a"], 1, 900, None)
def test_repeated_corpora_cut_anywhere_equal_the_reference(documents, queries, k, times, data):
    texts, removed = [text for text, _ in documents] * times, np.array([gone for _, gone in documents] * times)
    edges = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=3))) if data else []
    same(in_parts(texts, queries, k, removed, edges), bm25_reference.top(texts, queries, k, removed))


def test_the_upper_bounds_and_lower_bounds_of_the_filter_hold_the_float64_score():
    texts, queries = zipf(3000, 50, 6), zipf(20, 40, 7)
    known = bm25.vocabulary(queries)
    part, statistics = bm25.indexed(texts, known, np.zeros(len(texts), bool))
    asked = bm25.ask(queries, known, statistics)
    made = bm25.ready(part, statistics, asked)
    level = made.bound.reshape(64, -1, 64).transpose(1, 0, 2).reshape(-1, blocks.BLOCK)[:, :3000].astype(float)
    tf = made.dense_tf.reshape(blocks.BLOCK, -1)[:3000].T
    exact = tf / (tf + made.norm)
    assert (level / 255 >= exact).all() and (level / 255 < exact + 1 / 255 + 1e-12).all() and (level == 0).any()
    np.testing.assert_array_equal(made.largest, made.bound.reshape(64, -1, 64).max(axis=2).T)
