"""The documents and queries of a run, read a part at a time."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib import contracts, paths
from lib.contracts import ContractError

TEXT_PARTS = 8  # parts that Texts keeps


class Part(NamedTuple):
    """One part of a table: its rows are first, first + 1, ... first + rows - 1 of the whole."""

    shard: str
    first: int
    rows: int


def parts(run: str | Path, table: str) -> list[Part]:
    """The parts of `documents` or `queries` in row order; ContractError where the import is not finished."""
    found, first = [], 0
    for line in contracts.parts(Path(run) / table):
        found.append(Part(Path(line["part"]).stem, first, line["rows"]))
        first += line["rows"]
    return found


def shards(table: str, config: dict) -> list[str]:
    """The part names of `documents` or `queries`: what a stage that goes by them is mapped over."""
    return [part.shard for part in parts(config["run"], table)]


def part_of(table: str, config: dict, shard: str) -> Part:
    """Where a part stands among the rows of `documents` or `queries`."""
    return next(part for part in parts(config["run"], table) if part.shard == shard)


def documents(run: str | Path, shard: str, columns: list[str] | None = None) -> pa.Table:
    """One part of the documents, in corpus order."""
    return _part(run, "documents", shard, columns)


def queries(run: str | Path, shard: str, columns: list[str] | None = None) -> pa.Table:
    """One part of the queries, in query order."""
    return _part(run, "queries", shard, columns)


def all_documents(run: str | Path, columns: list[str] | None = None) -> pa.Table:
    """Every document: name the columns, the texts of a large corpus do not fit in memory."""
    return contracts.read("documents", Path(run) / "documents", columns)


def all_queries(run: str | Path, columns: list[str] | None = None) -> pa.Table:
    """Every query, in query order."""
    return contracts.read("queries", Path(run) / "queries", columns)


def _part(run: str | Path, table: str, shard: str, columns: list[str] | None) -> pa.Table:
    folder = Path(run) / table
    stated = {part.shard: part.rows for part in parts(run, table)}
    if shard not in stated:
        raise ContractError(f"{paths.shown(folder)} has no {shard}; it has {len(stated)} parts from part-00000")
    data = contracts.read_part(table, folder / f"{shard}.parquet", columns)
    if data.num_rows != stated[shard]:
        raise ContractError(
            f"{paths.shown(folder / shard)}.parquet has {data.num_rows} rows, its manifest says {stated[shard]}; import again"
        )
    return data


class Texts:
    """Document texts by corpus row, with the texts of at most `keep` parts in memory."""

    def __init__(self, run: str | Path, keep: int = TEXT_PARTS):
        self._run, self._keep = run, keep
        self._parts = parts(run, "documents")
        self._ends = np.cumsum([part.rows for part in self._parts])
        self._held: OrderedDict[int, pa.ChunkedArray] = OrderedDict()  # the part used last stands last

    def texts(self, rows: Sequence[int] | np.ndarray) -> list[str]:
        """The texts in the order of `rows` (int[n], repeats allowed); a row outside the corpus is an IndexError."""
        rows = np.asarray(rows, dtype=np.int64)
        count = int(self._ends[-1]) if len(self._ends) else 0
        outside = rows[(rows < 0) | (rows >= count)]
        if len(outside):
            raise IndexError(f"row {outside[0]} is no document of {paths.shown(self._run)}; it has {count:,} documents")
        found: list[str] = [""] * len(rows)
        home = np.searchsorted(self._ends, rows, side="right")
        for at in np.unique(home):  # each part is read once a call
            column = self._column(int(at))
            for place in np.flatnonzero(home == at):
                found[place] = column[int(rows[place]) - self._parts[at].first].as_py()
        return found

    def _column(self, at: int) -> pa.ChunkedArray:
        if at not in self._held:
            self._held[at] = documents(self._run, self._parts[at].shard, ["text"])["text"]
        self._held.move_to_end(at)
        while len(self._held) > self._keep:
            self._held.popitem(last=False)
        return self._held[at]
