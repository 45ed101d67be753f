"""The row of an id, for millions of ids: 128-bit hashes in sorted runs.

An id costs 20 bytes, and twice that again while two runs are merged: 4.3 million docids take 86 MB
(and 300 MB at the peak, measured), and half a minute to add. Two ids with one hash are taken for the
same; among 4.3 million that has a chance of 3 in 10^26.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib.corpus import tables


def _digests(ids: Sequence[str]) -> np.ndarray:
    """S16[n]; numpy drops zero bytes at the end when it compares, which leaves unequal hashes unequal."""
    joined = b"".join(hashlib.blake2b(value.encode(), digest_size=16).digest() for value in ids)
    return np.frombuffer(joined, dtype="S16")


class Index:
    """Ids get the rows 0, 1, 2, ... in the order they are added."""

    def __init__(self):
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []  # (sorted hashes, their rows), long runs first
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, ids: Sequence[str]) -> tuple[int, int] | None:
        """Add ids; if one is there already nothing is added, and (its row, the row it would have got) comes back."""
        if not ids:
            return None
        hashes = _digests(ids)
        order = np.argsort(hashes, kind="stable")
        ranked = hashes[order]
        repeats = [(int(order[i]), int(order[i + 1])) for i in np.flatnonzero(ranked[1:] == ranked[:-1])]
        known = np.empty(len(ids), dtype=np.int32)
        known[order] = self._find(ranked)  # sorted, it stays in the cache: half the time
        pairs = [(first + self._rows, again + self._rows) for first, again in repeats]
        pairs += [(int(known[i]), int(i) + self._rows) for i in np.flatnonzero(known >= 0)]
        if pairs:
            return min(pairs, key=lambda pair: pair[1])
        self._runs.append((ranked, (order + self._rows).astype(np.int32)))
        self._rows += len(ids)
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            (a, a_rows), (b, b_rows) = self._runs.pop(-2), self._runs.pop()
            merged = np.concatenate([a, b])
            order = np.argsort(merged, kind="stable")
            self._runs.append((merged[order], np.concatenate([a_rows, b_rows])[order]))
        return None

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """int32[n], -1 for an id that was not added."""
        return self._find(_digests(ids))

    def _find(self, hashes: np.ndarray) -> np.ndarray:
        found = np.full(len(hashes), -1, dtype=np.int32)
        for run, rows in self._runs:
            at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found = np.where(run[at] == hashes, rows[at], found)
        return found


def build(run: str | Path, table: str) -> Index:
    """The index of the docids of `documents`, or the qids of `queries`, of a run."""
    read, column = {"documents": (tables.documents, "docid"), "queries": (tables.queries, "qid")}[table]
    index = Index()
    for part in tables.parts(run, table):
        index.add(read(run, part.shard, [column])[column].to_pylist())
    return index
