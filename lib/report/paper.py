"""What the paper prints: this run's tables gathered, and beside them the published figures."""

import shutil
from pathlib import Path

import pandas as pd

from lib import files, trace
from lib.report.published import published


def table(run: str | Path, name: str) -> pd.DataFrame:
    """A table of the run from its CSV; only an empty cell is a missing value."""
    path = Path(run) / "tables" / f"{name}.csv"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; run the notebook that writes the table {name} first")
    trace.record("read", path)
    return pd.read_csv(path, keep_default_na=False, na_values=[""], dtype_backend="numpy_nullable")


def headline(run: str | Path) -> pd.DataFrame:
    """One row a stage: pairs sent, judged, withdrawn and gaps, and the mix of its labels."""
    mix = table(run, "label_mix").drop(columns=["rows"])
    return table(run, "judged").merge(mix, on=["version", "stage", "judge"], how="left")


def comparison(run: str | Path) -> pd.DataFrame:
    """One row a published figure that this run measures too: the published value, ours, and the n of ours.

    The collections differ, so the columns are read side by side, never as a test.
    """
    known, rows = published(), []

    def add(figure: str, value: float, found: pd.DataFrame, column: str, n: str, unit: str) -> None:
        ours = found.iloc[0] if len(found) else {column: None, n: 0}  # a stage that no pair reached has no row
        rows.append((figure, value, ours[column], f"{ours[n]:,.0f} {unit}"))

    probe = table(run, "probe")
    for row in known["probe"]["rows"]:
        for depth in ("top 5", "top 10", "top 20"):
            add(f"positives a query, {row['order']}, {depth}", row[depth], probe[probe["order"] == row["order"]], depth, "queries", "queries")
    add("fused top 5 inside the dense top 5", known["probe"]["fused_top_5_inside_dense_top_5"], table(run, "fused_inside_dense"), "share", "places", "places")
    by_rank = table(run, "score_2_by_rank")
    for rank, rate in enumerate(known["score_2_by_dense_rank"], 1):
        add(f"score-2 rate at dense rank {rank}", rate, by_rank[by_rank["dense rank"] == rank], "rate", "rows", "rows")
    auc = table(run, "rerank").assign(pairs=lambda frame: frame["score 2"] + frame["score 0"])
    for order in ("reranker", "weighted RRF"):
        add(f"AUC 2 against 0, {order}", known["rerank_auc"][order], auc[auc["order"] == order], "pooled AUC", "pairs", "pairs")
    judged = table(run, "judged").query("version == 'v1' and judge == 'llm'")
    for row in known["who_judged_v1"]:
        if row["stage"] != "short":  # the relevance model's
            add(f"judged of sent, {row['stage']}", row["judged"] / row["sent"], judged[judged["stage"] == row["stage"]], "share", "sent", "pairs")
    mix = table(run, "label_mix").query("version == 'v1' and judge == 'llm'")
    for row in known["label_mix_v1"]:
        for label in ("0", "1", "2", "unevaluable"):
            add(f"share of {label}, {row['stage']}", row[label], mix[mix["stage"] == row["stage"]], label, "rows", "rows")
    return pd.DataFrame(rows, columns=["figure", "published", "this run", "n of this run"])


def collect(run: str | Path, folder: str | Path) -> list[str]:
    """Copy the run's finished tables and figures into `folder` and remove what is there of former runs; the names."""
    folder = Path(folder)
    found = sorted([*Path(run).glob("tables/*.*"), *Path(run).glob("figures/*.*")])
    for path in found:
        trace.record("read", path)
        with files.whole(folder / path.name) as temporary:
            shutil.copyfile(path, temporary)
    for old in folder.iterdir():
        if old.is_file() and old.name not in {path.name for path in found} and not old.name.startswith("."):
            old.unlink()
    return [path.name for path in found]
