"""Proof that every pair of the top 20s has its row in the release, and which pairs stayed without a judgment."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, keys
from lib.release.merge import ReleaseError

COUNTS = ("dense top 20", "fused top 20", "distinct", "with a row", "without a row", "source pages outside", "rows", "gaps")


class GapsLeft(ReleaseError):
    """More pairs stayed without a valid reply than the release accepts."""


def check(rows: pa.Table, query: np.ndarray, dense: np.ndarray, fused: np.ndarray, source_doc: np.ndarray, gaps: np.ndarray) -> dict[str, int]:
    """Count one query part (COUNTS without `gaps`), or raise ReleaseError with the first ten pairs.

    rows: query and doc of the release; query int32[n]; dense, fused int32[n, 20] of the kept queries, -1 for an empty
    place and all through for a query that is not kept; source_doc int32[n], -1 for none; gaps: int64 keys.

    Every pair of a list has one row, or is a gap; a row is of a list, or of the query's own source page.
    """
    found, listed = keys.of(rows), [keys.listed(query, docs) for docs in (dense, fused)]
    wanted, have = keys.distinct(np.concatenate(listed)), np.sort(found)
    missing, outside = wanted[~keys.inside(wanted, have)], found[~keys.inside(found, wanted)]
    for bad, fault in (
        (missing[~np.isin(missing, gaps)], "of the top 20s have no row"),
        (keys.repeated(found), "have two rows"),
        (outside[~keys.inside(outside, keys.listed(query, source_doc[:, None]))], "with a row are in no top 20 and no source page"),
    ):
        if len(bad):
            raise ReleaseError(f"the release does not cover its pairs: {len(bad)} {fault}, the first: {keys.first_ten(bad)}; "
                               "route, judge and label again")
    counts = (len(listed[0]), len(listed[1]), len(wanted), len(found) - len(outside), len(missing), len(outside), len(found))
    return dict(zip(COUNTS[:-1], counts, strict=True))


def gaps(told: pa.Table, stages: tuple[str, ...] | None = None) -> pa.Table:
    """The rows of `answers` that no pass brought a valid reply, of some stages or of all."""
    left = pc.invert(pc.is_in(told["answer"], pa.array(contracts.NO_GAP)))
    return told.filter(left if stages is None else pc.and_(left, pc.is_in(told["stage"], pa.array(stages))))


def table(run: str | Path) -> pd.DataFrame:
    """One row a fact of the finished release: pairs of the top 20s, those with a row and without (gaps accepted), rows."""
    lines = contracts.parts(Path(run) / "labels")
    total = {name: sum(line[name] for line in lines) for name in COUNTS}
    facts = {
        "pairs in a dense top 20": total["dense top 20"], "pairs in a fused top 20": total["fused top 20"],
        "distinct pairs of both": total["distinct"],
        "of them with one row": total["with a row"], "of them without a row": total["without a row"],
        "rows of source pages outside": total["source pages outside"], "rows of the release": total["rows"],
        "gaps accepted": total["gaps"],
    }
    return pd.DataFrame({"fact": list(facts), "count": list(facts.values())})
