"""Routing and its tables once more, by loops over pairs and by data frames held whole: what `routing_measure` compares a small run with."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib import contracts, keys
from lib.contracts import CUT, NO_GAP, TOP, VALID
from lib.student.cuts import label_of

WORDS = ("query", "doc", "judge", "version", "stage")


def _frame(run: Path, table: str, folder: str) -> pd.DataFrame:
    return contracts.read(table, Path(run) / folder).to_pandas()


def _lists(run: Path, table: str, folder: str) -> np.ndarray:
    return contracts.places(contracts.read(table, Path(run) / folder, ["doc"])["doc"])[:, :CUT]


def routed(run: Path, config: dict, trial: set[int]) -> dict[str, set[tuple]]:
    """The pairs that v1, the gaps and v2 send, as WORDS, by set; the draws of a share or a round are not made here.

    trial: the queries of the trial; `student_on_long` is 1: every long pair but the source page is scored besides.
    """
    long = (contracts.read("documents", run / "documents", ["n_tokens"])["n_tokens"].to_numpy() > config["long_tokens"]).tolist()
    queries, dense, fused = _frame(run, "queries", "queries"), _lists(run, "hits", "hits/dense"), _lists(run, "fused", "fused")
    score = {(q, d): s for q, d, s in _frame(run, "rerank", "rerank")[["query", "doc", "score"]].itertuples(index=False)}
    sent: dict[str, set[tuple]] = {"v1": set(), "v2": set(), "v2_gap": set()}
    for query in np.flatnonzero(queries["keep"]).tolist():
        ranked, near = dense[query].tolist(), []
        seen = {-1, *ranked, queries["source_doc"][query]}
        for rank, doc in enumerate(ranked, 1):
            if doc < 0 or doc in ranked[: rank - 1]:
                continue
            if rank <= TOP or long[doc]:
                sent["v1"].add((query, doc, "llm", "v1", "dense_1_5" if rank <= TOP else "long"))
                if rank > TOP and doc != queries["source_doc"][query]:
                    sent["v1"].add((query, doc, "student", "v1", "long"))
            else:
                near.append((-score[query, doc], rank, doc))
                sent["v1"].add((query, doc, "student", "v1", "short"))
        sent["v1"] |= {(query, doc, "llm", "v1", "pick") for _, _, doc in sorted(near)[: config["picks"]]}
        for place, doc in enumerate(fused[query].tolist(), 1):
            if doc in seen:
                continue
            seen.add(doc)
            first = long[doc] and place <= TOP
            stage = "new_long_1_5" if first else "new_long_6_20" if long[doc] else "new_short"
            sent["v2"].add((query, doc, "llm" if first else "student", "v2", stage))
            if stage == "new_long_6_20" and query in trial:
                sent["v2"].add((query, doc, "llm", "v2", "trial"))
    listed = {(query, doc) for lists in (dense, fused) for query in np.flatnonzero(queries["keep"]).tolist() for doc in lists[query].tolist()}
    for name in ("v1", "source_page"):
        told = _frame(run, "answers", f"answers/{name}")
        for row in told[~told["answer"].isin(NO_GAP)].itertuples():
            if name == "v1" or (row.query, row.doc) in listed:
                sent["v2_gap"].add((row.query, row.doc, "llm", "v2 gap", row.stage))
    return sent


def intents(run: Path, name: str) -> set[tuple]:
    """The pairs of a set as they were written, as WORDS; AssertionError where one stands twice."""
    rows = list(_frame(run, "intents", f"intents/{name}")[list(WORDS)].itertuples(index=False, name=None))
    assert len(rows) == len(set(rows)), name
    return set(rows)


def label_mix(run: Path) -> dict[tuple, list[int]]:
    """(version, stage, judge) -> rows with 0, 1, 2 and null of the release."""
    rows = _frame(run, "labels", "labels")
    return {group: [int((of["label"] == label).sum()) for label in range(3)] + [int(of["label"].isna().sum())]
            for group, of in rows.groupby(["version", "stage", "judge"])}


def judged(run: Path) -> dict[tuple, tuple[int, int]]:
    """(version, stage, judge) -> pairs sent, and pairs with a valid reply or a score."""
    found: dict[tuple, tuple[int, int]] = {}
    for name in ("source_page", "v1", "v2_gap", "v2"):
        told = _frame(run, "answers", f"answers/{name}")
        for group, of in told.groupby(["version", "stage"]):
            found[*group, "llm"] = (len(of), int(of["answer"].isin(VALID).sum()))
    for name in ("v1", "v2"):
        sent = _frame(run, "intents", f"intents/{name}").query("judge == 'student'")
        scored = sent.merge(_frame(run, "scores", f"scores/{name}"), on=["query", "doc"])
        for stage, of in sent.groupby("stage"):
            found[name, stage, "student"] = (len(of), int((scored["stage"] == stage).sum()))
    return found


def overlap(run: Path) -> dict[str, tuple[int, np.ndarray]]:
    """By stage of the LLM's label: pairs with both, and the table of label and cut of those that are no training pair; every text is its own."""
    llm = pd.concat([_frame(run, "answers", f"answers/{name}") for name in ("source_page", "v1", "v2_gap", "v2")])
    llm = llm[llm["answer"].isin(VALID)].drop_duplicates(["query", "doc"])
    scores = pd.concat([_frame(run, "scores", f"scores/{name}") for name in ("v1", "v2")])
    both = scores.merge(llm, on=["query", "doc"], suffixes=(" student", ""), validate="one_to_one")
    trained = _frame(run, "examples", "examples").query("not held_out")
    known = set(keys.of_pairs(trained["query"].to_numpy(), trained["doc"].to_numpy()).tolist())
    both["cut"] = label_of(both["score student"].to_numpy())
    found = {}
    for stage, of in both.groupby("stage"):
        table = np.zeros((3, 3), np.int64)
        for query, doc, label, cut in of[["query", "doc", "score", "cut"]].itertuples(index=False):
            if not np.isnan(label) and (query << 32 | doc) not in known:
                table[int(label), cut] += 1
        found[stage] = (len(of), table)
    return found
