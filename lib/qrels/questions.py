"""The verified questions and their hops, from a JSONL file that may hold other fields too."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from lib import files, ids, paths
from lib.qrels import work as places
from lib.qrels.refusals import Refused

_LINE = '{"qid": "78", "question": "...", "hops": [{"hop": 1, "text": "..."}, ...]}'


class Hop(NamedTuple):
    hop: int  # from 1
    text: str


class Question(NamedTuple):
    qid: str
    question: str
    hops: tuple[Hop, ...]  # by number


class Verified(NamedTuple):
    name: str  # of the file
    sha256: str
    questions: list[Question]  # in the file's order


def read(path: str | Path) -> Verified:
    """Read one question a line: `qid`, `question`, and `hops` as objects with `hop` and `text`, or as texts numbered from 1.

    A byte order mark and CRLF are read over, and so are blank lines. Refused, with the line, at the first value of
    another kind, blank text, illegal or repeated question id, or repeated hop.
    """
    path = Path(path)
    try:
        data = files.read_bytes(path)
        lines = data.decode("utf-8-sig").split("\n")
    except FileNotFoundError:
        raise Refused(f"{paths.shown(path)} is not there; give the verified questions, lines {_LINE}") from None
    except UnicodeDecodeError as error:
        raise Refused(f"{paths.shown(path)} is no UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise Refused(f"{paths.shown(path)} cannot be read ({error.strerror}); give the verified questions, lines {_LINE}") from error
    found: dict[str, tuple[int, Question]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            question = _question(_parsed(line))
            if question.qid in found:
                raise ValueError(f"the question {question.qid!r} stands on line {found[question.qid][0]} already; keep one of the two")
        except ValueError as error:
            raise Refused(f"{paths.shown(path)} line {number}: {error}") from None
        found[question.qid] = number, question
    if not found:
        raise Refused(f"{paths.shown(path)} holds no question; give lines {_LINE}")
    return Verified(path.name, hashlib.sha256(data).hexdigest(), [question for _, question in found.values()])


def _parsed(line: str) -> object:
    try:
        return places.parse(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no strict JSON ({error}); write {_LINE}") from None


def _question(row: object) -> Question:
    if not isinstance(row, dict) or not {"qid", "question", "hops"} <= set(row):
        raise ValueError(f"is no object with the fields qid, question and hops; write {_LINE}")
    qid = row["qid"]
    if type(qid) in (int, float):
        raise ValueError(f"the qid {qid!r} is a number; write it in quotes, ids are text")
    if fault := ids.fault(qid):
        raise ValueError(f"the qid {qid!r} {fault}; give a legal id in quotes")
    if not isinstance(row["hops"], list) or not row["hops"]:
        raise ValueError(f"the hops of {qid!r} are no list with at least one hop; write {_LINE}")
    hops = [_hop(qid, hop, place) for place, hop in enumerate(row["hops"], 1)]
    if len({isinstance(hop, str) for hop in row["hops"]}) > 1:
        raise ValueError(f"some hops of {qid!r} are texts and some are objects; write all in one way")
    for place, hop in enumerate(hops):
        if hop.hop in [other.hop for other in hops[:place]]:
            raise ValueError(f"hop {hop.hop} of {qid!r} stands twice; number the hops from 1")
    return Question(qid, _text(row["question"], f"the question of {qid!r}"), tuple(sorted(hops)))


def _hop(qid: str, hop: object, place: int) -> Hop:
    if isinstance(hop, str):
        return Hop(place, _text(hop, f"hop {place} of {qid!r}"))
    if not isinstance(hop, dict) or not {"hop", "text"} <= set(hop):
        raise ValueError(f"a hop of {qid!r}, {hop!r:.60}, is neither a text nor an object with hop and text; write {_LINE}")
    number = hop["hop"]
    if type(number) is not int or number < 1:  # True is an int
        raise ValueError(f"a hop of {qid!r} has the number {number!r}; give a whole number from 1, without quotes")
    return Hop(number, _text(hop["text"], f"hop {number} of {qid!r}"))


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} is {value!r:.60}; give a text that is not blank")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise ValueError(f"{what} holds a lone surrogate; give legal Unicode")
    return value
