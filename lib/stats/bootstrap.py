"""Percentile bootstrap over queries: queries are drawn, never pairs, since pairs of one query hang together."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


MANY, FEW = 200_000, 1_000  # queries from which on, and values up to which, counts are drawn and not queries


class Interval(NamedTuple):
    """A mean over queries with its 95% interval; all NaN where n is 0."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]" if self.n else "—"


def _random(seed: int) -> np.random.Generator:
    if seed < 0:
        raise ValueError(f"the seed of the bootstrap is {seed}; take a whole number from 0 on")
    return np.random.default_rng(seed)


def mean_interval(values: np.ndarray, resamples: int = 2_000, seed: int = 0, level: float = 0.95) -> Interval:
    """The mean of one value a query, with the percentile interval of `resamples` draws of the queries.

    Draws go in blocks of at most 16 million indices. Of more than MANY queries with at most FEW distinct values (a rate has two)
    is drawn how often each value comes, a multinomial number: the same law, and not 2,000 times n indices. A non-finite
    value and a seed below 0 raise ValueError.
    """
    random = _random(seed)
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{int((~np.isfinite(values)).sum())} of {len(values)} values are not finite; leave out the queries without one, and count them")
    if not len(values):
        return Interval(float("nan"), float("nan"), float("nan"), 0)
    means = _by_value(values, resamples, random) if len(values) > MANY else None
    if means is None:
        block = max(1, 2**24 // len(values))
        means = np.concatenate([
            values[random.integers(0, len(values), (min(block, resamples - start), len(values)))].mean(axis=1)
            for start in range(0, resamples, block)
        ])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high), len(values))


def _by_value(values: np.ndarray, resamples: int, random: np.random.Generator) -> np.ndarray | None:
    """float64[resamples]: the means of draws with replacement, each drawn as the counts of the distinct values; None where these are many."""
    levels, counts = np.unique(values, return_counts=True)
    if len(levels) > FEW:
        return None
    return random.multinomial(len(values), counts / len(values), resamples) @ levels / len(values)


class Estimate(NamedTuple):
    """A statistic of `queries` queries with its 95% interval; low and high are NaN where the draws do not settle it."""

    value: float
    low: float
    high: float
    queries: int


def sums_interval(sums: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], resamples: int = 2_000, seed: int = 0,
                  level: float = 0.95) -> Estimate:
    """A statistic of sums over queries, such as a ratio, with the percentile interval of `resamples` draws of the queries.

    sums: float64[queries, k], what each query adds; statistic: float64[n, k] summed rows -> float64[n], NaN where it has
    no value. Two arms on the same queries are paired by standing in the same rows: one draw serves both. A draw without
    a value is left out; where more than 1 - `level` of the draws have none, the interval has no ends. A seed below 0 raises ValueError.
    """
    random = _random(seed)
    sums = np.asarray(sums, dtype=np.float64)
    if not np.isfinite(sums).all():
        bad = int((~np.isfinite(sums).all(axis=1)).sum())
        raise ValueError(f"{bad} of {len(sums)} queries have a sum that is not finite; leave them out, and count them")
    if not len(sums):
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    n, columns = len(sums), sums.T.copy()
    drawn = np.empty((resamples, sums.shape[1]))
    for draw in drawn:
        rows = random.integers(0, n, n)
        for i, column in enumerate(columns):
            draw[i] = column[rows].sum()
    values = statistic(drawn)
    values = values[~np.isnan(values)]
    low = high = float("nan")
    if len(values) >= level * resamples:
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(statistic(sums.sum(axis=0, keepdims=True))[0]), float(low), float(high), n)
