"""Within-query R2: how much of the differences between the labels of one query a prediction explains.

Most of the label variance lies between queries, and a model that only knows which query is easy would look good on
pooled pairs. Source: spec, "The 8B relevance model"; the definitions follow the project's design.
"""

from typing import NamedTuple

import numpy as np

from lib.stats.bootstrap import Estimate, sums_interval


class Undefined(ValueError):
    """A measure has no value on this data, and why."""


class Measures(NamedTuple):
    """The measures of one prediction; None where one has no value, and then `undefined` says why.

    within: `within_query_r2`. pooled: 1 - squared errors / squared deviations of the labels from their mean over all
    pairs. uncentred: the errors as they are, not centred by query, against the label variation within queries: a
    wrong level of a whole query counts too. between: the share of the label variance that lies between the queries.
    mse: mean squared error.
    """

    pairs: int
    queries: int
    within: float | None
    pooled: float | None
    uncentred: float | None
    between: float | None
    mse: float | None
    undefined: str


NO_VARIATION = "no query has two different labels"
ONE_LABEL = "all labels are the same"
NO_PAIRS = "there are no pairs"


def within_query_r2(query: np.ndarray, label: np.ndarray, prediction: np.ndarray) -> float:
    """Labels and predictions are centred by query; 1 - sum of squared differences / sum of squared centred labels.

    query: any[n]; label, prediction: numbers[n]. Every query counts: one with a single label adds the spread of its
    predictions to the numerator, one with a single pair adds 0. Raises `Undefined` where no query has two different
    labels, and ValueError for lengths that differ or a value that is not finite. At most 1; negative where the
    query's mean would do better.
    """
    error, total = _sums(query, label, prediction).sum(axis=0)
    if total == 0:
        raise Undefined(f"within-query R2 of {len(label):,} pairs is undefined: {NO_VARIATION if len(label) else NO_PAIRS}")
    return float(1 - error / total)


def within_query_interval(query: np.ndarray, label: np.ndarray, prediction: np.ndarray, resamples: int = 2_000, seed: int = 0) -> Estimate:
    """`within_query_r2` with the percentile bootstrap interval over queries; raises as that does."""
    within_query_r2(query, label, prediction)
    return sums_interval(_sums(query, label, prediction), lambda sums: 1 - _ratio(sums[:, 0], sums[:, 1]), resamples, seed)


def within_query_difference(
    query: np.ndarray, label: np.ndarray, first: np.ndarray, second: np.ndarray, resamples: int = 2_000, seed: int = 0
) -> Estimate:
    """R2 of the first prediction less R2 of the second on the same pairs; paired: each draw of queries serves both."""
    within_query_r2(query, label, first)
    sums = np.column_stack([_sums(query, label, first), _sums(query, label, second)[:, 0]])
    return sums_interval(sums, lambda sums: _ratio(sums[:, 2] - sums[:, 0], sums[:, 1]), resamples, seed)


def measures(query: np.ndarray, label: np.ndarray, prediction: np.ndarray) -> Measures:
    """All measures of one prediction; what has no value is None and said why."""
    query, (label, prediction) = np.asarray(query), _numbers(query, label, prediction)
    n, (error, within) = len(label), _sums(query, label, prediction).sum(axis=0)
    total = float(((label - label.mean()) ** 2).sum()) if n and (label != label[0]).any() else 0.0
    squares = float(((label - prediction) ** 2).sum())
    why = [reason for undefined, reason in ((not n, NO_PAIRS), (n and not total, ONE_LABEL), (total and not within, NO_VARIATION)) if undefined]
    return Measures(
        n, len(np.unique(query)), 1 - float(error / within) if within else None, 1 - squares / total if total else None,
        1 - float(squares / within) if within else None, 1 - float(within / total) if total else None, squares / n if n else None,
        "; ".join(why),
    )  # fmt: skip


def _sums(query: np.ndarray, label: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """float64[queries, 2], queries ascending: squared differences of the centred values, squared centred labels."""
    numbers = _numbers(query, label, prediction)
    _, first, row, count = np.unique(np.asarray(query), return_index=True, return_inverse=True, return_counts=True)
    centred = []
    for values in numbers:
        shifted = values - values[first][row]  # so that equal values are centred to 0 and not to rounding
        centred.append(shifted - (np.bincount(row, shifted, len(first)) / count)[row])
    return np.column_stack([np.bincount(row, squares, len(first)) for squares in ((centred[0] - centred[1]) ** 2, centred[0] ** 2)])


def _numbers(query: np.ndarray, label: np.ndarray, prediction: np.ndarray) -> list[np.ndarray]:
    numbers = [np.asarray(values, dtype=np.float64) for values in (label, prediction)]
    if not len(query) == len(numbers[0]) == len(numbers[1]):
        raise ValueError(f"{len(query)} queries, {len(numbers[0])} labels and {len(numbers[1])} predictions are not of the same pairs; "
                         "give one of each a pair")
    for name, values in zip(("labels", "predictions"), numbers, strict=True):
        if not np.isfinite(values).all():
            bad = int((~np.isfinite(values)).sum())
            raise ValueError(f"{bad} of {len(values)} {name} are not finite; leave those pairs out, and count them")
    return numbers


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole != 0)
