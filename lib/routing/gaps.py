"""The gaps of version 1, sent again. Source: spec, "v1's gaps"."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, keys
from lib.routing.intents import RoutingError, by_query, rows_as

STAGES = ("dense_1_5", "pick", "long")
REASON = "no valid reply in v1, the last call ended in: "


class Asked(NamedTuple):
    """One part of a set: the intents that went to the LLM (contract `intents`) and what they were answered (`answers`), row for row."""

    sent: pa.Table
    told: pa.Table


def asked(sent: pa.Table, told: pa.Table) -> Asked:
    """The two tables, or RoutingError where they are not of the same pairs in the same order."""
    sent = sent.filter(pc.equal(sent["judge"], "llm"))
    for name in ("query", "doc", "stage"):
        if not sent[name].equals(told[name]):
            raise RoutingError(f"the answers are not of these {sent.num_rows} intents (their {name} differs); judge again")
    return Asked(sent, told)


def route_gaps(v1: Asked, pages: Asked, query: np.ndarray, dense: np.ndarray, fused: np.ndarray) -> pa.Table:
    """Every pair of v1 without a valid reply -> LLM again, in its stage and with its characters, as version `v2 gap`.

    v1, pages: the sets `v1` and `source_page` of the same queries. query int32[n]; dense, fused int32[n, 20], -1 after the
    last. Unevaluable is a valid reply. A failed source page is sent where it stands in its query's dense or fused top 20.
    """
    shown = keys.inside(keys.of(pages.sent), keys.listed(query, np.concatenate([dense, fused], axis=1)))
    failed = pc.is_in(v1.sent["stage"], pa.array(STAGES))
    return by_query(pa.concat_tables([_again(v1, failed), _again(pages, pa.chunked_array([shown]))]))


def _again(part: Asked, wanted: pa.ChunkedArray) -> pa.Table:
    gap = pc.and_(wanted, pc.invert(pc.is_in(part.told["answer"], pa.array(contracts.NO_GAP))))
    return rows_as(part.sent.filter(gap), "v2 gap", pc.binary_join_element_wise(REASON, part.told["answer"].filter(gap), ""))
