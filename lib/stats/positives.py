"""Positives (score 2) per query within the first places of an order. Source: spec, "Probe"."""

import numpy as np

from lib import keys


def positives_at(docs: np.ndarray, positive: np.ndarray, depths: tuple[int, ...] = (5, 10, 20)) -> np.ndarray:
    """int[queries, depths]: how many of the first `depth` places hold a positive.

    docs int32[queries, places], -1 after the last; positive bool[queries, places], read where docs >= 0.
    """
    counted = np.cumsum(positive & (docs >= 0), axis=1)
    if docs.shape[1] < max(depths):
        raise ValueError(f"the order has {docs.shape[1]} places, too few for depth {max(depths)}")
    return np.stack([counted[:, depth - 1] for depth in depths], axis=1)


def members(docs: np.ndarray, query: np.ndarray, known: np.ndarray) -> np.ndarray:
    """bool[queries, places]: is (query, doc) one of the known pairs? Empty places are not.

    query int32[queries] row numbers; known int64, `lib.keys` of pairs, ascending.
    """
    return keys.inside(keys.of_pairs(query[:, None], np.maximum(docs, 0)), known) & (docs >= 0)


def share_inside(inner: np.ndarray, outer: np.ndarray, depth: int = 5) -> tuple[int, int]:
    """How many documents of the first `depth` places of `inner` stand in those of `outer`, and of how many."""
    first, other = inner[:, :depth], outer[:, :depth]
    there = first >= 0
    return int(((first[:, :, None] == other[:, None, :]).any(axis=2) & there).sum()), int(there.sum())
