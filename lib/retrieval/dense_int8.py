"""The products of the dense route in 8-bit integers, on a processor that multiplies these several times as fast as float32 (VNNI, AMX).

A row x is taken as x' = step * whole numbers up to 127 with a rest r of known length, and so is y with s: x.y differs from x'.y'
by at most |r||y| + |x'||s|. The whole numbers are summed exactly in 32 bits; what turns the sum into float32 rounds three times.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from lib.retrieval import dense, dense_kernels
from lib.retrieval.dense import Candidates, Documents
from lib.retrieval.hits import Heap

LONGEST = 2**16  # dimensions, so that a sum of products of 127 fits 31 bits


class Rounded(NamedTuple):
    """Rows as whole numbers times a step each."""

    whole: torch.Tensor  # int8[n, d]
    step: np.ndarray  # float32[n]
    rest: np.ndarray  # float64[n], no shorter than what rounding left of the rows


def fast() -> bool:
    """Whether the processor has the instructions; older ones lose bits of such sums, and slowly."""
    return torch.cpu._is_vnni_supported()


def rounded(values: np.ndarray) -> Rounded:
    """Rows of float32 as 8-bit numbers."""
    made = Rounded(torch.empty(values.shape, dtype=torch.int8), np.empty(len(values), np.float32), np.empty(len(values)))
    for at in range(0, len(values), dense.BLOCK):
        some = slice(at, at + dense.BLOCK)
        largest = np.maximum(values[some].max(axis=1, initial=0), -values[some].min(axis=1, initial=0))  # numpy compares many at once
        dense_kernels.in_bytes(values[some], largest, made.whole[some].numpy(), made.step[some], made.rest[some])
    return made._replace(rest=made.rest * (1 + 1e-9))


def search(known: Documents) -> Callable:
    """The `search` of `dense.Documents`."""
    vectors = rounded(known.vectors)
    rest = float(vectors.rest.max(initial=0.0))

    def found(query: np.ndarray, best: Heap, bound: np.ndarray) -> tuple[Candidates, np.ndarray]:
        torch.set_num_threads(1)  # of this thread; the queries are what is shared out
        given, length = rounded(query), dense.lengths(query)
        wide = 5 * bound + 1.001 * (given.rest * known.longest + (length + given.rest) * rest) + 2.0**-100
        keep = dense.kept(best, dense.MORE_BYTES)
        held, cut = dense.no_candidates(best, wide, keep)
        for at, sums in _sums(given.whole, vectors.whole):
            dense_kernels.collect_sums(sums, given.step, vectors.step[at : at + dense.BLOCK], at, keep, held.found, held.coarse, held.size, cut, held.dropped)
        return held, wide

    return found


def product(query: np.ndarray, vectors: np.ndarray) -> Callable:
    """The products of whole numbers and nothing else: what no search in int8 can be faster than."""
    given, known = rounded(query).whole, rounded(vectors).whole

    def multiply() -> None:
        for some in given.split(dense.QUERIES):
            for _ in _sums(some, known):
                pass

    return multiply


def _sums(query: torch.Tensor, vectors: torch.Tensor) -> Iterator[tuple[int, np.ndarray]]:
    """(first place, int32[queries, documents]) of ranges of the documents; the next range may lie where the last one lay."""
    room = torch.empty((len(query), dense.BLOCK), dtype=torch.int32)
    for at in range(0, len(vectors), dense.BLOCK):
        some = vectors[at : at + dense.BLOCK]
        sums = room if len(some) == dense.BLOCK else torch.empty((len(query), len(some)), dtype=torch.int32)
        torch._int_mm(query, some.T, out=sums)
        yield at, sums.numpy()
