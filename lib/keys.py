"""Pairs as int64 keys, ordered by query row, then document row; sets of them are sorted arrays."""

import numpy as np
import pyarrow as pa


def of(rows: pa.Table) -> np.ndarray:
    """One key a row of a table with query and doc."""
    return of_pairs(rows["query"].to_numpy(), rows["doc"].to_numpy())


def of_pairs(query: np.ndarray, doc: np.ndarray) -> np.ndarray:
    """int64 keys of row numbers of any shapes that broadcast; no row is below 0."""
    return (query.astype(np.int64) << 32) | doc.astype(np.int64)


def listed(query: np.ndarray, docs: np.ndarray) -> np.ndarray:
    """The pairs of lists int[n, places], -1 for an empty place, of the queries int[n]: ascending, each once."""
    there = docs >= 0
    return distinct(of_pairs(np.broadcast_to(query[:, None], docs.shape)[there], docs[there]))


def distinct(found: np.ndarray) -> np.ndarray:
    """The keys ascending, each once (a sort; numpy's own hashes, and takes five times as long)."""
    found = np.sort(found)
    return found[np.r_[True, found[1:] != found[:-1]]] if len(found) else found


def repeated(found: np.ndarray) -> np.ndarray:
    """The keys that stand more than once, ascending."""
    found = np.sort(found)
    return distinct(found[1:][found[1:] == found[:-1]])


def inside(found: np.ndarray, known: np.ndarray) -> np.ndarray:
    """bool, of the shape of `found`: which of the keys are among `known`, ascending."""
    if not len(known):
        return np.zeros(found.shape, bool)
    return known[np.minimum(np.searchsorted(known, found), len(known) - 1)] == found


def first_ten(found: np.ndarray) -> str:
    """How errors name pairs: by rows."""
    return ", ".join(f"query {key >> 32} document {key & 0xFFFFFFFF}" for key in np.sort(found)[:10].tolist())
