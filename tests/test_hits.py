"""Heaps become lists beside a full sort."""

import numpy as np
import pytest

from lib.retrieval import bm25, dense, fusion, hits, ngram


def by_sorting(best: hits.Heap) -> hits.Hits:
    order = np.lexsort((best.doc, -best.score), axis=-1)
    doc, score = np.take_along_axis(best.doc, order, 1), np.take_along_axis(best.score, order, 1)
    return hits.Hits(doc, np.where(doc < 0, np.float32(0), score))


@pytest.mark.parametrize("k", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("threads", [1, 3])
def test_lists_are_the_entries_by_score_then_row_in_whatever_order_they_stand(k, threads):
    rng = np.random.default_rng(k)
    best = hits.heap(200, k)
    for q in range(200):
        n = rng.integers(0, k + 1)
        best.doc[q, :n], best.score[q, :n], best.size[q] = rng.permutation(1000)[:n], rng.integers(0, 5, n) / 4, n
    expected, found = by_sorting(best), hits.ranked(best, threads)
    assert found.doc.tobytes() == expected.doc.tobytes() and found.score.tobytes() == expected.score.tobytes()
    assert found.doc.dtype == np.int32 and found.score.dtype == np.float32 and (found.doc[:, -1] >= 0).any()
    with pytest.raises(ValueError, match="read-only"):
        best.doc[0, 0] = 7


@pytest.mark.parametrize("threads", [0, -1])
def test_less_than_one_thread_is_refused(threads):
    for route in (bm25, ngram):
        with pytest.raises(ValueError, match=f"threads is {threads}; give at least 1"):
            route.top(["a b"], ["a"], 1, threads=threads)
    with pytest.raises(ValueError, match=f"threads is {threads}; give at least 1"):
        dense.top(np.ones((1, 2)), np.ones((1, 2)), 1, threads=threads)
    with pytest.raises(ValueError, match=f"threads is {threads}; give at least 1"):
        fusion.best_rank({"dense": hits.none(1, 1)}, threads=threads)


def test_no_queries_have_no_lists():
    assert hits.ranked(hits.heap(0, 5)).doc.shape == (0, 5)
