"""What fusion adds to the dense top 20: the new candidates of v2. Source: spec, "v2: adding the missing routes"."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from lib import contracts, corpus
from lib.routing.v2 import LONG_1_5, LONG_6_20, SHORT, TRIAL
from lib.stats.judged import counted

JUDGES = {LONG_1_5: "LLM, long at 1-5", SHORT: "relevance model, short", LONG_6_20: "relevance model, long"}


def new_candidates(run: str | Path) -> pd.DataFrame:
    """One row a fact of `intents/v2`: its pairs; the kept queries and the pairs of each; the new candidates and its share of them.

    The new candidates (a trial pair counts once), the long ones, those outside the dense top 100, those of each judge, the trial.
    """
    run, stages, outside = Path(run), Counter(), 0
    lines = contracts.parts(run / "intents" / "v2")
    for line in lines:
        part = contracts.read_part("intents", run / "intents" / "v2" / line["part"], ["stage", "rank"])
        stages.update(counted(part["stage"]))
        outside += part.filter(pc.and_(pc.equal(part["rank"], 0), pc.not_equal(part["stage"], TRIAL))).num_rows
    queries, total = int(corpus.all_queries(run, ["keep"])["keep"].to_numpy().sum()), sum(stages[stage] for stage in JUDGES)
    facts = {
        "new candidates": total, "long": stages[LONG_1_5] + stages[LONG_6_20], "not in the dense top 100": outside,
        "long at fused 1-5, to the LLM": stages[LONG_1_5], "short, to the relevance model": stages[SHORT],
        "long at fused 6-20, to the relevance model": stages[LONG_6_20],
        f"of them to the LLM too, in the trial of {sum(line['trial_queries'] for line in lines)} queries": stages[TRIAL],
    }
    rows = [(fact, pairs, queries, pairs / queries if queries else None, total, pairs / total if total else None) for fact, pairs in facts.items()]
    return pd.DataFrame(rows, columns=["fact", "pairs", "queries", "pairs a query", "of", "share"])


def by_position(run: str | Path) -> dict[str, np.ndarray]:
    """The new candidates at each fused position: judge and kind -> int[20]. A trial pair counts as the relevance model's."""
    run, found = Path(run), {name: np.zeros(contracts.CUT, np.int64) for name in JUDGES.values()}
    for part in corpus.parts(run, "queries"):
        fused = contracts.places(contracts.read_part("fused", run / "fused" / f"{part.shard}.parquet", ["doc"])["doc"])
        sent = contracts.read_part("intents", run / "intents" / "v2" / f"{part.shard}.parquet", ["query", "doc", "stage"])
        query, doc, stage = sent["query"].to_numpy() - part.first, sent["doc"].to_numpy(), sent["stage"].to_numpy(zero_copy_only=False)
        position = (fused[query] == doc[:, None]).argmax(axis=1)
        for kind, name in JUDGES.items():
            found[name] += np.bincount(position[stage == kind], minlength=contracts.CUT)
    return found
