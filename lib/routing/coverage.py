"""Proof that no pair was left out and none was sent twice."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import keys
from lib.routing.intents import RoutingError


def check_coverage(query: np.ndarray, dense: np.ndarray, intents: pa.Table) -> None:
    """Every pair of the dense top 20 has exactly one deciding row: LLM (withdrawn or not), or student where no LLM row is.

    Raises RoutingError naming the first ten pairs without a row, with two rows of one judge, or of no list.
    """
    wanted, found = keys.listed(query, dense), keys.distinct(keys.of(intents))
    judged = (keys.of(intents.filter(pc.equal(intents["judge"], judge))) for judge in pc.unique(intents["judge"]))
    for bad, fault in (
        (wanted[~keys.inside(wanted, found)], "have no intent"),
        (found[~keys.inside(found, wanted)], "are in no dense top 20"),
        (keys.distinct(np.concatenate([np.zeros(0, np.int64), *map(keys.repeated, judged)])), "are sent twice to one judge"),
    ):
        if len(bad):
            raise RoutingError(f"{len(bad)} pairs {fault}, the first: {keys.first_ten(bad)}; route again from whole hits")
