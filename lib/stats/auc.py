"""Area under the ROC curve, score 2 against score 0. Source: spec, the reranker picks' 196-query probe."""

import numpy as np


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """The share of (positive, negative) pairs that the score puts right, a tie counting half.

    NaN where one of the classes is empty. A non-finite score raises ValueError.
    """
    score, positive = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    if not np.isfinite(score).all():
        raise ValueError(f"{int((~np.isfinite(score)).sum())} of {len(score)} scores are not finite; score those pairs again")
    right, wrong = score[positive], np.sort(score[~positive])
    if not len(right) or not len(wrong):
        return float("nan")
    below, not_above = (np.searchsorted(wrong, right, side).sum() for side in ("left", "right"))
    return float((below + not_above) / (2 * len(right) * len(wrong)))


def auc_by_query(query: np.ndarray, score: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """The AUC inside each query, queries ascending; NaN where a query lacks one of the classes."""
    order = np.argsort(query, kind="stable")
    starts = np.flatnonzero(np.diff(query[order], prepend=np.nan)) if len(query) else np.zeros(0, int)
    return np.array([auc(score[rows], positive[rows]) for rows in np.split(order, starts[1:])]) if len(query) else np.zeros(0)
