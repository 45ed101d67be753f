"""The gate before labelling: scores must be those that training wrote for the same pairs.

Pearson alone would pass scores x 0.8 and a lost bias, so slope, largest difference and labels are held too;
and the same measures must refuse a control in which every pair sees its neighbour, else they prove nothing.
Source: spec, "Self-test gate".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lib.student.cuts import distance, label_of

PEARSON = 0.999  # at least
DIFFERENCE = 0.05  # at most
SLOPE = 0.01  # at most so far from 1
NEAR = 0.02  # so close to a cut a label may change,
CHANGED = 50  # for at most one pair in so many (2%)
ROWS = 8  # at least
ALONE = 1  # rows with a single pair, at most
_DIGITS = 6  # limits are compared at this precision, which float32 carries: a reference of 0.48 is within 0.02 of 0.5


class GateFailed(ValueError):
    """The scores are not those of training; the sentence names every measure that failed, its value and its limit."""


class GateReport(NamedTuple):
    """What an open gate measured."""

    n: int  # pairs
    rows: int  # packed rows
    alone: int  # rows with a single pair
    pearson: float
    max_difference: float  # largest |score - reference|
    slope: float  # of the line of scores over reference, by least squares
    changed: int  # labels that differ, all of them where the reference lies within 0.02 of a cut
    changed_away: int  # labels that differ elsewhere; 0 in an open gate


def check(reference: np.ndarray, scores: np.ndarray, rows: Sequence[int]) -> GateReport:
    """Open the gate, or raise GateFailed.

    reference, scores: float[n], what training and the labelling run give for the same pairs, in one order;
    rows: the number of pairs in each packed row. It opens only if both are finite and counted (n scores, rows that
    sum to n), there are at least 8 rows and at most one with a single pair, Pearson >= 0.999, max |difference| <= 0.05,
    the slope lies within 1 +- 0.01, and labels change only where the reference lies within 0.02 of a cut, for at
    most 2% of the pairs. A reference without variation has no Pearson and is refused.
    """
    rows = np.asarray(rows, np.int64).ravel()
    faults = _row_faults(rows)
    uncounted = _uncounted(reference, scores)
    if not uncounted and rows.sum() != np.size(reference):
        faults.append(f"the rows hold {rows.sum()} pairs, there are {np.size(reference)}")
    if uncounted:
        raise _failed(uncounted + faults)
    report = measure(reference, scores, rows)
    faults = measure_faults(report) + faults
    if faults:
        raise _failed(faults)
    return report


def check_row(reference: np.ndarray, scores: np.ndarray) -> float:
    """The largest difference in the row that was filled to the limit by repeating pairs, where they all must agree.

    reference, scores: float[n] for the pairs of that one row. GateFailed where a score is missing or not finite, differs
    by more than 0.05, or changes a label away from a cut; one row may hold too few distinct pairs for a Pearson.
    """
    uncounted = _uncounted(reference, scores)
    if uncounted:
        raise _failed(uncounted, "the full row")
    report = measure(reference, scores, np.array([len(scores)]))
    faults = [*_difference_fault(report), *_away_fault(report)]
    if faults:
        raise _failed(faults, "the full row")
    return report.max_difference


def check_control(reference: np.ndarray, contaminated: np.ndarray) -> GateReport:
    """What the contaminated control measures; GateFailed where it would pass, since then the gate proves nothing."""
    uncounted = _uncounted(reference, contaminated)
    if uncounted:
        raise _failed(uncounted, "the control")
    report = measure(reference, contaminated, np.array([len(contaminated)]))
    if not measure_faults(report):
        raise GateFailed(
            f"the gate proves nothing: scores for which every pair sees its neighbour pass it too (Pearson {report.pearson:.5f}, max "
            f"|difference| {report.max_difference:.4f} over {report.n} pairs), so this checkpoint hardly looks at the text; train it further"
        )
    return report


def measure(reference: np.ndarray, scores: np.ndarray, rows: np.ndarray) -> GateReport:
    """All measures of finite, counted scores; Pearson and slope are NaN where the reference does not vary."""
    reference, scores = np.asarray(reference, np.float64), np.asarray(scores, np.float64)
    x, y = reference - reference.mean(), scores - scores.mean()
    varies, both = np.ptp(reference) > 0, np.ptp(reference) > 0 and np.ptp(scores) > 0
    changed = label_of(reference) != label_of(scores)
    away = changed & (np.round(distance(reference), _DIGITS) > NEAR)
    return GateReport(
        n=len(reference), rows=len(rows), alone=int((rows == 1).sum()),
        pearson=float(x @ y / np.sqrt((x @ x) * (y @ y))) if both else float("nan"),
        max_difference=float(np.abs(scores - reference).max()),
        slope=float(x @ y / (x @ x)) if varies else float("nan"),
        changed=int(changed.sum()), changed_away=int(away.sum()),
    )


def measure_faults(report: GateReport) -> list[str]:
    """The measures that lie outside their limits, each with value and limit."""
    if np.isnan(report.slope):
        return ["the reference does not vary, so nothing can be compared", *_difference_fault(report), *_away_fault(report)]
    found = []
    if not report.pearson >= PEARSON:
        found.append(f"Pearson is {report.pearson:.5f}, at least {PEARSON}")
    found += _difference_fault(report)
    if not round(abs(report.slope - 1), _DIGITS) <= SLOPE:
        found.append(f"the slope is {report.slope:.4f}, within 1 +- {SLOPE}")
    found += _away_fault(report)
    if report.changed * CHANGED > report.n:
        found.append(f"{report.changed} of {report.n} labels change, at most {1 / CHANGED:.0%}")
    return found


def _difference_fault(report: GateReport) -> list[str]:
    far = round(report.max_difference, _DIGITS) > DIFFERENCE
    return [f"max |difference| is {report.max_difference:.4f}, at most {DIFFERENCE}"] if far else []


def _away_fault(report: GateReport) -> list[str]:
    return [f"{report.changed_away} labels change farther than {NEAR} from a cut, none may"] if report.changed_away else []


def _row_faults(rows: np.ndarray) -> list[str]:
    found, alone = [], int((rows == 1).sum())
    if len(rows) < ROWS:
        found.append(f"there are {len(rows)} packed rows, at least {ROWS}")
    if alone > ALONE:
        found.append(f"{alone} rows hold a single pair, at most {ALONE}")
    if (rows < 1).any():
        found.append(f"{int((rows < 1).sum())} rows hold no pair, none may")
    return found


def _uncounted(reference: np.ndarray, scores: np.ndarray) -> list[str]:
    reference, scores = np.asarray(reference), np.asarray(scores)
    if reference.ndim != 1 or scores.shape != reference.shape or not len(reference):
        return [f"there are {list(scores.shape)} scores for {list(reference.shape)} pairs, one a pair"]
    found = []
    for name, values in (("reference values", reference), ("scores", scores)):
        bad = int((~np.isfinite(values.astype(np.float64))).sum())
        if bad:
            found.append(f"{bad} of {len(values)} {name} are not finite, none may be")
    return found


def _failed(faults: list[str], where: str = "the gate") -> GateFailed:
    way_out = "compare weights, tokenizer, truncation and packing with the checkpoint's, and its scores with heldout.parquet"
    return GateFailed(f"{where} stays shut: {'; '.join(faults)}; {way_out}")
