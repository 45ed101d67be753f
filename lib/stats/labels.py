"""Shares of labels: of the release, of the relevance model alone, and by dense rank, read one part at a time."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lib import buckets, contracts
from lib.judge import answers
from lib.stats.bootstrap import mean_interval
from lib.stats.judged import place
from lib.student.cuts import label_of

MIX = ("0", "1", "2", "unevaluable")


def label_mix(run: str | Path) -> pd.DataFrame:
    """One row a version, stage and judge of the release: its rows, and the share of each label in them.

    Unevaluable is a row too, and a dash for the relevance model, which always gives a label. The trial of the long new
    candidates is no part of the mix: it stands last, as a foot line.
    """
    counts: Counter = Counter()
    for line in contracts.parts(Path(run) / "labels"):
        group = ["version", "stage", "judge"]
        part = contracts.read_part("labels", Path(run) / "labels" / line["part"], [*group, "label"], coded=group)
        found = part.group_by(part.column_names, use_threads=False).aggregate([([], "count_all")]).to_pylist()
        counts.update({(row["version"], row["stage"], row["judge"], row["label"]): row["count_all"] for row in found})
    rows = []
    for group in sorted({key[:3] for key in counts}, key=place):
        by_label = [counts[(*group, label)] for label in (0, 1, 2, None)]
        shares = dict(zip(MIX, (count / sum(by_label) for count in by_label), strict=True))
        if group[2] == "student":
            shares["unevaluable"] = None
        rows.append(dict(zip(("version", "stage", "judge"), group, strict=True)) | {"rows": sum(by_label)} | shares)
    return pd.DataFrame(rows, columns=["version", "stage", "judge", "rows", *MIX])


def labelling_mix(run: str | Path, versions: Sequence[str] = ("v1", "v2")) -> pd.DataFrame:
    """One row a version: all pairs that the relevance model scored, whoever judged them, and the shares of its cut labels."""
    rows = []
    for version in versions:
        folder, counts = Path(run) / "scores" / version, np.zeros(3, np.int64)
        for line in contracts.parts(folder):
            counts += np.bincount(label_of(contracts.read_part("scores", folder / line["part"], ["score"])["score"].to_numpy()), minlength=3)
        total = int(counts.sum())
        rows.append([version, total, *(count / total if total else None for count in counts.tolist())])
    return pd.DataFrame(rows, columns=["version", "pairs", *MIX[:3]])


def score_histogram(run: str | Path, version: str = "v1") -> pd.DataFrame:
    """Scores of the relevance model in steps of a twentieth from -0.5 to 2.5: low, high, pairs; what lies beyond is in the first or last."""
    folder, edges = Path(run) / "scores" / version, np.arange(-10, 51) / 20
    pairs = np.zeros(len(edges) - 1, np.int64)
    for line in contracts.parts(folder):
        scores = contracts.read_part("scores", folder / line["part"], ["score"])["score"].to_numpy()
        pairs += buckets.count(np.clip(scores, edges[0], edges[-1]), edges)
    return pd.DataFrame({"low": edges[:-1], "high": edges[1:], "pairs": pairs})


def rank_labels(run: str | Path, stage: str = "dense_1_5") -> pd.DataFrame:
    """The v1 labels of a stage with their dense rank: query, rank, label (null where unevaluable); withdrawn pairs and gaps have no row.

    Read whole: 14 bytes a row.
    """
    found = []
    for line in contracts.parts(answers.folder(run, "v1")):
        columns, file = ["query", "rank", "stage", "answer", "score"], answers.folder(run, "v1") / line["part"]
        told = contracts.read_part("answers", file, columns, coded=["stage", "answer"])
        valid = pc.and_(pc.equal(told["stage"], stage), pc.is_in(told["answer"], pa.array(answers.VALID)))
        found.append(told.filter(valid).select(["query", "rank", "score"]).rename_columns(["query", "rank", "label"]).to_pandas())
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
