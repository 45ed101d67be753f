"""How documents, hops, origins and votes are distributed over the questions of expanded qrels.

Each table accounts for every input: its parts sum to the questions, the documents or the votes that it was made of.
Source: spec/qrels, "Figures".
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from lib import buckets
from lib.qrels import charts, pools

ORIGINS = ("judged", "exact", "near")
VOTES = (*pools.VOTES, "none")


def _sums_to(table: pd.DataFrame, column: str, whole: int) -> None:
    assert table[column].sum() == whole, f"{column} sums to {table[column].sum()}, not to the {whole} it was made of"


def documents(rows: list[dict]) -> pd.DataFrame:
    """One row a number of documents: questions that have so many before and after the expansion.

    Single numbers to 20, then up to each full ten, and from 100 on each full hundred: low is in the bucket, high is not.
    """
    before = [sum(document["origin"] == "judged" for document in row["documents"]) for row in rows]
    after = [len(row["documents"]) for row in rows]
    most = max(after)
    edges = np.unique([*range(min(most, 20) + 2), *(10 * np.arange(3, min(most, 100) // 10 + 2) if most > 20 else ()),
                       *(100 * np.arange(2, most // 100 + 2) if most > 100 else ())])
    table = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "before": buckets.count(before, edges), "after": buckets.count(after, edges)})
    _sums_to(table, "before", len(rows))
    _sums_to(table, "after", len(rows))
    return table


def hops(rows: list[dict]) -> pd.DataFrame:
    """One row a number of hops: questions that have so many hops, so many live ones, and so many with a document."""
    counted = {
        "hops": [len(row["hops"]) for row in rows],
        "live": [sum(hop["live"] for hop in row["hops"]) for row in rows],
        "supported": [len({hop for document in row["documents"] for hop in document["hops"]}) for row in rows],
    }
    edges = np.arange(max(counted["hops"]) + 2)
    table = pd.DataFrame({"number": edges[:-1]} | {name: buckets.count(values, edges) for name, values in counted.items()})
    for name in counted:
        _sums_to(table, name, len(rows))
    return table


def origins(rows: list[dict]) -> pd.DataFrame:
    """One row an origin of documents: judged in the pool, an exact copy, an accepted near copy; the share is of all documents."""
    found = Counter(document["origin"] for row in rows for document in row["documents"])
    return _shares("origin", "documents", ORIGINS, found, sum(len(row["documents"]) for row in rows))


def votes(rows: list[dict]) -> pd.DataFrame:
    """One row a vote of the reviewer; none are pool entries without a vote, the blanks. An entry with two votes counts twice."""
    found = Counter()
    for row in rows:
        found.update(row["votes"])
        assert sum(row["votes"].values()) >= row["pairs"], f"question {row['qid']} has {row['pairs']} entries, and fewer votes and blanks"
    return _shares("vote", "votes and blanks", VOTES, found, sum(sum(row["votes"].values()) for row in rows))


def _shares(kind: str, what: str, names: tuple[str, ...], found: Counter, whole: int) -> pd.DataFrame:
    counts = [found[name] for name in names]
    table = pd.DataFrame({kind: names, what: counts, "share": pd.array([count / whole if whole else None for count in counts], dtype="Float64")})
    _sums_to(table, what, whole)
    return table


TABLES = {"documents_per_question": documents, "hops_per_question": hops, "origins": origins, "votes": votes}


def write(source: Path, outdir: Path, figwidth: float = charts.WIDTH, png: bool = False) -> list[str]:
    """Write a CSV and a figure for each table of this page into `outdir`, and `stats.json`: what they were made from."""
    return charts.write("stats", TABLES, source, outdir, figwidth, png)
