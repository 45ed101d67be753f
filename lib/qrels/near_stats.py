"""What the expansion over duplicates added: gain, near copies accepted by Jaccard, rounds to closure, exact classes.

Each table accounts for every input: its parts sum to the questions, the near copies or the classes that it was made of.
Source: spec/qrels, "Figures".
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from lib import buckets
from lib.qrels import charts

STEP = 20  # buckets of Jaccard are a twentieth wide
USUAL = 14  # and begin at 14/20, where near duplicates do


def gain(rows: list[dict]) -> pd.DataFrame:
    """One row a number of documents that the expansion added: questions, and the share of questions with at most so many."""
    added = Counter(sum(document["origin"] != "judged" for document in row["documents"]) for row in rows)
    table = pd.DataFrame({"added": sorted(added), "questions": [added[number] for number in sorted(added)]})
    table["share at most"] = table["questions"].cumsum() / len(rows)
    assert table["questions"].sum() == len(rows) and table["share at most"].iloc[-1] == 1
    return table


def acceptance(rows: list[dict]) -> pd.DataFrame:
    """One row a bucket of Jaccard: near copies judged and accepted, the share of the judged, and its 95% Wilson interval.

    Buckets are half-open with float32 edges, the last one closed; they begin at 0.7, or lower where a copy does. A copy's
    Jaccard is the largest it has with an included document. The share and its interval are missing where nothing was judged.
    """
    near = [copy for row in rows for copy in row["near"]]
    jaccard = np.array([copy["jaccard"] for copy in near], np.float32)
    accepted = np.array([bool(copy["hops"]) for copy in near], bool)
    edges = np.arange(STEP + 1) / STEP
    judged, yes = buckets.count(jaccard, edges), buckets.count(jaccard[accepted], edges)
    first = min([USUAL, *np.flatnonzero(judged)])
    edges, judged, yes = edges[first:], judged[first:], yes[first:]
    assert judged.sum() == len(near) and yes.sum() == accepted.sum()
    shares = [_share(int(k), int(n)) for k, n in zip(yes, judged, strict=True)]
    columns = {name: pd.array(values, dtype="Float64") for name, values in zip(("share", "low", "high"), zip(*shares, strict=True), strict=True)}
    return pd.DataFrame({"jaccard": buckets.names(edges), "judged": judged, "accepted": yes} | columns)


def _share(k: int, n: int) -> tuple[float | None, float | None, float | None]:
    """k of n, and its 95% Wilson interval."""
    return (k / n, *binomtest(k, n).proportion_ci(method="wilson")) if n else (None, None, None)


def rounds(rows: list[dict]) -> pd.DataFrame:
    """One row a number of rounds to closure: questions; 0 where nothing but exact copies was added."""
    found = Counter(row["rounds"] for row in rows)
    table = pd.DataFrame({"rounds": range(max(found) + 1), "questions": [found[number] for number in range(max(found) + 1)]})
    assert table["questions"].sum() == len(rows)
    return table


def classes(rows: list[dict]) -> pd.DataFrame:
    """One row a size of exact classes: how many classes with a released document have it; a class of two questions counts for each."""
    found = Counter(one["size"] for row in rows for one in row["classes"])
    table = pd.DataFrame({"size": sorted(found), "classes": [found[size] for size in sorted(found)]}, dtype="int64")
    assert table["classes"].sum() == sum(len(row["classes"]) for row in rows)
    return table


TABLES = {"expansion_gain": gain, "near_acceptance": acceptance, "rounds_to_closure": rounds, "exact_classes": classes}


def write(source: Path, outdir: Path, figwidth: float = charts.WIDTH, png: bool = False) -> list[str]:
    """Write a CSV and a figure for each table of this page into `outdir`, and `near-dup.json`: what they were made from."""
    return charts.write("near-dup", TABLES, source, outdir, figwidth, png)
