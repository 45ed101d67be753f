"""Who judged which pairs: sent, judged, withdrawn and gaps of every stage."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib import contracts


def routed(run: str | Path, intents: str = "v1") -> pd.DataFrame:
    """One row a stage and judge of a set of intents: pairs written, withdrawn ones among them, queries."""
    frames = []
    for line in contracts.parts(Path(run) / "intents" / intents):
        part = contracts.read_part("intents", Path(run) / "intents" / intents / line["part"], ["stage", "judge", "query", "withdrawn"])
        frames.append(part.group_by(["stage", "judge"]).aggregate([([], "count_all"), ("withdrawn", "sum"), ("query", "count_distinct")]).to_pandas())
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


def who_judged(ledger: pd.DataFrame, student: pd.DataFrame) -> pd.DataFrame:
    """One row a version, stage and judge over all rounds: sent, judged, its share of sent, withdrawn, gaps.

    ledger: of `lib.judge.ledger`, one row a version, stage and round. student: of `routed`; its pairs are
    sent and not yet judged until the relevance model has scored them (a missing value, not 0).
    """
    llm = ledger.groupby(["version", "stage"], sort=False, as_index=False)[["sent", "valid", "withdrawn", "gaps"]].sum()
    llm = llm.rename(columns={"valid": "judged"}).assign(judge="llm", share=lambda f: f["judged"] / f["sent"].where(f["sent"] > 0))
    rows = student[student["judge"] == "student"]
    later = pd.DataFrame({"version": "v1", "stage": rows["stage"], "judge": "student", "sent": rows["pairs"]})
    columns = ["version", "stage", "judge", "sent", "judged", "share", "withdrawn", "gaps"]
    both = pd.concat([llm, later], ignore_index=True).reindex(columns=columns)
    return both.astype({name: "Int64" for name in ("sent", "judged", "withdrawn", "gaps")})
