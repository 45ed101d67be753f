"""How far two judges agree on the labels of the same pairs.

Kappa after Cohen (1960, 1968), weights |i - j| or (i - j)^2 on the places of the labels. Alpha after Krippendorff
(Content Analysis, 2004, chapter 11) for two judges. Everything follows from the full table of labels, which is kept
whole: a label that neither gave has a row and a column of zeros.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

MEASURES = ("exact", "opposite", "kappa", "kappa_linear", "kappa_quadratic", "alpha_nominal", "alpha_ordinal")


class Agreement(NamedTuple):
    """`table` is int64[labels, labels], rows what `a` said and columns what `b` said; n is its sum.

    exact: share of equal labels; opposite: share of pairs with the first label against the last (0 against 2).
    A measure without a value is None, and `undefined` says why ("" where all have one). Beside n stand the pairs left
    out: `unevaluable` (one of the two labels is null) and, under the rule drop, `dropped`; under the rule clip,
    `clipped` pairs are within n. Together: n + unevaluable + dropped = the pairs given.
    """

    labels: tuple[int, ...]
    table: np.ndarray
    n: int
    unevaluable: int
    rule: str | None
    clipped: int
    dropped: int
    exact: float | None
    opposite: float | None
    kappa: float | None
    kappa_linear: float | None
    kappa_quadratic: float | None
    alpha_nominal: float | None
    alpha_ordinal: float | None
    undefined: str

    def row_shares(self) -> list[list[float] | None]:
        """Each row of the table as shares of itself; None for a label that `a` never gave."""
        return [(row / row.sum()).tolist() if row.sum() else None for row in self.table]

    def as_json(self) -> dict:
        """Plain values for a strict JSON file: null where there is no value, never NaN."""
        return self._asdict() | {"labels": list(self.labels), "table": self.table.tolist(), "row_shares": self.row_shares()}


def agreement(a, b, labels: Sequence[int] = (0, 1, 2), rule: str | None = None) -> Agreement:
    """Compare the labels that two judges gave to the same pairs, in the same order.

    a, b: numbers[n], null (None, NaN, pd.NA) where the judge found the query unevaluable; labels: all there are,
    in their order. A value that is none of them raises ValueError, unless `rule` says what becomes of it: "clip" takes
    the nearest end of the labels, "drop" leaves the pair out. An undefined measure is None (one label only, or no pairs).
    """
    if rule not in (None, "clip", "drop"):
        raise ValueError(f"the rule for labels out of range is {rule!r}; it is clip, drop or None, which refuses them")
    labels = tuple(labels)
    if len(labels) < 2 or list(labels) != sorted(set(labels)):
        raise ValueError(f"the labels {labels} are no ascending list of at least two labels")
    a, b = _values(a), _values(b)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} labels and {len(b)} labels are not of the same pairs; give one of each a pair")
    null = np.isnan(a) | np.isnan(b)
    clipped = dropped = 0
    strange = [~np.isnan(values) & ~np.isin(values, labels) for values in (a, b)]
    if rule is None and (strange[0] | strange[1]).any():
        values = np.concatenate([a[strange[0]], b[strange[1]]])
        raise ValueError(f"{len(values)} labels are none of {labels}, such as {values[0]:g}; name the rule clip or drop, or mend them")
    if rule == "clip":
        clipped = int(((strange[0] | strange[1]) & ~null).sum())
        a, b = (np.clip(values, labels[0], labels[-1]) for values in (a, b))
        between = np.concatenate([values[~np.isnan(values) & ~np.isin(values, labels)] for values in (a, b)])
        if len(between):
            raise ValueError(f"{len(between)} labels lie between the labels {labels}, such as {between[0]:g}; they cannot be clipped, "
                             "name the rule drop")
    kept = ~null
    if rule == "drop":
        kept &= ~strange[0] & ~strange[1]
        dropped = int((~null & ~kept).sum())
    places = [np.searchsorted(labels, values[kept]) for values in (a, b)]
    table = np.bincount(places[0] * len(labels) + places[1], minlength=len(labels) ** 2).reshape(len(labels), len(labels))
    return of_table(table, labels, int(null.sum()), rule, clipped, dropped)


def of_table(table: np.ndarray, labels: Sequence[int] = (0, 1, 2), unevaluable: int = 0, rule: str | None = None,
             clipped: int = 0, dropped: int = 0) -> Agreement:
    """The measures of a table of counts, as one that was summed over shards."""
    table = np.asarray(table, dtype=np.int64)
    k, n = len(labels), int(table.sum())
    found: dict[str, float | None] = dict.fromkeys(MEASURES)
    undefined = "there are no pairs"
    if n:
        undefined = ""
        share, i = table / n, np.arange(k)
        apart = np.abs(i[:, None] - i)
        chance = np.outer(share.sum(axis=1), share.sum(axis=0))
        found["exact"], found["opposite"] = np.trace(table) / n, (table[0, -1] + table[-1, 0]) / n
        weights = {"kappa": apart > 0, "kappa_linear": apart, "kappa_quadratic": apart**2}
        # both judges together: how often each label, and each combination of two, in both orders
        often, both = (table.sum(axis=0) + table.sum(axis=1)).astype(np.float64), (table + table.T).astype(np.float64)
        random = (np.outer(often, often) - np.diag(often)) / (2 * n - 1)
        distance = {"alpha_nominal": apart > 0, "alpha_ordinal": _ordinal(often)}
        only = [label for label, count in zip(labels, often, strict=True) if count]
        if len(only) == 1:
            undefined = f"both give all pairs (n = {n:,}) the one label {only[0]}, so there is no disagreement by chance"
        else:
            found |= {name: 1 - (weight * share).sum() / (weight * chance).sum() for name, weight in weights.items()}
            found |= {name: 1 - (weight * both).sum() / (weight * random).sum() for name, weight in distance.items()}
    return Agreement(tuple(labels), table, n, unevaluable, rule, clipped, dropped,
                     **{name: None if value is None else float(value) for name, value in found.items()}, undefined=undefined)


def _ordinal(often: np.ndarray) -> np.ndarray:
    """Squared ordinal distance: how many labels lie from one to the other, each end counted half."""
    below = np.cumsum(often) - often / 2
    return (below[:, None] - below) ** 2


def _values(labels) -> np.ndarray:
    """float64[n], NaN for null; text and truth values are no labels."""
    column = pd.Series(labels)
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind not in ("integer", "floating", "mixed-integer-float", "empty"):
        raise ValueError(f"labels are numbers or null, and these are {kind}, such as {column.dropna().iloc[0]!r}")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def measures_table(found: Mapping[tuple[str, ...], Agreement], names: Sequence[str]) -> pd.DataFrame:
    """One row a comparison, named by its key under `names`: n, unevaluable, every measure, and why one is missing.

    Where a rule for labels out of range was named for one of them, the rule and the pairs it clipped and dropped stand before.
    """
    ruled, rows = any(one.rule for one in found.values()), []
    for key, one in found.items():
        named = dict(zip(names, key, strict=True)) | {"n": one.n, "unevaluable": one.unevaluable}
        if ruled:
            named |= {"rule": one.rule or "refuse", "clipped": one.clipped, "dropped": one.dropped}
        titles = {name: name.replace("_", " ") for name in MEASURES} | {"opposite": f"{one.labels[0]} against {one.labels[-1]}"}
        rows.append(named | {title: getattr(one, name) for name, title in titles.items()} | {"undefined": one.undefined})
    return pd.DataFrame(rows)


def labels_table(found: Mapping[tuple[str, ...], Agreement], names: Sequence[str]) -> pd.DataFrame:
    """The full tables: one row a comparison and label of `a`, with its n, the counts by label of `b`, and the row's shares."""
    rows = []
    for key, one in found.items():
        for label, counts, shares in zip(one.labels, one.table, one.row_shares(), strict=True):
            rows.append(dict(zip(names, key, strict=True)) | {"label": label, "n": int(counts.sum())}
                        | {str(other): int(count) for other, count in zip(one.labels, counts, strict=True)}
                        | {f"share {other}": share for other, share in zip(one.labels, shares or [None] * len(one.labels), strict=True)})
    return pd.DataFrame(rows)
