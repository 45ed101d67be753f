"""Positives (score 2) per query within the first places of an order. Source: spec, "Probe"."""

import numpy as np


def positives_at(docs: np.ndarray, positive: np.ndarray, depths: tuple[int, ...] = (5, 10, 20)) -> np.ndarray:
    """int[queries, depths]: how many of the first `depth` places hold a positive.

    docs int32[queries, places], -1 after the last; positive bool[queries, places], read where docs >= 0.
    """
    counted = np.cumsum(positive & (docs >= 0), axis=1)
    if docs.shape[1] < max(depths):
        raise ValueError(f"the order has {docs.shape[1]} places, too few for depth {max(depths)}")
    return np.stack([counted[:, depth - 1] for depth in depths], axis=1)


def members(docs: np.ndarray, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """bool[queries, places]: is (query, doc) one of the sorted pair keys? Empty places are not.

    query int32[queries] row numbers; keys int64, as `pair_keys` makes them, ascending.
    """
    wanted = pair_keys(query[:, None], np.maximum(docs, 0))
    if not len(keys):
        return np.zeros(docs.shape, bool)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return (keys[place] == wanted) & (docs >= 0)


def pair_keys(query: np.ndarray, doc: np.ndarray) -> np.ndarray:
    """One int64 a pair of row numbers, ordered by query, then document."""
    return (query.astype(np.int64) << 32) | doc.astype(np.int64)


def share_inside(inner: np.ndarray, outer: np.ndarray, depth: int = 5) -> tuple[int, int]:
    """How many documents of the first `depth` places of `inner` stand in those of `outer`, and of how many."""
    first, other = inner[:, :depth], outer[:, :depth]
    there = first >= 0
    return int(((first[:, :, None] == other[:, None, :]).any(axis=2) & there).sum()), int(there.sum())
