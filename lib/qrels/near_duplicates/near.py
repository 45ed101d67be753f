"""Neighbours in near-duplicate files of millions of rows, without reading a column into Python.

Two passes a file: the id column alone, which says where the wanted rows lie; then only the row groups that hold one, of which
only those rows leave Arrow. What was found is kept for later rounds, until a file of the folder changes.
"""

import json
import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import files, ids, paths
from lib.qrels.near_duplicates import arrow, near_schema, reverse
from lib.qrels.refusals import Refused

WORKERS = min(4, len(os.sched_getaffinity(0)))  # files at once
DIGITS = 8  # a sequence number is looked for with zeros before it up to so many digits


class Row(NamedTuple):
    """A wanted row: its document (API spelling), its file and row (from 0), and its list as (neighbour as it stands, Jaccard)."""

    docid: str
    path: Path
    row: int
    duplicates: list[tuple[str, float]]


def neighbours(folder: Path, docids: Collection[str], cache: Path) -> dict[str, dict[str, float]]:
    """The near-duplicates of each document, by edges in both directions: {docid: {docid: Jaccard}}.

    Ids are taken in either spelling and given in the API spelling, sorted. Jaccards are float32; where edges of one pair
    disagree, the largest counts; a document's edge to itself does not. Refused where a document has no row or two, or a file
    is damaged. `cache` is a folder of this function's own: what was found, and an index of reverse edges a file, each good for
    as long as `near_schema.identity` of the files stays the same.
    """
    folder, cache = Path(folder), Path(cache)
    wanted, near_files = sorted({ids.api(docid) for docid in docids}), near_schema.near_files(folder)
    identities = [near_schema.identity(path) for path in near_files]
    known = _known(cache, identities)
    new = [docid for docid in wanted if docid not in known]
    if new:
        known |= _found(near_files, identities, new, cache)
        _keep(cache, identities, known)
    return {docid: known[docid] for docid in wanted}


def rows(near_files: list[Path], docids: Collection[str]) -> list[Row]:
    """The rows of the documents, file by file; Refused where a document has no row or two."""
    spelled = {spelling: docid for docid in map(ids.api, docids) for spelling in _spellings(docid)}
    values, found = near_schema.ascending(spelled), {}
    for row in _over(near_files, lambda path: list(_rows(path, spelled, values))):
        if row.docid in found:
            one, other = (f"{paths.shown(each.path)} row {each.row}" for each in (found[row.docid], row))
            raise Refused(f"{row.docid} has two rows, {one} and {other}; take one of them out, for nothing says which counts")
        found[row.docid] = row
    missing = [docid for docid in dict.fromkeys(spelled.values()) if docid not in found]
    if missing:
        shown = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        raise Refused(
            f"{len(missing)} of {len(set(spelled.values()))} documents have no row in {paths.shown(near_files[0].parent)}: {shown}; "
            f"near-duplicate files spell ids zero-padded, as {ids.analysis(missing[0])}, one row a document: check ids and folder")
    return list(found.values())


def _rows(path: Path, spelled: dict[str, str], values: pa.Array) -> Iterator[Row]:
    near = near_schema.opened(path)
    places, own = _hits(near, values)
    for rows, batch in near_schema.batches(near, [near.duplicates], near_schema.groups(near, places)):
        low, high = np.searchsorted(places, [rows[0], rows[-1] + 1])
        taken = batch.column(near.duplicates).take(arrow.numbers(np.searchsorted(rows, places[low:high])))
        edges = near_schema.edges(near, taken, places[low:high])
        pairs = list(zip(edges.neighbour.to_pylist(), edges.jaccard.tolist(), strict=True))
        bounds = np.searchsorted(edges.row, np.arange(high - low + 1))
        for i in range(high - low):
            yield Row(spelled[own[low + i]], path, int(places[low + i]), pairs[bounds[i] : bounds[i + 1]])
        if high == len(places):  # what comes after the last one is not decoded
            return


def _hits(near: near_schema.NearFile, values: pa.Array) -> tuple[np.ndarray, list[str]]:
    """The rows of the file, ascending, whose id is one of the values (ascending), and those ids."""
    groups, values = near_schema.possible(near, values)
    places, found = [np.zeros(0, np.int64)], []
    for rows, batch in near_schema.batches(near, [near.docid], groups):
        own = near_schema.docids(near, batch, rows)
        inside = pc.is_in(own, value_set=values)
        if inside.true_count:
            places.append(rows[arrow.values(pc.indices_nonzero(inside))])
            found += own.filter(inside).to_pylist()
    return np.concatenate(places), found


def _found(near_files: list[Path], identities: list[str], docids: list[str], cache: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {docid: {} for docid in docids}
    for row in rows(near_files, docids):
        for neighbour, jaccard in row.duplicates:
            _add(found[row.docid], row.docid, neighbour, jaccard, row.path)
    wanted, identity = near_schema.ascending(docids), dict(zip(near_files, identities, strict=True))
    reverse.forget(cache / "reverse", near_files)
    named = lambda path: [(path, *edge) for edge in reverse.named(reverse.ready(path, identity[path], cache / "reverse"), wanted)]
    for path, docid, neighbour, jaccard in _over(near_files, named):
        _add(found[docid], docid, neighbour, jaccard, path)
    return {docid: dict(sorted(edges.items())) for docid, edges in found.items()}


def _add(edges: dict[str, float], docid: str, neighbour: str, jaccard: float, path: Path) -> None:
    fault = ids.fault(neighbour)
    if fault:
        raise Refused(f"{paths.shown(path)} pairs {docid} with {neighbour!r}, which {fault}; an id is text without white space")
    neighbour = ids.api(neighbour)
    if neighbour != docid:
        edges[neighbour] = max(jaccard, edges.get(neighbour, 0.0))


def _over(near_files: list[Path], read) -> Iterator:
    """What `read` gives of each file, in the order of the files, some of them read at once."""
    with ThreadPoolExecutor(WORKERS) as pool:
        for given in pool.map(read, near_files):
            yield from given


def _spellings(docid: str) -> list[str]:
    """An id in API spelling, and the same with zeros before its sequence number."""
    head, _, sequence = docid.rpartition("_")
    if ids.api(f"{head}_0{sequence}") != docid:  # no shard id: zeros would make it another id
        return [docid]
    return [f"{head}_{sequence.zfill(width)}" for width in range(len(sequence), max(DIGITS, len(sequence)) + 1)]


def _known(cache: Path, identities: list[str]) -> dict[str, dict[str, float]]:
    """What earlier rounds found in the same files; nothing where the cache is not there or damaged."""
    try:
        kept = json.loads(files.read_bytes(cache / "found.json"))
        return kept["found"] if kept["files"] == identities else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _keep(cache: Path, identities: list[str], known: dict[str, dict[str, float]]) -> None:
    kept = {"files": identities, "found": dict(sorted(known.items()))}
    files.write_text(cache / "found.json", json.dumps(kept, ensure_ascii=False, allow_nan=False) + "\n")
