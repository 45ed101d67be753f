"""Classes of exact copies: the groups of a JSONL file and other equalities, overlapping ones merged."""

from array import array
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lib import ids, paths, trace
from lib.qrels.refusals import Refused
from lib.qrels.work import parse


def merged(groups: Iterable[Collection[str]]) -> list[frozenset[str]]:
    """The classes of two documents and more that groups make once overlapping ones are one, by their smallest member."""
    parent: dict[str, str] = {}

    def root(docid: str) -> str:
        top = docid
        while parent.setdefault(top, top) != top:
            top = parent[top]
        while parent[docid] != top:
            parent[docid], docid = top, parent[docid]
        return top

    for group in groups:
        first, *others = sorted(group) or [None]
        for other in others:
            low, high = sorted((root(first), root(other)))
            parent[high] = low
    classes: dict[str, set[str]] = {}
    for docid in parent:
        classes.setdefault(root(docid), set()).add(docid)
    return sorted((frozenset(members) for members in classes.values() if len(members) > 1), key=min)


def _is_plain(docid) -> bool:
    """Whether an id is legal at first sight, as nearly all of millions are."""
    return isinstance(docid, str) and docid.isascii() and docid.isprintable() and docid != "" and " " not in docid


def _group(line: bytes) -> list[str]:
    """The ids of one line, in the API spelling; ValueError says what is wrong with it."""
    value = parse(line.decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    lists = [name for name, field in value.items() if isinstance(field, list)]
    if len(lists) != 1:
        raise ValueError(f"it has {len(lists)} lists ({', '.join(lists) or 'none'}), one list of document ids is wanted")
    if nested := [name for name, field in value.items() if isinstance(field, dict)]:
        raise ValueError(f"{nested[0]} is an object, beside the list of ids stand plain values")
    group = value[lists[0]]
    for position, docid in enumerate(group, 1):
        if not _is_plain(docid) and (fault := ids.fault(docid)):
            raise ValueError(f"id {position} of {lists[0]} {fault}")
    if not group:
        raise ValueError(f"{lists[0]} is empty")
    return [ids.api(docid) for docid in group]


class ExactDuplicates:
    """A file of groups of exact copies, one JSON object a line with exactly one list of ids; blank lines are passed over.

    The file is read once; kept are where each line begins and, for each id, a hash and a number of its class, some
    20 bytes an id. The ids of a class are read again when it is asked for, so two ids with one hash cost a line
    more and never make a class. Refused names the line; a file that changes meanwhile is refused too.
    """

    def __init__(self, path: Path):
        self.path, self._signature = Path(path), _signature(path)
        starts, sizes, hashes = array("q"), array("q"), array("q")
        for start, group in self._lines():
            starts.append(start)
            sizes.append(len(group))
            hashes.extend(map(hash, group))  # the hash of this process, for this process
        self._starts = np.array(starts)
        self._hashes, member = np.unique(np.array(hashes), return_inverse=True)
        line = np.repeat(np.arange(len(starts)), np.array(sizes, int))
        width = len(starts) + len(self._hashes)
        edges = coo_array((np.ones(len(line), bool), (line, len(starts) + member)), shape=(width, width))
        _, label = connected_components(edges, directed=False)
        order = np.argsort(label[: len(starts)], kind="stable")
        self._line_order, self._line_labels, self._labels = order, label[order], label[len(starts) :]

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        trace.record("read", self.path)
        try:
            with open(self.path, "rb") as handle:
                start = 0
                for number, line in enumerate(handle, 1):
                    if line.strip():
                        try:
                            yield start, _group(line)
                        except (ValueError, RecursionError) as error:
                            where = f"{paths.shown(self.path)} line {number}"
                            raise Refused(f"{where} is refused: {error}; mend the file of exact duplicates") from error
                    start += len(line)
        except OSError as error:
            raise Refused(f"{paths.shown(self.path)} cannot be read ({error.strerror}); give the file of exact duplicates") from error

    def classes(self, docids: Iterable[str]) -> list[frozenset[str]]:
        """The classes (two documents and more) with a member among `docids`, which are in the API spelling."""
        wanted = set(docids)
        if not len(self._hashes) or not wanted:
            return []
        if _signature(self.path) != self._signature:
            raise Refused(f"{paths.shown(self.path)} changed while it was read; run the step again")
        asked = np.array([hash(docid) for docid in wanted])
        found = np.minimum(np.searchsorted(self._hashes, asked), len(self._hashes) - 1)
        labels = np.unique(self._labels[found[self._hashes[found] == asked]])
        first, last = np.searchsorted(self._line_labels, labels), np.searchsorted(self._line_labels, labels, side="right")
        lines = [line for low, high in zip(first, last, strict=True) for line in self._line_order[low:high]]
        groups = []
        with open(self.path, "rb") as handle:
            for start in np.sort(self._starts[np.array(lines, int)]):
                handle.seek(start)
                groups.append(_group(handle.readline()))
        return [members for members in merged(groups) if not wanted.isdisjoint(members)]


def _signature(path: Path) -> tuple[int, int]:
    try:
        known = Path(path).stat()
    except OSError as error:
        raise Refused(f"{paths.shown(path)} cannot be read ({error.strerror}); give the file of exact duplicates") from error
    return known.st_size, known.st_mtime_ns
