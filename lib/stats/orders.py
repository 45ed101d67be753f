"""Orders of the same pool, compared by the positives in their first places. Source: spec, "Probe"."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.stats.bootstrap import mean_interval
from lib.stats.positives import members, positives_at

DEPTHS = (5, 10, 20)


def compare(orders: Mapping[str, np.ndarray], query: np.ndarray, positive: np.ndarray, source_doc: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """One row an order: mean positives a query in the top 5, 10 and 20 with 95% intervals over queries.

    orders: name -> int32[queries, >= 20], best first, -1 after the last; query int32[queries]; positive:
    `lib.keys` of the pairs of score 2, ascending, the source pages not among them; source_doc int32[queries], -1 for none.
    A source page keeps its place and is no positive: the last column counts them in the top 5 / 10 / 20.
    """
    rows = []
    for name, docs in orders.items():
        counts = positives_at(docs, members(docs, query, positive), DEPTHS)
        own = positives_at(docs, docs == source_doc[:, None], DEPTHS)
        row = {"order": name, "queries": len(query)}
        for i, depth in enumerate(DEPTHS):
            interval = mean_interval(counts[:, i], seed=seed)
            row |= {f"top {depth}": interval.mean, f"top {depth} low": interval.low, f"top {depth} high": interval.high}
        rows.append(row | {"source pages in top 5 / 10 / 20": " / ".join(str(count) for count in own.sum(axis=0))})
    return pd.DataFrame(rows)
