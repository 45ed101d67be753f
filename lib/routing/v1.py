"""Version 1: source pages, then the dense top 20. Source: spec, "v1: the dense route only"."""

import numpy as np
import pyarrow as pa

from lib.contracts import TOP
from lib.draw import unit_hash
from lib.routing.intents import RoutingError, by_query, intents


def route_source_pages(query: np.ndarray, source_doc: np.ndarray, max_chars: int = 30_000) -> pa.Table:
    """Every query's own source page -> LLM, version v1, before retrieval.

    query, source_doc: int32[n] row numbers, source_doc -1 where the query has none (no row then).
    """
    has = source_doc >= 0
    return intents({"query": query[has], "doc": source_doc[has]}, "llm", "v1", "source_page", "source page, before retrieval", max_chars)


def route_v1(
    query: np.ndarray, dense: np.ndarray, long: np.ndarray, rerank_score: np.ndarray, source_doc: np.ndarray, *,
    picks: int = 5, pick_rounds: int = 1, student_on_long: float = 0.0, seed: int = 0, short_chars: int = 30_000, long_chars: int = 100_000,
) -> pa.Table:
    """Route the dense top 20 of each query.

    query int32[n]; dense int32[n, 20] (-1 after the last hit); long bool[n, 20] (more tokens than the
    threshold); rerank_score float[n, 20], read at the short pairs of ranks 6-20 only; source_doc int32[n], -1 for none.

    Ranks 1-5 -> LLM; long at 6-20 -> LLM with `long_chars`; short at 6-20 -> student, and of them the
    reranker's best `picks` (fewer if there are fewer, ties to the better dense rank) -> LLM too.
    `student_on_long` is the share of the long pairs that the student scores besides.
    A non-finite reranker score raises RoutingError.
    """
    for name, value, least, most in (("picks", picks, 0, dense.shape[1]), ("pick_rounds", pick_rounds, 1, 1000), ("student_on_long", student_on_long, 0, 1)):
        if not least <= value <= most:
            raise RoutingError(f"{name} is {value}; it lies in {least} to {most}")
    n, depth = dense.shape
    rank = np.broadcast_to(np.arange(1, depth + 1, dtype=np.int16), dense.shape)
    rows = np.broadcast_to(query[:, None], dense.shape)
    there, own = dense >= 0, (dense == source_doc[:, None]) & (dense >= 0)
    top = there & (rank <= TOP)
    long_pairs = there & (rank > TOP) & long
    short_pairs = there & (rank > TOP) & ~long
    bad = short_pairs & ~np.isfinite(rerank_score)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise RoutingError(f"query {query[i]}, document {dense[i, j]}: the reranker's score is {rerank_score[i, j]}; score the pair again before routing")
    # stable, so that equal scores stay in dense order
    order = np.argsort(np.where(short_pairs, -rerank_score.astype(np.float64), np.inf), axis=1, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(depth), order.shape), axis=1)
    picked = short_pairs & (place < picks)
    both = long_pairs & ~own & (unit_hash(seed, rows, dense) < student_on_long)
    round_ = 1 + (unit_hash(seed + 1, rows) * pick_rounds).astype(np.int16)

    def some(which, judge, stage, reason, max_chars, round_=None):
        withdrawn = own[which] if judge == "llm" else np.zeros(which.sum(), bool)
        more = {"rank": rank[which], "withdrawn": withdrawn} | ({} if round_ is None else {"round": round_[which]})
        return intents({"query": rows[which], "doc": dense[which]}, judge, "v1", stage, reason, max_chars, **more)

    routed = pa.concat_tables([
        some(top, "llm", "dense_1_5", "dense rank 1-5", short_chars),
        some(picked, "llm", "pick", f"reranker's best {picks} of the short ones at dense rank 6-20", short_chars, round_),
        some(long_pairs, "llm", "long", "long at dense rank 6-20", long_chars),
        some(short_pairs, "student", "short", "short at dense rank 6-20", None),
        some(both, "student", "long", "sample of the long ones, for the overlap", None),
    ])
    return by_query(routed)
