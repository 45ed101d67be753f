"""Counts in half-open buckets, every input counted."""

import numpy as np


def count(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """int64[len(edges) - 1]: how many values lie in [edge, next edge), the last bucket closed: [0,10) [10,20) [20,100].

    Compared in the type of the values: float32 values meet float32 edges, so that 0.8 as stored is not below an edge of 0.8.
    A value that is not finite or lies outside raises ValueError; so do edges that do not ascend.
    """
    values = np.asarray(values)
    if values.dtype != np.float32:
        values = values.astype(np.float64)
    edges = np.asarray(edges, dtype=values.dtype)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(f"the edges {edges.tolist()} do not ascend; give two or more, each above the one before")
    if not np.isfinite(values).all():
        raise ValueError(f"{int((~np.isfinite(values)).sum())} of {len(values)} values are not finite; count them apart")
    counts = np.histogram(values, edges)[0]
    if counts.sum() != len(values):
        raise ValueError(f"{len(values) - counts.sum()} of {len(values)} values lie outside {edges[0]:g} to {edges[-1]:g}; widen the edges")
    return counts


def names(edges: np.ndarray) -> list[str]:
    """What the buckets are called: `[0, 10)`, and `[20, 100]` for the last."""
    shown = [f"{edge:g}" for edge in edges]
    return [f"[{low}, {high}" + ("]" if i == len(shown) - 2 else ")") for i, (low, high) in enumerate(zip(shown, shown[1:], strict=False))]
