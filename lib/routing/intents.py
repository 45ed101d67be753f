"""The rows that send pairs to judges."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts


class RoutingError(ValueError):
    """A pair cannot be routed, or a pair of the dense top 20 was left out."""


def intents(rows: Mapping[str, np.ndarray], judge: str, version: str, stage: str, reason: str, max_chars: int | None, **more) -> pa.Table:
    n = len(rows["query"])
    constant = {"judge": judge, "version": version, "stage": stage, "reason": reason, "max_chars": max_chars}
    columns = {name: pa.repeat(pa.scalar(value, contracts.TABLES["intents"].field(name).type), n) for name, value in constant.items()}
    rank = more.get("rank", np.zeros(n, np.int16))
    round_ = more.get("round", np.ones(n, np.int16))
    withdrawn = more.get("withdrawn", np.zeros(n, bool))
    return contracts.table(
        "intents",
        {"query": rows["query"], "doc": rows["doc"], "rank": rank.astype(np.int16), "round": round_.astype(np.int16), "withdrawn": withdrawn} | columns,
    )


def rows_as(rows: pa.Table, version: str, reason: str | pa.ChunkedArray | list[str]) -> pa.Table:
    """Intents sent again under another version, as its round 1; stage, characters and rank stay. `reason` is one for all, or one a row."""
    n = rows.num_rows
    changed = {"version": pa.repeat(pa.scalar(version), n), "round": pa.repeat(pa.scalar(1, pa.int16()), n),
               "reason": pa.repeat(pa.scalar(reason), n) if isinstance(reason, str) else reason}
    return contracts.table("intents", {name: changed.get(name, rows[name]) for name in rows.schema.names})


def by_query(rows: pa.Table) -> pa.Table:
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in ("query", "doc", "judge", "stage")]))
