"""How a predicted score relates to the labels: the mean label by bin of the score, and the scores by label.

Source: spec, "The 8B relevance model" (the fixed cuts are a default, not a calibration).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib import buckets


def reliability(label: np.ndarray, prediction: np.ndarray, bins: int = 10) -> pd.DataFrame:
    """One row a bin: its lowest and highest score, pairs, mean score and mean label.

    The bins hold equally many pairs as far as ties allow: equal scores stay together, so there may be fewer bins, none
    of them empty. On the diagonal the score is calibrated. A value that is not finite raises ValueError.
    """
    label, prediction = (np.asarray(values, dtype=np.float64) for values in (label, prediction))
    if not (np.isfinite(label).all() and np.isfinite(prediction).all()):
        raise ValueError("a label or a score is not finite; leave those pairs out, and count them")
    columns = ["low", "high", "pairs", "mean score", "mean label"]
    if not len(label):
        return pd.DataFrame({name: [] for name in columns})
    edges = np.unique(np.quantile(prediction, np.linspace(0, 1, bins + 1)[1:-1]))
    frame = pd.DataFrame({"bin": np.searchsorted(edges, prediction, side="right"), "score": prediction, "label": label})
    bins = frame.groupby("bin")
    score = bins["score"].agg(["min", "max", "size", "mean"])
    return score.assign(label=bins["label"].mean()).set_axis(columns, axis=1).reset_index(drop=True)


def scores_by_label(label: np.ndarray, prediction: np.ndarray, labels: Sequence[int] = (0, 1, 2), bins: int = 30) -> pd.DataFrame:
    """One row a label and bucket of the score, from the lowest to the highest: label, low, high, pairs, share of the label's pairs.

    The share is missing for a label without pairs. Without any pair the table has no rows.
    """
    label, prediction = np.asarray(label), np.asarray(prediction, dtype=np.float64)
    rows = []
    if len(label):
        low, high = prediction.min(), prediction.max()
        edges = np.linspace(low, high if high > low else low + 1, bins + 1)
        for one in labels:
            counts = buckets.count(prediction[label == one], edges)
            shares = counts / (counts.sum() or np.nan)
            rows.append(pd.DataFrame({"label": one, "low": edges[:-1], "high": edges[1:], "pairs": counts, "share": shares}))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame({name: [] for name in ("label", "low", "high", "pairs", "share")})
