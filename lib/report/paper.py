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
    """One row a stage: pairs sent and judged, and the mix of its labels."""
    mix = table(run, "label_mix").drop(columns=["rows"])
    return table(run, "judged").drop(columns=["withdrawn", "gaps"]).merge(mix, on=["version", "stage", "judge"], how="left")


def comparison(run: str | Path) -> pd.DataFrame:
    """One row a published figure that this run measures too: the published value, ours, and the n of ours.

    The collections differ, so the columns are read side by side, never as a test.
    """
    known, rows = published(), []
    probe = table(run, "probe").set_index("order")
    for row in known["probe"]["rows"]:
        for depth in ("top 5", "top 10", "top 20"):
            rows.append((f"positives a query, {row['order']}, {depth}", row[depth], probe.at[row["order"], depth], f"{probe.at[row['order'], 'queries']} queries"))
    inside = table(run, "fused_inside_dense").iloc[0]
    rows.append(("fused top 5 inside the dense top 5", known["probe"]["fused_top_5_inside_dense_top_5"], inside["share"], f"{inside['places']:.0f} places"))
    for rank, (rate, ours) in enumerate(zip(known["score_2_by_dense_rank"], table(run, "score_2_by_rank").itertuples(), strict=True), 1):
        rows.append((f"score-2 rate at dense rank {rank}", rate, ours.rate, f"{ours.rows} rows"))
    auc = table(run, "rerank").set_index("order")
    for order in ("reranker", "weighted RRF"):
        rows.append((f"AUC 2 against 0, {order}", known["rerank_auc"][order], auc.at[order, "pooled AUC"], f"{auc.at[order, 'score 2'] + auc.at[order, 'score 0']} pairs"))
    judged = table(run, "judged").query("version == 'v1'").set_index(["stage", "judge"])
    for row in known["who_judged_v1"]:
        if row["stage"] != "short":
            ours = judged.loc[(row["stage"], "llm")]
            rows.append((f"judged of sent, {row['stage']}", row["judged"] / row["sent"], ours["share"], f"{ours['sent']} pairs"))
    mix = table(run, "label_mix").query("version == 'v1' and judge == 'llm'").set_index("stage")
    for row in known["label_mix_v1"]:
        for label in ("0", "1", "2", "unevaluable"):
            rows.append((f"share of {label}, {row['stage']}", row[label], mix.at[row["stage"], label], f"{mix.at[row['stage'], 'rows']} rows"))
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
