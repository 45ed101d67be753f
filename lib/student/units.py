"""Labelling cut into units of about as many tokens, and dealt to workers so that their tokens balance."""

import heapq
from collections.abc import Mapping

import numpy as np


def bounds(tokens: np.ndarray, unit_tokens: int) -> np.ndarray:
    """int64[units + 1]: unit u is the pairs from bounds[u] to bounds[u + 1], in the order given.

    tokens int[n] of each pair. There are as few units as `unit_tokens` allows on average, and at least one; none is larger
    than that and one pair. [5, 5, 5, 5] in units of 10 gives [0, 2, 4].
    """
    if unit_tokens < 1:
        raise ValueError(f"unit_tokens is {unit_tokens}; a unit holds at least 1 token")
    total = np.cumsum(tokens, dtype=np.int64)
    if not len(total):
        return np.zeros(2, np.int64)
    count = max(1, -(-int(total[-1]) // unit_tokens))
    inner = np.searchsorted(total, total[-1] * np.arange(1, count) // count, side="left") + 1
    return np.unique(np.concatenate([[0], inner, [len(total)]])).astype(np.int64)


def names(part: str, count: int) -> list[str]:
    """`part-00000-00`, `part-00000-01`, ...: the units of a query part."""
    return [f"{part}-{unit:02d}" for unit in range(count)]


def split(name: str) -> tuple[str, int]:
    """The query part of a unit, and which of its units it is."""
    part, _, unit = name.rpartition("-")
    return part, int(unit)


def share(tokens: Mapping[str, int], workers: int) -> list[list[str]]:
    """The units of each worker, in order: the largest unit goes to who has the fewest tokens so far.

    No worker has more than the mean plus one unit. A worker may be left without any.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}; it takes at least 1")
    loads = [(0, worker) for worker in range(workers)]
    shares: list[list[str]] = [[] for _ in range(workers)]
    for name in sorted(tokens, key=lambda name: (-tokens[name], name)):
        load, worker = heapq.heappop(loads)
        shares[worker].append(name)
        heapq.heappush(loads, (load + tokens[name], worker))
    return [sorted(one) for one in shares]
