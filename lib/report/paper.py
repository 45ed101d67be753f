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


JUDGED = ["version", "stage", "judge", "sent", "judged", "share", "withdrawn", "gaps"]
MIX = ["rows", "0", "1", "2", "unevaluable"]


def headline(run: str | Path) -> pd.DataFrame:
    """One row a version, stage and judge: pairs sent, judged, withdrawn and gaps, and the mix of the labels that were released.

    Of a plan without a release the rows are those of v1 (`tables/judged`), without a mix; of one without a judge there are none.
    """
    judged = next((found for name in ("who_judged", "judged") if (found := _table_or_none(run, name)) is not None), pd.DataFrame(columns=JUDGED))
    mix = _table_or_none(run, "label_mix")
    if mix is None:
        return judged[JUDGED].assign(**dict.fromkeys(MIX))
    return judged[JUDGED].merge(mix[["version", "stage", "judge", *MIX]], on=["version", "stage", "judge"], how="left")


def comparison(run: str | Path) -> pd.DataFrame:
    """One row a published figure: the table it stands in, its value, ours, and the n of ours or why there is none.

    A plan without the notebook that writes a table has no value of ours, and the last column names both. The
    collections differ, so the columns are read side by side, never as a test.
    """
    found: dict[str, pd.DataFrame | None] = {}
    rows = []
    for line in beside.lines(published()):
        if line.source not in found:
            found[line.source] = _table_or_none(run, line.source)
        rows.append((line.table, line.figure, line.published, *beside.ours(line, found[line.source])))
    columns = ["table", "figure", "published", "this run", "n of this run"]
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in zip(columns, zip(*rows, strict=True), strict=True)})


def _table_or_none(run: str | Path, name: str) -> pd.DataFrame | None:
    return table(run, name) if (Path(run) / "tables" / f"{name}.csv").exists() else None


def measured(comparison: pd.DataFrame) -> pd.DataFrame:
    """The rows of a comparison that can be drawn on one scale: shares, AUC and R2 (published between 0 and 1) that this run has."""
    scale = comparison["published"].map(lambda value: isinstance(value, float) and value <= 1)
    found = comparison[scale & comparison["this run"].notna()]
    return found.assign(**found[["published", "this run"]].astype(float))


def collect(run: str | Path, folder: str | Path) -> list[str]:
    """Copy the run's finished tables and figures into `folder` and remove what is there of former runs; the names."""
    folder = Path(folder)
    found = sorted([*Path(run).glob("tables/[!.]*.*"), *Path(run).glob("figures/[!.]*.*")])  # none that a killed process left half written
    for listed in (Path(run) / "tables", Path(run) / "figures"):
        trace.record("read", listed)
    for path in found:
        trace.record("read", path)
        with files.whole(folder / path.name) as temporary:
            shutil.copyfile(path, temporary)
    for old in folder.iterdir():
        if old.is_file() and old.name not in {path.name for path in found} and not old.name.startswith("."):
            old.unlink()
    return [path.name for path in found]
