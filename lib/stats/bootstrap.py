"""Percentile bootstrap over queries: queries are drawn, never pairs, since pairs of one query hang together."""

from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A mean over queries with its 95% interval; all NaN where n is 0."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]" if self.n else "—"


def mean_interval(values: np.ndarray, resamples: int = 2_000, seed: int = 0, level: float = 0.95) -> Interval:
    """The mean of one value a query, with the percentile interval of `resamples` draws of the queries.

    Draws go in blocks of at most 16 million indices (one draw where n is larger). A non-finite value raises ValueError.
    """
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{int((~np.isfinite(values)).sum())} of {len(values)} values are not finite; leave out the queries without one, and count them")
    if not len(values):
        return Interval(float("nan"), float("nan"), float("nan"), 0)
    random, block = np.random.default_rng(seed), max(1, 2**24 // len(values))
    means = np.concatenate([
        values[random.integers(0, len(values), (min(block, resamples - start), len(values)))].mean(axis=1)
        for start in range(0, resamples, block)
    ])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high), len(values))
