"""A second judge for a sample of the training candidates, and a third where the two disagree.

Source: spec, "Reliability against a second judge"; the policy `strict` is the design's.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts
from lib.routing.gaps import Asked
from lib.routing.intents import by_query, rows_as


def training_candidates(told: pa.Table) -> np.ndarray:
    """bool[rows] of a part of the answers to v1: picks and long documents with a label."""
    return pc.and_(pc.is_in(told["stage"], pa.array(contracts.TRAINED)), pc.equal(told["answer"], "ok")).to_numpy()


def to_arbiter(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """bool[n]: where the policy `strict` has a third judge decide; float[n] labels, NaN for unevaluable.

    Two equal labels are the combined label, 0 against 1 is 0, and any other pair of replies goes to the third judge.
    """
    equal = (first == second) | (np.isnan(first) & np.isnan(second))
    zero_and_one = (np.minimum(first, second) == 0) & (np.maximum(first, second) == 1)
    return ~equal & ~zero_and_one


def route_second(v1: Asked, chosen: np.ndarray) -> pa.Table:
    """The chosen rows (bool) of v1 -> the second judge, in their stage and with their characters."""
    return by_query(rows_as(v1.sent.filter(pa.array(chosen)), "second judge", "sample of the training candidates, for the second judge"))


def route_arbiter(v1: Asked, second: pa.Table) -> pa.Table:
    """The pairs on which the two judges' replies have to be arbitrated -> the third judge, in their stage and with their characters.

    second: the answers to the set `second` of the same queries. A pair without a valid reply of the second judge is none.
    """
    said = second.filter(pc.is_in(second["answer"], pa.array(contracts.VALID))).select(["query", "doc", "score"]).to_pandas()
    both = v1.told.select(["query", "doc", "score"]).to_pandas().reset_index(names="row").merge(said, on=["query", "doc"], validate="one_to_one")
    first, other = both["score_x"].to_numpy(np.float64), both["score_y"].to_numpy(np.float64)
    split = to_arbiter(first, other)
    reason = [f"one judge said {_word(a)}, the second {_word(b)}" for a, b in zip(first[split], other[split], strict=True)]
    return by_query(rows_as(v1.sent.take(both["row"].to_numpy()[split]), "arbiter", reason))


def _word(score: float) -> str:
    return "unevaluable" if np.isnan(score) else f"{score:.0f}"
