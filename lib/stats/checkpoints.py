"""How well each checkpoint of the relevance model repeats the judge on the held-out pairs. Source: spec, "The 8B relevance model".

Everything is read from `student/<arm>/step-*/heldout.parquet`. The used checkpoint is the one that labels the data.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.stats.agreement import Agreement, agreement
from lib.stats.bootstrap import Estimate
from lib.stats.within_query import Undefined, measures, within_query_difference, within_query_interval
from lib.student import checkpoints
from lib.student.cuts import label_of

LABELS = (0, 1, 2)


class Heldout(NamedTuple):
    """The held-out pairs of one checkpoint, by query, then document; label is the judge's, cut the prediction's."""

    arm: str
    step: int
    used: bool
    query: np.ndarray
    doc: np.ndarray
    label: np.ndarray
    prediction: np.ndarray

    @property
    def agreement(self) -> Agreement:
        return agreement(self.label, label_of(self.prediction), LABELS)


def load(run: str | Path, arm: str, step: int = 0) -> list[Heldout]:
    """Every checkpoint of every arm, the labelling arm first, then by name and step.

    arm, step: the checkpoint that labels; step 0 is the arm's last. ValueError names what there is where it is missing.
    """
    used = checkpoints.find(run, arm, step)
    names = sorted(checkpoints.arms(run), key=lambda name: (name != arm, name))
    return [_read(checkpoints.folder(run, name, at), name, at, used) for name in names for at in checkpoints.steps(run, name)]


def _read(folder: Path, arm: str, step: int, used: Path) -> Heldout:
    columns = checkpoints.heldout(folder).to_pandas()
    return Heldout(arm, step, folder == used, *(columns[name].to_numpy() for name in ("query", "doc", "label", "prediction")))


def compared(found: list[Heldout]) -> list[Heldout]:
    """One checkpoint an arm: the used one, and of the others the one at its step, or the last where there is none."""
    used = next(one for one in found if one.used)
    arms = {one.arm: one for one in found}  # the last of an arm
    arms |= {one.arm: one for one in found if one.step == used.step}
    return list(arms.values())


def checkpoint_table(found: list[Heldout], seed: int = 0) -> pd.DataFrame:
    """One row a checkpoint: within-query R2 with its 95% interval over queries, exact agreement at the cuts, the share of
    LLM 2 that stays 2, flips (0 against 2, of all pairs), pairs, those with LLM 2, queries, and which one is used.

    A measure without a value is missing, and the last column says why.
    """
    rows = []
    for one in found:
        value, why = _interval(one, seed)
        both = one.agreement
        kept = both.row_shares()[-1]
        why = "; ".join(filter(None, [why, "" if kept else "no pair has LLM label 2"]))
        rows.append({
            "arm": one.arm, "step": one.step, "within-query R2": value.value, "low": value.low, "high": value.high, "exact": both.exact,
            "LLM 2 kept": kept[-1] if kept else None, "flips": both.opposite, "pairs": both.n, "LLM 2 pairs": int(both.table[-1].sum()),
            "queries": len(np.unique(one.query)), "used": "used" if one.used else "", "undefined": why,
        })  # fmt: skip
    return pd.DataFrame(rows)


def spread_table(found: list[Heldout]) -> pd.DataFrame:
    """For one checkpoint an arm (`compared`), one row a label of the LLM: its pairs, and the shares of the cut labels in them.

    The shares of a label without pairs are missing.
    """
    rows = []
    for one in compared(found):
        both = one.agreement
        for label, counts, shares in zip(LABELS, both.table, both.row_shares(), strict=True):
            rows.append({"arm": one.arm, "step": one.step, "LLM label": label, "pairs": int(counts.sum())}
                        | {str(cut): share for cut, share in zip(LABELS, shares or [None] * len(LABELS), strict=True)})
    return pd.DataFrame(rows)


def heldout_table(found: list[Heldout]) -> pd.DataFrame:
    """For one checkpoint an arm (`compared`): the held-out pairs, queries and label mix, and the R2s and MSE of `measures`."""
    rows = []
    for one in compared(found):
        fit = measures(one.query, one.label, one.prediction)
        mix = {str(label): (one.label == label).mean() if fit.pairs else None for label in LABELS}
        rows.append({"arm": one.arm, "step": one.step, "pairs": fit.pairs, "queries": fit.queries, **mix, "between-query share": fit.between,
                     "within-query R2": fit.within, "pooled R2": fit.pooled, "uncentred R2": fit.uncentred, "MSE": fit.mse,
                     "undefined": fit.undefined})
    return pd.DataFrame(rows)


def arm_table(found: list[Heldout], seed: int = 0) -> pd.DataFrame:
    """The arms side by side (`compared`), then each difference to the labelling arm, by a paired bootstrap over the queries.

    ValueError where two arms were not scored on the same pairs with the same labels.
    """
    first, *others = sorted(compared(found), key=lambda one: not one.used)
    rows = [(one.arm, one.step, *_interval(one, seed)) for one in (first, *others)]
    for other in others:
        for name in ("query", "doc", "label"):
            if not np.array_equal(getattr(first, name), getattr(other, name)):
                raise ValueError(f"the held-out pairs of the arms {first.arm} and {other.arm} differ in their {name}; "
                                 "train both on the same examples")
        step = first.step if first.step == other.step else None
        rows.append((f"{first.arm} less {other.arm}", step, *_difference(first, other, seed)))
    columns = ["arm", "step", "within-query R2", "low", "high", "queries", "undefined"]
    return pd.DataFrame([(arm, step, *value, why) for arm, step, value, why in rows], columns=columns).astype({"step": "Int64"})


def _interval(one: Heldout, seed: int) -> tuple[Estimate, str]:
    return _or_why(within_query_interval, one, one.prediction, seed=seed)


def _difference(first: Heldout, second: Heldout, seed: int) -> tuple[Estimate, str]:
    return _or_why(within_query_difference, first, first.prediction, second.prediction, seed=seed)


def _or_why(estimate, one: Heldout, *predictions: np.ndarray, seed: int) -> tuple[Estimate, str]:
    """The estimate, or no value and the reason."""
    nothing = float("nan")
    try:
        value = estimate(one.query, one.label, *predictions, seed=seed)
    except Undefined as error:
        return Estimate(nothing, nothing, nothing, len(np.unique(one.query))), str(error)
    return value, "the interval: too many draws of the queries have no two different labels in one of them" if np.isnan(value.low) else ""
