"""The probe: the whole union of the routes to the LLM, for some queries. Source: spec, "Probe"."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lib.draw import first_by_hash
from lib.routing.intents import RoutingError, by_query, intents


def probe_queries(keep: np.ndarray, n: int, seed: int) -> np.ndarray:
    """int32: the rows of `n` of the kept queries (fewer if there are fewer), drawn by hash of seed and row, ascending."""
    if n < 1:
        raise RoutingError(f"probe_queries is {n}; a probe judges at least 1 query whole")
    return first_by_hash(np.flatnonzero(keep), n, seed).astype(np.int32)


def route_probe(query: np.ndarray, routes: Mapping[str, np.ndarray], long_doc: np.ndarray, source_doc: np.ndarray, *,
                short_chars: int = 30_000, long_chars: int = 100_000) -> pa.Table:
    """The union of the routes' lists of each probe query -> LLM.

    query int32[n]; routes: name -> int32[n, 100], `dense` among them (for the rank column);
    long_doc bool[documents]; source_doc int32[n]. One row a distinct pair, by query and document.
    """
    docs, rows = np.concatenate(list(routes.values()), axis=1), []
    for i, q in enumerate(query):
        union = np.unique(docs[i][docs[i] >= 0])
        position = {int(doc): place for place, doc in reversed(list(enumerate(routes["dense"][i], 1))) if doc >= 0}
        rows.extend((q, doc, position.get(int(doc), 0), doc == source_doc[i]) for doc in union)
    pairs = np.array(rows, dtype=np.int64).reshape(-1, 4)
    is_long = long_doc[pairs[:, 1]] if len(pairs) else np.zeros(0, bool)

    def some(which, max_chars):
        part = pairs[which]
        return intents({"query": part[:, 0].astype(np.int32), "doc": part[:, 1].astype(np.int32)}, "llm", "probe", "probe",
                        "in the top 100 of a route", max_chars, rank=part[:, 2], withdrawn=part[:, 3].astype(bool))

    return by_query(pa.concat_tables([some(~is_long, short_chars), some(is_long, long_chars)]))
