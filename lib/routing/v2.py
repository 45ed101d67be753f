"""Version 2: the documents that fusion brings into the top 20. Source: spec, "v2: adding the missing routes"."""

import numpy as np
import pyarrow as pa

from lib.contracts import CUT, TOP
from lib.draw import first_by_hash
from lib.routing.intents import RoutingError, by_query, intents

LONG_1_5, SHORT, LONG_6_20, TRIAL = "new_long_1_5", "new_short", "new_long_6_20", "trial"


def new_candidates(fused: np.ndarray, dense: np.ndarray, source_doc: np.ndarray, cut: int = CUT) -> np.ndarray:
    """bool[n, cut]: which of the first `cut` fused places hold a document that v1 did not send to a judge.

    fused int32[n, >= cut], dense int32[n, 20], -1 for an empty place; source_doc int32[n], -1 for none. The list is cut
    first: then the dense top 20, judged or not, and the source page are left out, and places keep their numbers.
    """
    fused = fused[:, :cut]
    again = np.tril(fused[:, :, None] == fused[:, None, :], -1).any(axis=2)  # [7, 9, 7] has 7 once, at place 1
    known = (fused[:, :, None] == dense[:, None, :]).any(axis=2)
    return (fused >= 0) & ~again & ~known & (fused != source_doc[:, None])


def trial_queries(keep: np.ndarray, n: int, seed: int) -> np.ndarray:
    """int32: the rows of `n` of the kept queries (fewer if there are fewer), drawn by hash of seed and row, ascending."""
    if n < 0:
        raise RoutingError(f"trial_queries is {n}; it is at least 0")
    return first_by_hash(np.flatnonzero(keep), n, seed).astype(np.int32)


def route_v2(
    query: np.ndarray, fused: np.ndarray, dense: np.ndarray, dense_rank: np.ndarray, long: np.ndarray, source_doc: np.ndarray,
    trial: np.ndarray, *, long_chars: int = 100_000,
) -> pa.Table:
    """Route the new candidates of each query.

    query int32[n]; fused int32[n, 20]; dense int32[n, 20]; dense_rank int16[n, 20], the rank of each fused document in the
    whole dense list, 0 outside; long bool[n, 20], of the fused documents; source_doc int32[n]; trial bool[n].

    Long at fused 1-5 -> LLM with `long_chars`; all others -> student. Of a trial query, long at fused 6-20 -> LLM too.
    """
    new = new_candidates(fused, dense, source_doc)
    first = np.broadcast_to(np.arange(1, CUT + 1) <= TOP, new.shape)
    rows = np.broadcast_to(query[:, None], new.shape)

    def some(which, judge, stage, reason, max_chars):
        return intents({"query": rows[which], "doc": fused[which]}, judge, "v2", stage, reason, max_chars, rank=dense_rank[which])

    return by_query(pa.concat_tables([
        some(new & long & first, "llm", LONG_1_5, "new candidate, long, at fused position 1-5", long_chars),
        some(new & long & ~first & trial[:, None], "llm", TRIAL, "new candidate of a trial query, long, at fused position 6-20", long_chars),
        some(new & ~long, "student", SHORT, "new candidate, short", None),
        some(new & long & ~first, "student", LONG_6_20, "new candidate, long, at fused position 6-20", None),
    ]))
