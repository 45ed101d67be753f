"""The scores of the relevance model as others read them: one part of queries at a time, whatever its units."""

from pathlib import Path

import pyarrow as pa

from lib import contracts
from lib.student import units

SETS = ("v1", "v2")  # the sets of intents that send pairs to the relevance model


def read(run: str | Path, name: str, part: str, columns: list[str] | None = None) -> pa.Table:
    """The scores (contract `scores`) of a set and one part of queries, by query, then document; none where nothing was sent."""
    folder = Path(run) / "scores" / name
    of_part = [line["part"] for line in contracts.parts(folder) if units.split(Path(line["part"]).stem)[0] == part]
    empty = contracts.TABLES["scores"].empty_table()
    return pa.concat_tables([empty if columns is None else empty.select(columns), *(contracts.read_part("scores", folder / unit, columns) for unit in of_part)])
