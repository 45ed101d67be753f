"""The candidate pools as the first step left them: one line a question."""

import hashlib
import json

from lib import paths
from lib.qrels import work as places
from lib.qrels.refusals import Refused
from lib.qrels.work import Work

KEYS = ("qid", "question", "workbook", "workbook_sha256", "questions_sha256", "hops", "pool")
VOTES = ("Supports", "Partial support", "Does not support")  # what a reviewer may say of an entry; the last one is against it
_WAY_OUT = "run python -m lib.qrels candidates"


def read(work: Work) -> dict[str, dict]:
    """The lines of `candidates.jsonl` by question id, in its order; Refused where it is missing or damaged."""
    found = {}
    for number, row in enumerate(places.read_lines(work.candidates, _WAY_OUT), 1):
        if tuple(row) != KEYS or not isinstance(row["qid"], str) or row["qid"] in found:
            fault = "repeats a question" if row.get("qid") in found else "is no line of candidates"
            raise Refused(f"{paths.shown(work.candidates)} line {number} {fault}; {_WAY_OUT}")
        found[row["qid"]] = row
    return found


def question(work: Work, qid: str) -> dict:
    """One line of `candidates.jsonl`; Refused for a question it does not hold."""
    found = read(work)
    if qid not in found:
        few = ", ".join(list(found)[:5]) + (", ..." if len(found) > 5 else "")
        raise Refused(f"{paths.shown(work.candidates)} has no question {qid!r}; it holds {len(found)}: {few or 'none'}")
    return found[qid]


def sha256(question: dict) -> str:
    """The hash of a question's line, without its line feed, in hex."""
    return hashlib.sha256(json.dumps(question, ensure_ascii=False, allow_nan=False).encode("utf-8")).hexdigest()


def cast(entry: dict) -> str:
    """The votes on an entry, each with its cell: `Supports in Votes!E2, Does not support in Votes!E9`."""
    return ", ".join(f"{vote['vote']} in {vote['cell']}" for vote in entry["votes"])
