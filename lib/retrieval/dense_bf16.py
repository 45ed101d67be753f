"""The products of the dense route in bf16, on a GPU or on a processor that has such instructions.

x is rounded to x' with a rest r of known length, and so is y to y' with s: x.y differs from x'.y' by at most
|r||y| + |x'||s|. The sum in fp32 adds what an fp32 product may, taken four times for sums that a GPU truncates;
a processor rounds its result to bf16 once more, by at most 2^-8 |x'||y'|.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from lib.retrieval import dense
from lib.retrieval.dense import Candidates, Documents
from lib.retrieval.hits import Heap

GPU_BLOCK = 1 << 16  # documents a product on a GPU


def device() -> str:
    """Where the products are computed: cuda where torch sees one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def rounded(values: np.ndarray, where: str) -> tuple[torch.Tensor, np.ndarray]:
    """bf16[n, d] on the device, and float64[n], no shorter than the rests that rounding left."""
    made, rest = torch.empty(values.shape, dtype=torch.bfloat16, device=where), np.empty(len(values))
    for at in range(0, len(values), dense.BLOCK):
        some = torch.from_numpy(np.array(values[at : at + dense.BLOCK]))  # a copy: torch wants what it may write to
        made[at : at + dense.BLOCK] = some.to(where, torch.bfloat16)
        rest[at : at + dense.BLOCK] = dense.lengths((some - made[at : at + dense.BLOCK].float().cpu()).numpy())  # the difference is exact
    return made, rest


def search(known: Documents, where: str | None = None) -> Callable:
    """The `search` of `dense.Documents`."""
    where = where or device()
    torch.set_num_threads(1)
    vectors, rests = rounded(known.vectors, where)
    rest = float(rests.max(initial=0.0))

    def found(query: np.ndarray, best: Heap, bound: np.ndarray) -> tuple[Candidates, np.ndarray]:
        torch.set_num_threads(1)  # of this thread; the queries are what is shared out
        keep = dense.kept(best, dense.MORE_ROUNDED)
        given, lost = rounded(query, where)
        length = dense.lengths(query)
        wide = 5 * bound + 1.001 * (lost * known.longest + (length + lost) * rest)
        if where == "cpu":
            wide += 1.001 * 2.0**-8 * (length + lost) * (known.longest + rest)
            return dense.candidates(_products(given, vectors), best, wide, keep), wide
        return _largest(given, vectors, keep), wide

    return found


def product(query: np.ndarray, vectors: np.ndarray) -> Callable:
    """The processor's products of rounded rows and nothing else: what no search in bf16 can be faster than."""
    given, known = rounded(query, "cpu")[0], rounded(vectors, "cpu")[0]

    def multiply() -> None:
        for some in given.split(dense.QUERIES):
            for block in known.split(dense.BLOCK):
                some @ block.T

    return multiply


def _products(query: torch.Tensor, vectors: torch.Tensor) -> Iterator[tuple[int, np.ndarray, int]]:
    product = np.zeros((len(query), dense.BLOCK), np.float32)
    for at in range(0, len(vectors), dense.BLOCK):
        some = vectors[at : at + dense.BLOCK]
        torch.from_numpy(product)[:, : len(some)] = query @ some.T
        yield at, product, len(some)


def _largest(query: torch.Tensor, vectors: torch.Tensor, keep: int) -> Candidates:
    """On the device: block by block the `keep` largest so far, and one more, which says how large the rest may be."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    coarse = torch.empty((len(query), 0), dtype=torch.float32, device=query.device)
    places = torch.empty((len(query), 0), dtype=torch.int64, device=query.device)
    for at in range(0, len(vectors), GPU_BLOCK):
        some = vectors[at : at + GPU_BLOCK].T
        product = torch.mm(query, some, out_dtype=torch.float32) if query.is_cuda else query.float() @ some.float()
        value, place = product.topk(min(keep + 1, product.shape[1]), dim=1)
        coarse, places = torch.cat([coarse, value], 1), torch.cat([places, place + at], 1)
        coarse, order = coarse.topk(min(keep + 1, coarse.shape[1]), dim=1)
        places = places.gather(1, order)
    size, more = min(keep, coarse.shape[1]), coarse.shape[1] > keep
    dropped = coarse[:, keep].cpu().numpy() if more else np.full(len(query), -np.inf, np.float32)
    found = places[:, :size].to(torch.int32).contiguous().cpu().numpy()
    return Candidates(found, coarse[:, :size].contiguous().cpu().numpy(), np.full(len(query), size), dropped)
