"""Exact inner-product search: fp32 blocks find the candidates, a float64 loop ranks them.

Key of a document: sum of x[i] * y[i] in float64, dimensions ascending, rounded to float32; then corpus row.

Certificate. Let u be 2^-24, d the dimensions, S = |x||y| >= sum of |x[i] y[i]|. In any order of summation,
with or without fused multiply-add, an fp32 product differs from the true one by at most d u/(1 - d u) S
(Higham 2002, section 3.1), and by d 2^-124 (1 + |x| + |y|) more where BLAS flushes tiny numbers to zero; the float64
loop differs by at most the same with 2^-53; rounding to float32 adds u S and 2^-149. `_bound` is above the sum E of
these. A document whose fp32 product plus E is below the key of the k-th best so far cannot reach or tie it, and is
dropped; every other one is scored by the loop. The k-th key only rises, so the final list is exact.
"""

from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from lib.retrieval import hits, kernels
from lib.retrieval.hits import Heap, Hits

BLOCK = 4096  # documents a product
QUERIES = 1024  # and queries
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


def checked(vectors, what: str) -> np.ndarray:
    """float32[n, d], contiguous, from floats of any type and layout; ValueError names the rows that are not finite."""
    values = np.asarray(vectors)
    if values.ndim != 2 or values.dtype.kind != "f":
        raise ValueError(f"the {what} are {values.dtype}{list(values.shape)}; give floats, one row a vector")
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(values, np.float32)
    faults = _faults(values)
    if faults:
        rows = [f"row {row}" for row in range(len(values))]
        raise ValueError(_named(f"{what} cannot be searched", faults, rows) + "; check them with lib.retrieval.dense.normalise")
    return values


def _lengths(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64)) * (1 + 1e-9)


def _bound(dimensions: int, query: np.ndarray, document: float) -> np.ndarray:
    """float64[queries]: how far the fp32 product and the rounded float64 loop can lie apart."""
    gamma = sum(dimensions * u / (1 - dimensions * u) for u in (2.0**-24, 2.0**-53)) + 2.0**-24
    return 1.001 * gamma * query * document + dimensions * 2.0**-122 * (1 + query + document)


def add(best: Heap, query: np.ndarray, vectors: np.ndarray, rows: np.ndarray, threads: int = 1) -> None:
    """Put documents into the heaps: finite float32 `query` [q, d] and `vectors` [n, d], corpus rows int32[n]."""
    if vectors.shape[1] != query.shape[1]:
        raise ValueError(f"the documents have {vectors.shape[1]} dimensions and the queries {query.shape[1]}; encode both with one model")
    length, longest = _lengths(query), _lengths(vectors).max(initial=0.0)
    if length.max(initial=0.0) * longest > _LARGEST:
        raise ValueError(f"a product of up to {length.max() * longest:.3g} does not fit float32; normalise the vectors")
    bound = _bound(query.shape[1], length, longest)

    def one_range(first: int, last: int) -> None:
        for at in range(0, len(rows), BLOCK):
            block = vectors[at : at + BLOCK]
            for q in range(first, last, QUERIES):
                some = slice(q, min(q + QUERIES, last))
                product = query[some] @ block.T
                kernels.rescore(
                    product, bound[some], query[some], block, rows[at : at + BLOCK], best.doc[some], best.score[some], best.size[some]
                )

    with threadpool_limits(1, "blas"):
        hits.in_threads(one_range, len(query), threads)


def top(vectors, query_vectors, k: int = 100, removed=None, threads: int = 1) -> Hits:
    """The best k documents of each query by inner product; nothing is normalised.

    float16, float32 or float64 in any memory layout; the vectors are taken as float32, as they are stored.
    Removed rows (bool[documents]) are left out before the search. ValueError names rows that are not finite.
    """
    values, query = checked(vectors, "document vectors"), checked(query_vectors, "query vectors")
    live = np.flatnonzero(~hits.removed_mask(removed, len(values))).astype(np.int32)
    best = hits.heap(len(query), k)
    add(best, query, values if len(live) == len(values) else values[live], live, threads)
    return hits.ranked(best)
