"""A small work folder of the qrels line: candidates, cached documents and standards, without a workbook or a command."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lib import files, ids
from lib.qrels import work as places
from lib.qrels.work import Work

POOLS = {"q1": {1: {"d1": "Supports", "d2": None, "d3": None}, 2: {"d1": None, "d4": "Does not support"}}, "q2": {1: {"d3": None, "shard_00045_6622": None}}}
_STATES = {"Supports": "guaranteed", "Partial support": "guaranteed", "Does not support": "bound"}


def sentence(docid: str) -> str:
    """A sentence that stands in the default text of a document and in no other's."""
    return f"The sum of the first {docid} odd numbers is a square."


def cache(work: Work, docid: str, text: str) -> str:
    """Put a text into the cache as a fetch leaves it; its hash."""
    data, target = text.encode("utf-8"), work.text(docid)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    known = {"docid": docid, "sha256": hashlib.sha256(data).hexdigest(), "chars": len(text)}
    files.write_json(target.with_suffix(".json"), known)
    return known["sha256"]


def gap(work: Work, docid: str, reason: str = "timed out after 60 s") -> None:
    """Make a document one whose text could not be fetched."""
    work.text(docid).unlink(missing_ok=True)
    files.write_json(work.text(docid).with_suffix(".json"), {"docid": docid, "gap": reason, "tries": 3})


def standards(work: Work, qid: str, hops: Iterable[int]) -> None:
    """Write the standards of a question's hops."""
    files.write_json(work.standards(qid), {
        str(hop): {"must_state": f"what hop {hop} of {qid} must state", "near_miss": f"what hop {hop} of {qid} is not"} for hop in hops
    })


def hop_row(hop: int, skipped: bool = False) -> dict:
    """A hop as candidates.jsonl holds it: judged Yes, or judged No with a note that skips it."""
    judged = {"judgment": "No", "note": "not needed", "note_class": "skip"} if skipped else {"judgment": "Yes", "note": None, "note_class": None}
    return {"hop": hop, "text": f"What does hop {hop} ask?", **judged, "live": not skipped, "cell": f"Hops!C{hop + 1}"}


def question_row(qid: str, pool: Mapping[int, Mapping[str, str | None]], skipped: Iterable[int] = ()) -> dict:
    """A line of candidates.jsonl from `{hop: {docid: vote or None}}`; hops without documents may stand there too."""
    skipped, entries = set(skipped), []
    for hop in sorted(pool):
        for docid in sorted(map(ids.api, pool[hop])):
            vote = {ids.api(key): value for key, value in pool[hop].items()}[docid]
            state = _STATES[vote] if vote else "skipped" if hop in skipped else "pending"
            votes = [{"vote": vote, "cell": f"Votes!E{len(entries) + 2}"}] if vote else []
            entries.append({"hop": hop, "docid": docid, "state": state, "votes": votes, "override": None})
    return {
        "qid": qid, "question": f"What is asked in {qid}?", "workbook": "review.xlsm", "workbook_sha256": "a" * 64,
        "questions_sha256": "b" * 64, "hops": [hop_row(hop, hop in skipped) for hop in sorted(pool)], "pool": entries,
    }


def make(
    folder: Path, pools: Mapping = POOLS, texts: Mapping[str, str] | None = None, skipped: Iterable[tuple[str, int]] = (),
    with_standards: bool = True,
) -> Work:
    """A work folder of `{qid: {hop: {docid: vote or None}}}`: every document is cached, every live hop has its standard.

    A document that `texts` does not name says `sentence(docid)` between two sentences that all of them share.
    """
    work, skipped, texts = Work(Path(folder)), set(skipped), texts or {}
    rows = [question_row(qid, pool, [hop for of, hop in skipped if of == qid]) for qid, pool in pools.items()]
    places.write_lines(work.candidates, rows)
    for docid in {entry["docid"] for row in rows for entry in row["pool"]}:
        cache(work, docid, texts.get(docid, f"A page about numbers.\n\n{sentence(docid)}\nIt ends here.\n"))
    for row in rows if with_standards else ():
        standards(work, row["qid"], [hop["hop"] for hop in row["hops"] if hop["live"]])
    return work


def lines(path: Path) -> list[dict]:
    """The objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
