"""Dense search beside a float64 loop over all documents, and the vectors it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.retrieval import dense, dense_bf16, dense_int8, dense_kernels, hits
from route_lists import listed

CASE = json.loads((Path(__file__).parent / "cases/07-dense-bad-vectors-and-bit-mask.json").read_text())
BACKENDS = [pytest.param(name, marks=pytest.mark.peers) if name == "faiss" else name for name in dense.BACKENDS]


def by_loop(vectors: np.ndarray, query: np.ndarray, removed: np.ndarray, k: int) -> list[tuple[int, float]]:
    """(document, float32 score) in order, in Python floats."""
    found = []
    for row, vector in enumerate(vectors.astype(np.float32).tolist()):
        score = 0.0
        for x, y in zip(query.astype(np.float32).tolist(), vector, strict=True):
            score += x * y
        if not removed[row]:
            found.append((row, float(np.float32(score))))
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:k]


def layouts(array: np.ndarray) -> dict[str, np.ndarray]:
    wide = np.full((2 * len(array), array.shape[1]), np.nan, array.dtype)
    wide[::2] = array
    return {"C": np.ascontiguousarray(array), "F": np.asfortranarray(array), "every second row of a larger array": wide[::2]}


@pytest.mark.parametrize("layout", CASE["input"]["layouts"])
@pytest.mark.parametrize("dtype", CASE["input"]["dtypes"])
def test_case_07_every_dtype_and_layout_gives_the_same_ids_after_the_mask(dtype, layout):
    vectors = layouts((np.arange(1, 11)[:, None] * np.ones(2)).astype(dtype))[layout]
    removed = np.isin(np.arange(10), CASE["input"]["mask_rows"])
    found = dense.top(vectors, layouts(np.ones((3, 2), dtype))[layout], CASE["input"]["k"], removed)
    for query in range(3):
        assert [row for row, _ in listed(found, query)] == CASE["right_answer"]["ids_after_mask"]


def test_case_07_bad_rows_are_named_all_at_once_and_never_become_nan():
    bad = {name: [float(x) for x in row] for name, row in CASE["input"]["bad_rows"].items()}
    vectors = [[1.0, 2.0], *bad.values(), [3.0, 4.0]]
    names = ["good", *bad, "last"]
    with pytest.raises(ValueError, match=r"3 vectors cannot be normalised: nan_row \(NaN\), zero_row \(zero\), inf_row \(infinite\); ") as told:
        dense.normalise(vectors, names)
    assert "good" not in str(told.value)
    with pytest.raises(ValueError, match=r"2 document vectors cannot be searched: row 1 \(NaN\), row 3 \(infinite\)"):
        dense.top(np.array(vectors), np.ones((1, 2)))
    np.testing.assert_allclose(dense.normalise([vectors[0], vectors[-1]], names), [[5**-0.5, 2 * 5**-0.5], [0.6, 0.8]], rtol=1e-7)


def test_normalise_names_rows_of_another_length_and_at_most_ten():
    with pytest.raises(ValueError, match=r"1 vectors cannot be normalised: d1 \(1 dimensions, not 2\)"):
        dense.normalise([[1.0, 0.0], [1.0], [0.0, 1.0]], ["d0", "d1", "d2"])
    with pytest.raises(ValueError, match=r"d1 \(1 dimensions, not 2\), d3 \(zero\);"):
        dense.normalise([[1.0, 0.0], [1.0], [0.0, 1.0], [0.0, 0.0]], ["d0", "d1", "d2", "d3"])
    with pytest.raises(ValueError, match=r"12 vectors cannot be normalised: d0 \(zero\), .*d9 \(zero\) and 2 more"):
        dense.normalise(np.zeros((12, 3)), [f"d{i}" for i in range(12)])


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1, 1e30, 1e300])
def test_normalise_survives_very_short_and_very_long_vectors(scale):
    unit = dense.normalise(np.array([[3.0, 4.0, 0.0]]) * scale, ["d"])
    np.testing.assert_allclose(unit, [[0.6, 0.8, 0.0]], rtol=1e-6)
    assert unit.dtype == np.float32


number = st.floats(-4, 4, width=16)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_equals_the_loop_in_set_and_order(data):
    n, q, d, k = (data.draw(st.integers(low, high)) for low, high in ((0, 12), (0, 3), (1, 5), (1, 14)))
    vectors = np.array(data.draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=n, max_size=n)), np.float64).reshape(n, d)
    queries = np.array(data.draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=q, max_size=q)), np.float64).reshape(q, d)
    removed = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    found = dense.top(vectors, queries, k, removed)
    assert found.doc.shape == (q, k)
    for i in range(q):
        assert listed(found, i) == by_loop(vectors, queries[i], removed, k)
    np.testing.assert_array_equal(dense.top(vectors, queries, k + 1, removed).doc[:, :k], found.doc)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 3))
@example(4, 0)
def test_equal_documents_fall_to_the_lower_row_and_removed_ones_never_appear(k, seed):
    rng = np.random.default_rng(seed)
    vectors = np.repeat(dense.normalise(rng.normal(size=(4, 37)), range(4)), 6, axis=0)[rng.permutation(24)]
    removed = rng.random(24) < 0.3
    query = dense.normalise(rng.normal(size=(3, 37)), range(3))
    found = dense.top(vectors, query, k, removed)
    for i in range(3):
        assert listed(found, i) == by_loop(vectors, query[i], removed, k)
    assert listed(dense.top(vectors, query, k, np.ones(24, bool))) == []


def test_neighbours_closer_than_fp32_can_tell_keep_the_order_of_the_loop(monkeypatch):
    """Vectors that differ in the last bits: the fp32 product alone puts many of them in another order."""
    rng = np.random.default_rng(0)
    base = dense.normalise(rng.normal(size=(1, 300)), ["base"])
    vectors = np.nextafter(np.repeat(base, 900, axis=0), rng.choice([-1, 1], (900, 300)).astype(np.float32))
    query = dense.normalise(base + 0.1 * rng.normal(size=(4, 300)), range(4))
    monkeypatch.setattr(dense, "BLOCK", 128)
    monkeypatch.setattr(dense, "QUERIES", 3)
    found = dense.top(vectors, query, k=50)
    removed = np.zeros(900, bool)
    by_product = np.lexsort((np.arange(900), -(query @ vectors.T)[0]))[:50]
    assert by_product.tolist() != found.doc[0].tolist()
    for i in range(4):
        assert listed(found, i) == by_loop(vectors, query[i], removed, 50)


@pytest.mark.parametrize("scale", [1e-25, 1e-18, 1, 1e15])
def test_the_bound_holds_for_tiny_and_large_vectors(scale):
    rng = np.random.default_rng(1)
    vectors, query = rng.normal(size=(2, 200, 64)).astype(np.float32)
    vectors, query = vectors * np.float32(scale), query * np.float32(scale)
    far = np.abs((query @ vectors.T).astype(np.float64) - (query.astype(np.float64) @ vectors.T.astype(np.float64)).astype(np.float32))
    longest = np.linalg.norm(vectors.astype(np.float64), axis=1).max()
    assert (far <= dense._bound(64, np.linalg.norm(query.astype(np.float64), axis=1), longest)[:, None]).all()
    for i, expected in enumerate(by_loop(vectors, query[i], np.zeros(200, bool), 20) for i in range(5)):
        assert listed(dense.top(vectors, query[:5], 20), i) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sum_that_lies_on_the_border_of_two_floats_is_that_of_the_loop(backend):
    """1 + 2^-24 lies halfway between two float32: in order the loop loses each 2^-54 after it, a sum by lanes would not; one 2^-52 more lies above."""
    borders = np.full((4, 64), 2.0**-54, np.float32)
    borders[:, :2], borders[1, 2:], borders[2, 1], borders[3, 2:] = [1, 2.0**-24], 0, 0, [2.0**-52, *[0] * 61]
    found = dense.top(borders, np.ones((1, 64), np.float32), 4, backend=backend)
    assert listed(found) == by_loop(borders, np.ones(64), np.zeros(4, bool), 4) == [(3, 1 + 2.0**-23), (0, 1.0), (1, 1.0), (2, 1.0)]


def test_no_vector_is_longer_than_the_longest():
    assert dense.documents(np.array([[3.0, 4.0], *[[0.0, 0.1]] * 9])).longest >= 5


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_score_of_zero_is_the_zero_of_the_loop(backend):
    for documents, query in (([[0.0, 1.0], [0.0, -1.0]], [1.0, 0.0]), ([[1e-30, 0.0], [-1e-30, 0.0]], [1e-30, 1.0])):
        found = dense.top(np.array(documents), np.array([query]), 2, backend=backend)
        expected = [score for _, score in by_loop(np.array(documents), np.array(query), np.zeros(2, bool), 2)]
        assert found.score.tobytes() == np.array(expected, np.float32).tobytes()


def test_a_candidate_within_twice_the_bound_of_the_kth_is_kept():
    found, coarse, size = np.arange(4, dtype=np.int32)[None], np.array([[7.75, 8.0, 10.0, 9.0]], np.float32), np.array([4])
    dense_kernels.narrow(1, np.array([1.0]), found, coarse, size)
    assert sorted(found[0, : size[0]].tolist()) == [1, 2, 3]


def test_threads_and_document_parts_change_nothing():
    rng = np.random.default_rng(2)
    vectors, query = dense.normalise(rng.normal(size=(500, 24)), range(500)), dense.normalise(rng.normal(size=(17, 24)), range(17))
    one, three = dense.top(vectors, query, 30), dense.top(vectors, query, 30, threads=3)
    assert one.doc.tobytes() == three.doc.tobytes() and one.score.tobytes() == three.score.tobytes()
    first, second = dense.top(vectors[:201], query, 30), dense.top(vectors[201:], query, 30)
    merged = hits.merge(first, hits.Hits(second.doc + np.int32(201), second.score), 30)
    assert one.doc.tobytes() == merged.doc.tobytes() and one.score.tobytes() == merged.score.tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dimensions", [3, 40, 384])
def test_every_backend_gives_the_lists_of_the_loop(backend, dimensions, monkeypatch):
    rng = np.random.default_rng(dimensions)
    vectors, query = dense.normalise(rng.normal(size=(700, dimensions)), range(700)), dense.normalise(rng.normal(size=(9, dimensions)), range(9))
    vectors[100:150] = vectors[:50]
    removed = rng.random(700) < 0.15
    monkeypatch.setattr(dense, "BLOCK", 64)
    monkeypatch.setattr(dense, "QUERIES", 4)
    for k in (1, 10, 100):
        found = dense.top(vectors, query, k, removed, threads=2, backend=backend)
        for i in range(9):
            assert listed(found, i) == by_loop(vectors, query[i], removed, k)


@pytest.mark.parametrize("backend", BACKENDS)
def test_heaps_are_carried_over_document_parts_in_any_order(backend):
    rng = np.random.default_rng(7)
    vectors, query = dense.normalise(rng.normal(size=(900, 48)), range(900)), dense.normalise(rng.normal(size=(6, 48)), range(6))
    best = hits.heap(6, 40)
    for part in rng.permutation(9):
        rows = np.arange(100 * part, 100 * part + 100, dtype=np.int32)
        dense.add(best, query, dense.documents(vectors[rows], rows, backend=backend))
    whole, carried = dense.top(vectors, query, 40), hits.ranked(best)
    assert carried.doc.tobytes() == whole.doc.tobytes() and carried.score.tobytes() == whole.score.tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_query_whose_certificate_fails_is_searched_again_document_by_document(backend, monkeypatch):
    """More documents than are kept lie within the bound of the k-th: nearly equal ones, and 60 that are equal."""
    rng = np.random.default_rng(8)
    near = dense.normalise(np.ones((1, 64)) + rng.normal(size=(1, 64)), ["near"])
    vectors = np.nextafter(np.repeat(near, 400, axis=0), rng.choice([-1, 1], (400, 64)).astype(np.float32))
    vectors[50:110] = vectors[50]
    far = dense.normalise(rng.normal(size=(300, 64)), range(300))
    query = np.concatenate([near, dense.normalise(rng.normal(size=(3, 64)), range(3))])
    again = []
    every = dense._every
    monkeypatch.setattr(dense, "_every", lambda best, query, known: (again.append(len(query)), every(best, query, known)))
    found = dense.top(np.concatenate([vectors, far]), query, 20, backend=backend)
    assert again and 1 <= again[0] <= 4
    for i in range(4):
        assert listed(found, i) == by_loop(np.concatenate([vectors, far]), query[i], np.zeros(700, bool), 20)


@pytest.mark.parametrize("scale", [1e-20, 1, 1e15])
def test_the_bound_of_rounded_products_holds_on_the_processor_and_by_blocks_as_on_a_gpu(scale, monkeypatch):
    rng = np.random.default_rng(9)
    vectors, query = (rng.normal(size=(2, 300, 96)) * scale).astype(np.float32)
    known, best = dense.documents(vectors), hits.heap(20, 10)
    base = dense._bound(96, dense.lengths(query[:20]), known.longest)
    true = query[:20].astype(np.float64) @ vectors.T.astype(np.float64)
    monkeypatch.setattr(dense_bf16, "GPU_BLOCK", 70)
    given, rounded = dense_bf16.rounded(query[:20], "cpu")[0], dense_bf16.rounded(vectors, "cpu")[0]
    held, wide = dense_bf16.search(known, "cpu")(query[:20], best, base)
    for found in (held, dense_bf16._largest(given, rounded, 36)):
        for i in range(20):
            places, coarse = found.found[i, : found.size[i]], found.coarse[i, : found.size[i]]
            assert len(set(places.tolist())) == len(places) >= 36 and (np.abs(coarse - true[i, places]) <= wide[i]).all()
            left = np.setdiff1d(np.arange(300), places)
            assert (true[i, left] <= found.dropped[i] + wide[i]).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_rounding_of_whole_numbers_hides_is_searched_again(backend):
    """Vectors that bf16 holds exactly: only the rounding of the products, to even numbers above 256, says how far they may be off."""
    rng = np.random.default_rng(5)
    vectors, query = rng.integers(2, 7, (2000, 24)).astype(np.float32), np.full((1, 24), 5, np.float32)
    assert listed(dense.top(vectors, query, 10, backend=backend)) == by_loop(vectors, query[0], np.zeros(2000, bool), 10)
    if backend == "bf16":
        known = dense.documents(vectors)
        _, wide = dense_bf16.search(known, "cpu")(query, hits.heap(1, 10), np.zeros(1))
        assert wide[0] >= 2.0**-9 * dense.lengths(query)[0] * known.longest


def test_vectors_near_the_end_of_float32_are_searched_in_fp32():
    vectors = np.array([[3.3e38, 0], [0, 3.39e38], [1e38, 1e38]])
    for backend in ("bf16", "int8"):
        assert dense.top(vectors, np.array([[1e-30, 0]]), 3, backend=backend).doc.tolist() == [[0, 2, 1]]


@pytest.mark.skipif(not dense_int8.fast(), reason="the processor has no such instructions")
@pytest.mark.parametrize("scale", [1e-37, 1e-20, 1, 1e15])
def test_the_bound_of_whole_numbers_holds(scale):
    rng = np.random.default_rng(10)
    vectors, query = (rng.normal(size=(2, 300, 96)) * scale).astype(np.float32)
    vectors[5], query[5], vectors[6, 1:] = 0, 0, 0
    known, best = dense.documents(vectors), hits.heap(300, 10)
    true = query.astype(np.float64) @ vectors.T.astype(np.float64)
    held, wide = dense_int8.search(known)(query, best, dense._bound(96, dense.lengths(query), known.longest))
    for i in range(300):
        places, coarse = held.found[i, : held.size[i]], held.coarse[i, : held.size[i]]
        assert len(set(places.tolist())) == len(places) >= 46 and (np.abs(coarse - true[i, places]) <= wide[i]).all()
        assert (true[i, np.setdiff1d(np.arange(300), places)] <= held.dropped[i] + wide[i]).all()


def test_dense_search_on_a_processor_without_byte_products_takes_fp32(monkeypatch):
    monkeypatch.setattr(dense_int8, "fast", lambda: False)
    monkeypatch.setattr(dense_int8, "search", None)
    assert dense.top(np.eye(3), np.eye(3)[:1], 1, backend="int8").doc.tolist() == [[0]]


def test_a_backend_that_nobody_wrote_is_refused():
    with pytest.raises(ValueError, match="there is no dense backend 'int4'; take fp32, bf16, int8, faiss"):
        dense.top(np.ones((1, 2)), np.ones((1, 2)), backend="int4")


def test_vectors_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="the documents have 3 dimensions and the queries 2"):
        dense.top(np.ones((4, 3)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="does not fit float32; normalise"):
        dense.top(np.full((1, 2), 1e25), np.full((1, 2), 1e25))
    with pytest.raises(ValueError, match=r"the query vectors are int64\[1, 2\]; give floats"):
        dense.top(np.ones((1, 2)), np.ones((1, 2), int))
    with pytest.raises(ValueError, match=r"2 live vectors cannot be searched: row 8 \(zero\), row 9 \(NaN\)"):
        dense.documents(np.array([[1.0, 2.0], [0, 0], [np.nan, 0]]), np.array([7, 8, 9], np.int32), "live vectors", zero=False)
    with pytest.raises(ValueError, match=r"row 0 \(infinite\)"):
        dense.top(np.full((1, 2), 1e300), np.ones((1, 2)))
