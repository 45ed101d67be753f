"""What the last scan left to judge for a question: `expand/pending/QID.json`."""

import os
from pathlib import Path
from typing import NamedTuple

from lib import files, paths
from lib.qrels import closure, decisions, names, standards
from lib.qrels.closure import Closed, Question
from lib.qrels.decisions import Recorded
from lib.qrels.refusals import Refused
from lib.qrels.standards import Standard
from lib.qrels.work import Work, read_json

SCAN = "run python -m lib.qrels expand scan"


def number(count: int) -> str:
    return f"{count:,} near {'copy' if count == 1 else 'copies'}"


class Scanned(NamedTuple):
    """A question as a scan and the decisions since left it: `pending` has the open hops, the parent and the Jaccard of each document.

    A row with `copy_of` is an exact copy of that pending document and needs no reading of its own. `standards` are today's, `decided`
    the documents that were decided since the scan, `included` the relevant documents, `relevant` the smallest of them by the hash of
    its cached text.
    """

    question: Question
    standards: dict[int, Standard]
    pending: dict[str, dict]
    decided: dict[str, Recorded]
    included: set[str]
    relevant: dict[str, str]


def write(work: Work, qrels: Path, found: dict[str, Closed]) -> list[str]:
    """Write a file a question, remove those of other questions, and give the documents whose text is to be fetched, sorted.

    The place of the qrels is written relative to the work folder, so that `apply` finds them there.
    """
    sha256, wanted, texts = files.sha256(qrels), set(), {}
    place = os.path.relpath(Path(qrels).resolve(), work.folder.resolve())
    for qid, one in found.items():
        texts |= {docid: closure.text_sha256(work, docid) for docid in one.expansion.pending.keys() - texts.keys()}
        copy_of, rows = _copies(work, one, texts), []
        for docid, left in one.expansion.pending.items():
            row = {"docid": docid, "hops": sorted(left.hops), "parent": left.parent, "jaccard": left.jaccard}
            rows.append(row | ({"copy_of": copy_of[docid]} if docid in copy_of else {}))
        wanted |= {row["docid"] for row in rows if "copy_of" not in row and texts[row["docid"]] is None}
        included = list(one.expansion.included)
        files.write_json(work.pending(qid), {"qid": qid, "qrels": place, "qrels_sha256": sha256, "pending": rows, "included": included})
    kept = {f"{names.safe(qid)}.json" for qid in found}
    for path in (work.expand / "pending").glob("*"):
        if path.name not in kept:  # of a question that is gone, or left by a scan that was killed
            path.unlink()
    return sorted(wanted)


def _copies(work: Work, one: Closed, texts: dict[str, str | None]) -> dict[str, str]:
    """The pending document to read in place of another one with its text: one that is cached, or can still be, then the smallest id."""
    found = {}
    for members in one.expansion.copies:
        ready = {docid: (texts[docid] is None, work.text(docid).with_suffix(".json").exists()) for docid in members}
        _, first = min((ready[docid], docid) for docid in members)
        found |= dict.fromkeys(members - {first}, first)
    return found


def read(work: Work, qid: str, qrels: Path | None = None) -> Scanned:
    """What the last scan and the decisions since left; Refused where the scan was of other qrels than those of today."""
    path = work.pending(qid)
    if not path.exists():
        raise Refused(f"{paths.shown(path)} is not there: {qid!r} is no question of the qrels, or they were not scanned; {SCAN}")
    scanned = read_json(path, SCAN)
    try:
        place, sha256, rows, included = work.folder / scanned["qrels"], scanned["qrels_sha256"], scanned["pending"], scanned["included"]
        pending = {row["docid"]: row for row in rows if row.keys() >= {"docid", "hops", "parent", "jaccard"}}
        if scanned["qid"] != qid or len(pending) < len(rows):
            raise KeyError(qid)
    except (KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{paths.shown(path)} is not what a scan of {qid!r} writes; {SCAN}") from error
    place = Path(os.path.normpath(qrels or place))
    asked = closure.questions(place)
    if qid not in asked:
        raise Refused(f"{qid!r} is no question of {paths.shown(place)}; take one of {', '.join(list(asked)[:5])}")
    if files.sha256(place) != sha256:
        raise Refused(f"{paths.shown(path)} is of other qrels than {paths.shown(place)} holds now; {SCAN}")
    bars, recorded = standards.read(work, asked[qid].row), decisions.read(work, qid)
    open_again = {docid for docid in recorded if decisions.counted(recorded[docid], closure.text_sha256(work, docid), bars)[1]}
    decided = {docid: recorded[docid] for docid in pending.keys() & recorded.keys() - open_again}
    relevant = {}
    for docid in sorted(included):
        if sha256 := closure.text_sha256(work, docid):
            relevant.setdefault(sha256, docid)
    left = {docid: row for docid, row in pending.items() if docid not in decided}
    return Scanned(asked[qid], bars, left, decided, set(included), relevant)
