"""What the paper prints: this run's tables gathered, and beside them the published figures."""

import shutil
from pathlib import Path

import pandas as pd

from lib import files, trace
from lib.report import beside
from lib.report.published import published


def table(run: str | Path, name: str) -> pd.DataFrame:
    """A table of the run from its CSV; only an empty cell is a missing value."""
    path = Path(run) / "tables" / f"{name}.csv"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; run {beside.WRITTEN_BY.get(name, 'the notebook')} that writes the table {name} first")
    trace.record("read", path)
    return pd.read_csv(path, keep_default_na=False, na_values=[""], dtype_backend="numpy_nullable")


def headline(run: str | Path) -> pd.DataFrame:
    """One row a version, stage and judge: pairs sent, judged, withdrawn and gaps, and the mix of the labels that were released."""
    mix = table(run, "label_mix")
    return table(run, "who_judged").merge(mix, on=["version", "stage", "judge"], how="left")


def comparison(run: str | Path) -> pd.DataFrame:
    """One row a published figure: the table it stands in, its value, ours, and the n of ours or why there is none.

    A plan without the notebook that writes a table has no value of ours, and the last column names both. The
    collections differ, so the columns are read side by side, never as a test.
    """
    found: dict[str, pd.DataFrame | None] = {}
    rows = []
    for line in beside.lines(published()):
        if line.source and line.source not in found:
            there = (Path(run) / "tables" / f"{line.source}.csv").exists()
            found[line.source] = table(run, line.source) if there else None
        rows.append((line.table, line.figure, line.published, *beside.ours(line, found.get(line.source))))
    columns = ["table", "figure", "published", "this run", "n of this run"]
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in zip(columns, zip(*rows, strict=True), strict=True)})


def measured(comparison: pd.DataFrame) -> pd.DataFrame:
    """The rows of a comparison that can be drawn on one scale: shares, AUC and R2 (published between 0 and 1) that this run has."""
    scale = comparison["published"].map(lambda value: isinstance(value, float) and value <= 1)
    found = comparison[scale & comparison["this run"].notna()]
    return found.assign(**found[["published", "this run"]].astype(float))


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
