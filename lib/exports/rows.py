"""The rows of a released set, checked as they pass: legal ids, integer grades, each pair once, in order."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from lib import ids

_PLAIN = re.compile(r"[!-~]+").fullmatch  # printable ASCII has no fault, and is told apart ten times faster


class ExportError(ValueError):
    """What was given makes no released set; nothing is written."""


class Judged(NamedTuple):
    """One question and its documents, (docid, grade) by docid."""

    qid: str
    documents: list[tuple[str, int]]


def legal(kind: str, an_id: object) -> None:
    """ExportError where an id is not legal, or begins with U+FEFF, which at the head of a file would be a byte order mark."""
    if isinstance(an_id, str) and _PLAIN(an_id):
        return
    fault = ids.fault(an_id) or ("begins with the character U+FEFF" if an_id.startswith("\ufeff") else None)
    if fault:
        raise ExportError(f"the {kind} id {ascii(an_id)} {fault}; give an id that is text without white space and control characters")


def by_question(rows: Iterable[tuple[str, str, int]], grades: Collection[int]) -> Iterator[Judged]:
    """The rows (qid, docid, grade) of each question; they come sorted by both ids, as code points, which is the order of UTF-8.

    Memory is that of one question. ExportError names the first row that repeats a pair, gives it another grade, stands out
    of order, or whose id is not legal or grade no int of `grades` (a bool, a float and a numpy integer are none).
    """
    found: Judged | None = None
    for qid, docid, grade in rows:
        if found is None or qid != found.qid:
            legal("question", qid)
            if found is not None:
                if qid < found.qid:
                    raise ExportError(f"the question {ascii(qid)} comes after {ascii(found.qid)}; sort the rows by question and document")
                yield found
            found = Judged(qid, [])
        legal("document", docid)
        if type(grade) is not int or grade not in grades:
            wanted = " or ".join(map(str, sorted(grades)))
            named = f"the question {ascii(qid)} has the grade {grade!r} for {ascii(docid)}"
            raise ExportError(f"{named}, which is not the integer {wanted}; give integers")
        if found.documents and docid <= found.documents[-1][0]:
            raise ExportError(_disorder(qid, docid, grade, *found.documents[-1]))
        found.documents.append((docid, grade))
    if found is not None:
        yield found


def _disorder(qid: str, docid: str, grade: int, before: str, other: int) -> str:
    if docid != before:
        return f"the question {ascii(qid)} has {ascii(docid)} after {ascii(before)}; sort the rows by question and document"
    if grade != other:
        return f"the question {ascii(qid)} has {ascii(docid)} with the grades {other} and {grade}; settle which one holds"
    return f"the question {ascii(qid)} has {ascii(docid)} twice; a released pair stands once, drop the repeat"
