"""Who judged which pairs: sent, judged, withdrawn and gaps of every stage."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, keys
from lib.student import scored as scores

VERSIONS = ("v1", "v2 gap", "v2")
CANDIDATES = {  # the stages in words, in the order of the tables
    "source_page": "the query's own source page, before retrieval",
    "dense_1_5": "dense ranks 1-5",
    "pick": "reranker's picks in ranks 6-20",
    "long": "long documents in ranks 6-20",
    "short": "short documents in ranks 6-20",
    "new_long_1_5": "new candidates, long, fused positions 1-5",
    "new_short": "new candidates, short",
    "new_long_6_20": "new candidates, long, fused positions 6-20",
    "trial": "trial on new candidates, long, fused positions 6-20",
}


def place(row: tuple[str, str, str]) -> tuple:
    """Sorts rows of tables by version, stage and judge; the trial stands last."""
    version, stage, judge = row
    return VERSIONS.index(version), list(CANDIDATES).index(stage), judge


def counted(column: pa.ChunkedArray) -> dict:
    """How often each value stands in a column."""
    return {row["values"]: row["counts"] for row in column.value_counts().to_pylist()}


def routed(run: str | Path, intents: str = "v1") -> pd.DataFrame:
    """One row a stage and judge of a set of intents: pairs written, withdrawn ones among them, queries."""
    frames = []
    for line in contracts.parts(Path(run) / "intents" / intents):
        part = contracts.read_part("intents", Path(run) / "intents" / intents / line["part"], ["stage", "judge", "query", "withdrawn"])
        counts = part.group_by(["stage", "judge"]).aggregate([([], "count_all"), ("withdrawn", "sum"), ("query", "count_distinct")])
        frames.append(counts.to_pandas())
    found = pd.concat(frames).groupby(["stage", "judge"], as_index=False).sum()  # a query stands in one part only
    found.columns = ["stage", "judge", "pairs", "withdrawn", "queries"]
    return found.astype({"pairs": int, "withdrawn": int, "queries": int})


def routed_by_rank(run: str | Path, intents: str = "v1") -> dict[str, np.ndarray]:
    """What decides on the pairs of each dense rank: name -> int[20]. A pair counts once, so the ranks sum to the pairs."""
    names = {"dense_1_5": "LLM, rank 1-5", "pick": "LLM, pick", "long": "LLM, long", "short": "student"}
    found = {name: np.zeros(contracts.CUT, dtype=np.int64) for name in (*names.values(), "source page")}
    for line in contracts.parts(Path(run) / "intents" / intents):
        columns = ["query", "doc", "stage", "withdrawn", "rank"]
        part = contracts.read_part("intents", Path(run) / "intents" / intents / line["part"], columns).to_pandas()
        # the llm row of a pair stands before the student's: a pick counts as a pick, a withdrawn pair as the source page
        part = part.drop_duplicates(["query", "doc"])
        decided = part["stage"].map(names).where(~part["withdrawn"], "source page")
        for name, count in found.items():
            count += np.bincount(part["rank"][decided == name] - 1, minlength=contracts.CUT)
    return found


def student(run: str | Path, version: str, labelled: bool = True) -> pd.DataFrame:
    """One row a stage of the relevance model in v1 or v2: pairs sent to it, and scored (missing before they are `labelled`).

    A score counts for the stage in which its pair was sent; a pair that is scored twice, as none should be, counts twice.
    """
    run, sent, scored = Path(run), Counter(), Counter()
    for line in contracts.parts(run / "intents" / version):
        part = contracts.read_part("intents", run / "intents" / version / line["part"], ["query", "doc", "stage", "judge"], coded=["stage", "judge"])
        part = part.filter(pc.equal(part["judge"], "student"))
        sent.update(counted(part["stage"]))
        if labelled:
            found, asked = np.sort(keys.of(scores.read(run, version, Path(line["part"]).stem, ["query", "doc"]))), keys.of(part)
            times = np.searchsorted(found, asked, side="right") - np.searchsorted(found, asked)
            scored.update(counted(part["stage"].take(pa.array(np.repeat(np.arange(len(times)), times)))))
    rows = [{"version": version, "stage": stage, "sent": sent[stage], "judged": scored[stage] if labelled else None} for stage in sorted(sent)]
    return pd.DataFrame(rows, columns=["version", "stage", "sent", "judged"])


def who_judged(ledger: pd.DataFrame, *students: pd.DataFrame) -> pd.DataFrame:
    """One row a version, stage and judge over all rounds: the candidates in words, sent, judged, its share of sent, withdrawn, gaps.

    ledger: of `lib.judge.ledger`, one row a version, stage and round. students: of `student`; pairs that are sent
    and not scored yet have a missing value, not 0.
    """
    llm = ledger.groupby(["version", "stage"], sort=False, as_index=False)[["sent", "valid", "withdrawn", "gaps"]].sum()
    llm = llm.rename(columns={"valid": "judged"}).assign(judge="llm")
    both = pd.concat([llm, *(rows.assign(judge="student") for rows in students)], ignore_index=True)
    counts = ["sent", "judged", "withdrawn", "gaps"]
    both = both.reindex(columns=["version", "stage", "judge", *counts]).astype(dict.fromkeys(counts, "Int64"))
    order = sorted(both.index, key=lambda i: place(tuple(both.loc[i, ["version", "stage", "judge"]])))
    both = both.loc[order].reset_index(drop=True)
    both.insert(5, "share", both["judged"] / both["sent"].where(both["sent"] > 0))
    both.insert(2, "candidates", both["stage"].map(CANDIDATES))
    return both
