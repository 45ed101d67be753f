"""Exact inner-product search: blocks in low precision find the candidates, a float64 loop ranks them.

Key of a document: sum of x[i] * y[i] in float64, dimensions ascending, rounded to float32; then corpus row.

Certificate. Let u be 2^-24, d the dimensions, S = |x||y| >= sum of |x[i] y[i]|. In any order of summation,
with or without fused multiply-add, an fp32 product differs from the true one by at most d u/(1 - d u) S
(Higham 2002, section 3.1), and by d 2^-124 (1 + |x| + |y|) more where BLAS flushes tiny numbers to zero; the float64
loop differs by at most the same with 2^-53; rounding to float32 adds u S and 2^-149. `_bound` is above the sum E of
these. The largest products of a query are kept, somewhat more than k of them. The loop scores those within 2E of the k-th. If the
largest product that was let go, plus E, stays below the k-th key, no document was missed; else the query is searched
again, and the loop scores every document whose product plus E reaches the k-th key so far. So the list is exact either way.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from lib.retrieval import dense_kernels, hits, kernels, parallel
from lib.retrieval.hits import Heap, Hits

BLOCK = 1024  # documents a product, a multiple of 64
QUERIES = 1024  # and queries
MORE, MORE_ROUNDED, MORE_BYTES = 1.0, 2.0, 3.0  # candidates kept for each place of the list, and 16, by fp32, bf16 and int8 products
BACKENDS = ("fp32", "bf16", "int8", "faiss")
_LARGEST = 1e37  # |x||y| beyond it may leave float32


def _named(what: str, faults: dict[int, str], names: Sequence) -> str:
    told = ", ".join(f"{names[row]} ({fault})" for row, fault in list(faults.items())[:10])
    more = f" and {len(faults) - 10} more" if len(faults) > 10 else ""
    return f"{len(faults)} {what}: {told}{more}"


def _faults(values: np.ndarray) -> dict[int, str]:
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    return {int(row): "NaN" if np.isnan(values[row]).any() else "infinite" for row in bad}


def normalise(vectors, names: Sequence[str]) -> np.ndarray:
    """float32[n, d] of length 1 from n rows of any float type; `names` are the document ids.

    ValueError names the rows that are NaN, infinite, zero, or not as long as the first row.
    """
    dimensions = len(vectors[0]) if len(vectors) else 0
    faults = {row: f"{len(vector)} dimensions, not {dimensions}" for row, vector in enumerate(vectors) if len(vector) != dimensions}
    kept = [row for row in range(len(vectors)) if row not in faults]
    values = np.asarray(vectors if not faults else [vectors[row] for row in kept], np.float64).reshape(len(kept), dimensions)
    faults |= {kept[row]: fault for row, fault in _faults(values).items()}
    largest = np.abs(values).max(axis=1, initial=0)
    faults |= {kept[row]: "zero" for row in np.flatnonzero(largest == 0)}
    if faults:
        told = _named("vectors cannot be normalised", dict(sorted(faults.items())), names)
        raise ValueError(told + "; encode these texts again or leave them out")
    values = values / largest[:, None]  # so that no square overflows or vanishes
    return (values / np.sqrt((values * values).sum(axis=1))[:, None]).astype(np.float32)


def checked(vectors, what: str, rows=None, zero: bool = True) -> np.ndarray:
    """float32[n, d], contiguous, from floats of any type and layout; ValueError names the rows that are not finite, or zero where `zero` is false.

    `rows` are the numbers that the error gives them, 0, 1, ... where it is None.
    """
    return _measured(vectors, what, rows, zero)[0]


def _measured(vectors, what: str, rows, zero: bool) -> tuple[np.ndarray, np.ndarray]:
    values = np.asarray(vectors)
    if values.ndim != 2 or values.dtype.kind != "f":
        raise ValueError(f"the {what} are {values.dtype}{list(values.shape)}; give floats, one row a vector")
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(values, np.float32)
    length = lengths(values)
    if not np.isfinite(length).all() or not zero and not length.all():
        faults = _faults(values) | ({} if zero else {int(row): "zero" for row in np.flatnonzero(length == 0)})
        names = [f"row {row}" for row in (range(len(values)) if rows is None else rows)]
        raise ValueError(_named(f"{what} cannot be searched", dict(sorted(faults.items())), names) + "; check them with lib.retrieval.dense.normalise")
    return values, length


def lengths(values: np.ndarray) -> np.ndarray:
    """float64[n], no shorter than the rows are."""
    length = np.empty(len(values))
    dense_kernels.lengths(values, length)
    return length * (1 + 1e-9)


def _bound(dimensions: int, query: np.ndarray, document: float) -> np.ndarray:
    """float64[queries]: how far the fp32 product and the rounded float64 loop can lie apart."""
    gamma = sum(dimensions * u / (1 - dimensions * u) for u in (2.0**-24, 2.0**-53)) + 2.0**-24
    return 1.001 * gamma * query * document + dimensions * 2.0**-122 * (1 + query + document)


class Documents(NamedTuple):
    """Vectors ready to be searched."""

    vectors: np.ndarray  # float32[n, d], finite, contiguous
    rows: np.ndarray  # int32[n], their corpus rows
    longest: float  # no vector is longer
    search: Callable | None = None  # search(query, heaps, bound) -> the candidates by one backend, and the bound that their products keep


class Candidates(NamedTuple):
    """What a search in low precision leaves of each query, in any order."""

    found: np.ndarray  # int[queries, room], places among the vectors; the first `size` count
    coarse: np.ndarray  # float32[queries, room], their products
    size: np.ndarray  # int64[queries]
    dropped: np.ndarray  # float32[queries]: no product that was let go is larger, but those that cannot reach the heap


def documents(vectors, rows=None, what: str = "document vectors", zero: bool = True, backend: str = "fp32") -> Documents:
    """Check vectors (see `checked`) of the corpus rows `rows`, int32[n], or 0, 1, ..., and make them ready for a backend; float32 in rows is not copied."""
    values, length = _measured(vectors, what, rows, zero)
    known = Documents(values, np.arange(len(values), dtype=np.int32) if rows is None else rows, float(length.max(initial=0.0)))
    return known._replace(search=_backend(backend, known))


def kept(best: Heap, more: float) -> int:
    """How many candidates are kept of each query."""
    return int(more * best.doc.shape[1]) + 16


def _reach(best: Heap, bound: np.ndarray) -> np.ndarray:
    """float32[queries], below every product whose document may still reach the heap."""
    least = np.where(best.size == best.doc.shape[1], best.score[:, 0].astype(np.float64) - bound, -np.inf)
    return np.nextafter(least.astype(np.float32), np.float32(-np.inf))


def no_candidates(best: Heap, bound: np.ndarray, keep: int) -> tuple[Candidates, np.ndarray]:
    """Room for the largest products of each query, and the cuts that they start at."""
    queries, room = len(best.doc), 3 * keep + 64
    found, coarse = np.empty((queries, room), np.int32), np.empty((queries, room), np.float32)
    return Candidates(found, coarse, np.zeros(queries, np.int64), np.full(queries, -np.inf, np.float32)), _reach(best, bound)


def candidates(products, best: Heap, bound: np.ndarray, keep: int) -> Candidates:
    """The largest products of each query; `products` gives (first place, float32[queries, BLOCK], how many of them count) of ranges of the documents."""
    held, cut = no_candidates(best, bound, keep)
    for first, product, count in products:
        dense_kernels.collect(product, count, first, keep, held.found, held.coarse, held.size, cut, held.dropped)
    return held


def _products(query: np.ndarray, vectors: np.ndarray):
    product = np.zeros((len(query), BLOCK), np.float32)
    for at in range(0, len(vectors), BLOCK):
        some = vectors[at : at + BLOCK]
        np.matmul(query, some.T, out=product[:, : len(some)])
        yield at, product, len(some)


def _settle(best: Heap, query: np.ndarray, known: Documents, held: Candidates, bound: np.ndarray) -> None:
    """Offer the candidates with their exact scores; queries without a certificate are searched again, by the loop over every product."""
    before = Heap(*(column.copy() for column in best))
    k, score = best.doc.shape[1], np.empty(held.coarse.shape, np.float32)
    dense_kernels.narrow(k, bound, held.found, held.coarse, held.size)
    dense_kernels.exact(query, known.vectors, _apart(query, known), held.found, held.size, score)
    kernels.offer_all(held.found, score, held.size, known.rows, 0, *best)
    # strictly below: what was let go can neither reach nor tie the k-th
    sure = (best.size == k) & (held.dropped.astype(np.float64) + bound < best.score[:, 0]) | np.isneginf(held.dropped)
    if not sure.all():
        again = Heap(*(column[~sure] for column in before))
        _every(again, np.ascontiguousarray(query[~sure]), known)
        for now, column in zip(best, again, strict=True):
            now[~sure] = column


def _apart(query: np.ndarray, known: Documents) -> np.ndarray:
    """float64[queries]: twice how far a float64 sum lies from the true product, and more where the sums are tiny."""
    u = query.shape[1] * 2.0**-53
    return 2.002 * u / (1 - u) * lengths(query) * known.longest + 2.0**-1000


def _every(best: Heap, query: np.ndarray, known: Documents) -> None:
    """Score in float64 what the fp32 product does not rule out, document by document."""
    bound = _bound(query.shape[1], lengths(query), known.longest)
    for first, product, count in _products(query, known.vectors):
        some = slice(first, first + count)
        kernels.rescore(product[:, :count], bound, query, known.vectors[some], known.rows[some], *best)


def _fp32(known: Documents) -> Callable:
    return lambda query, best, bound: (candidates(_products(query, known.vectors), best, bound, kept(best, MORE)), bound)


def _faiss(known: Documents) -> Callable:
    """The brute force of IndexFlatIP, over the vectors where they lie; its fp32 sums are within the same bound."""
    try:
        import faiss
    except ImportError:
        raise ValueError("the dense backend faiss is not installed; pip install faiss-cpu, or take fp32") from None

    def search(query: np.ndarray, best: Heap, bound: np.ndarray) -> tuple[Candidates, np.ndarray]:
        keep = min(kept(best, MORE), len(known.vectors))
        faiss.omp_set_num_threads(1)  # of this thread
        coarse, found = faiss.knn(query, known.vectors, keep, metric=faiss.METRIC_INNER_PRODUCT)
        dropped = coarse[:, -1].copy() if keep < len(known.vectors) else np.full(len(query), -np.inf, np.float32)
        return Candidates(found.astype(np.int32), coarse, np.full(len(query), keep), dropped), bound

    return search


def _backend(name: str, known: Documents) -> Callable:
    """search(query, heaps, bound) -> the candidates, and the bound that their products keep."""
    if name not in BACKENDS:
        raise ValueError(f"there is no dense backend {name!r}; take {', '.join(BACKENDS)}")
    if name == "faiss":
        return _faiss(known)
    if name == "bf16" and known.longest <= _LARGEST:
        from lib.retrieval import dense_bf16  # torch

        return dense_bf16.search(known)
    if name == "int8" and known.longest <= _LARGEST:
        from lib.retrieval import dense_int8  # torch

        if dense_int8.fast() and known.vectors.shape[1] < dense_int8.LONGEST:
            return dense_int8.search(known)
    return _fp32(known)


def add(best: Heap, query: np.ndarray, known: Documents, threads: int = 1) -> None:
    """Put documents into the heaps; `query` is finite float32 [q, d]. The backends differ in nothing but time."""
    if known.vectors.shape[1] != query.shape[1] and len(known.vectors):
        raise ValueError(f"the documents have {known.vectors.shape[1]} dimensions and the queries {query.shape[1]}; encode both with one model")
    length = lengths(query)
    if length.max(initial=0.0) * known.longest > _LARGEST:
        raise ValueError(f"a product of up to {length.max() * known.longest:.3g} does not fit float32; normalise the vectors")
    # bf16 has the range of float32, but rounds what is near its end to infinity
    search = known.search if length.max(initial=0.0) <= _LARGEST else _fp32(known)
    if not len(known.vectors):
        return
    bound = _bound(query.shape[1], length, known.longest)

    def one_range(first: int, last: int) -> None:
        for at in range(first, last, QUERIES):
            some = slice(at, min(at + QUERIES, last))
            heap = Heap(*(column[some] for column in best))
            held, wide = search(query[some], heap, bound[some])
            _settle(heap, query[some], known, held, wide)

    with threadpool_limits(1, "blas"):
        parallel.in_ranges(one_range, len(query), threads)


def top(vectors, query_vectors, k: int = 100, removed=None, threads: int = 1, backend: str = "fp32") -> Hits:
    """The best k documents of each query by inner product; nothing is normalised.

    float16, float32 or float64 in any memory layout; the vectors are taken as float32, as they are stored.
    Removed rows (bool[documents]) are left out before the search. ValueError names rows that are not finite.
    `backend` is fp32, bf16 (a GPU where torch sees one), int8 or faiss, where that is installed: the same bytes from all of them.
    """
    values, query = checked(vectors, "document vectors"), checked(query_vectors, "query vectors")
    live = np.flatnonzero(~hits.removed_mask(removed, len(values))).astype(np.int32)
    best = hits.heap(len(query), k)
    add(best, query, documents(values if len(live) == len(values) else values[live], live, backend=backend), threads)
    return hits.ranked(best)
