"""Shares of the labels in a run's release, read one part at a time."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from lib import contracts, corpus
from lib.stats.bootstrap import mean_interval

MIX = ("0", "1", "2", "unevaluable")


def label_mix(run: str | Path) -> pd.DataFrame:
    """One row a version, stage and judge: its rows, and the share of each label in them (unevaluable is a row)."""
    counts: Counter = Counter()
    for line in contracts.parts(Path(run) / "labels"):
        part = contracts.read_part("labels", Path(run) / "labels" / line["part"], ["version", "stage", "judge", "label"])
        found = part.group_by(part.column_names).aggregate([([], "count_all")]).to_pylist()
        counts.update({(row["version"], row["stage"], row["judge"], row["label"]): row["count_all"] for row in found})
    rows = []
    for group in sorted({key[:3] for key in counts}):
        by_label = [counts[(*group, label)] for label in (0, 1, 2, None)]
        total = sum(by_label)
        rows.append(dict(zip(("version", "stage", "judge"), group, strict=True)) | {"rows": total}
                    | {name: count / total for name, count in zip(MIX, by_label, strict=True)})
    return pd.DataFrame(rows, columns=["version", "stage", "judge", "rows", *MIX])


def rank_labels(run: str | Path, stage: str = "dense_1_5") -> pd.DataFrame:
    """The v1 labels of a stage with their dense rank: query, rank, label (null where unevaluable).

    Withdrawn pairs and gaps have no row. A label whose pair has no intent raises ValueError.
    """
    run, found = Path(run), []
    docids = corpus.all_documents(run, ["docid"])["docid"].combine_chunks()
    for part in corpus.parts(run, "queries"):
        qids = corpus.queries(run, part.shard, ["qid"])["qid"].combine_chunks()
        sent = contracts.read_part("intents", run / "intents" / "v1" / f"{part.shard}.parquet", ["query", "doc", "stage", "judge", "rank"]).to_pandas()
        sent = sent[(sent["stage"] == stage) & (sent["judge"] == "llm")]
        sent["qid"] = qids.take(pa.array(sent["query"] - part.first)).to_pylist()
        sent["docid"] = docids.take(pa.array(sent["doc"])).to_pylist()
        if sent.empty:
            continue
        rows = contracts.read_part("labels", run / "labels" / f"{part.shard}.parquet", ["qid", "docid", "label", "version", "stage"]).to_pandas()
        rows = rows[(rows["stage"] == stage) & (rows["version"] == "v1")]
        joined = rows.merge(sent, on=["qid", "docid"], validate="one_to_one")
        if len(joined) != len(rows):
            raise ValueError(f"{len(rows) - len(joined)} of {len(rows)} {stage} labels of {part.shard} have no intent; route and judge again")
        found.append(joined[["query", "rank", "label"]])
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame({"query": [], "rank": [], "label": []})


def score_2_by_rank(labels: pd.DataFrame, ranks: tuple[int, ...] = (1, 2, 3, 4, 5), seed: int = 0) -> pd.DataFrame:
    """One row a dense rank: judged rows (unevaluable among them), the score-2 rate of them, its interval over queries."""
    rows = []
    for rank in ranks:
        label = labels.loc[labels["rank"] == rank, "label"]
        rate = mean_interval((label == 2).to_numpy(dtype=np.float64), seed=seed)
        rows.append({"dense rank": rank, "rows": len(label), "score 2": int((label == 2).sum()),
                     "rate": rate.mean, "low": rate.low, "high": rate.high})
    return pd.DataFrame(rows)
