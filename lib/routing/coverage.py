"""Proof that no pair was left out and none was sent twice."""

import numpy as np
import pyarrow as pa

from lib.routing.intents import RoutingError


def check_coverage(query: np.ndarray, dense: np.ndarray, intents: pa.Table) -> None:
    """Every pair of the dense top 20 has exactly one deciding row: LLM (withdrawn or not), or student where no LLM row is.

    Raises RoutingError naming the first ten pairs without a row, with two LLM rows, or of no list.
    """
    wanted = {(int(q), int(d)) for q, docs in zip(query, dense, strict=True) for d in docs if d >= 0}
    seen: dict[tuple[int, int], set[str]] = {}
    twice = []
    for q, d, judge in zip(*(intents[name].to_pylist() for name in ("query", "doc", "judge")), strict=True):
        judges = seen.setdefault((q, d), set())
        if judge in judges:
            twice.append((q, d))
        judges.add(judge)
    for pairs, fault in ((sorted(wanted - set(seen)), "have no intent"), (sorted(set(seen) - wanted), "are in no dense top 20"), (twice, "are sent twice to one judge")):
        if pairs:
            raise RoutingError(f"{len(pairs)} pairs {fault}, the first: {pairs[:10]} (query, document); route again from whole hits")
