"""What a document must state to support a hop, and the near miss to reject: written down before anything is read."""

import hashlib
import json
from collections.abc import Iterator
from typing import NamedTuple

from lib import paths
from lib.qrels.refusals import Refused
from lib.qrels.work import Work, read_json

KEYS = ("must_state", "near_miss")


class Standard(NamedTuple):
    """The bar of one hop; `sha256` is the hash of the canonical JSON of the two texts, so every word counts."""

    must_state: str
    near_miss: str
    sha256: str


def standard(must_state: str, near_miss: str) -> Standard:
    canonical = json.dumps({"must_state": must_state, "near_miss": near_miss}, sort_keys=True, separators=(",", ":"))
    return Standard(must_state, near_miss, hashlib.sha256(canonical.encode("ascii")).hexdigest())


def text_fault(value) -> str | None:
    """Why a value is no text that says something, or None."""
    if not isinstance(value, str):
        return f"is {json.dumps(value)[:60]}, not text"
    if not value.strip():
        return "is blank"
    if any("\ud800" <= character <= "\udfff" for character in value):
        return "holds half a surrogate pair"
    return None


def _faults(given, known: list[int], live: list[int]) -> Iterator[str]:
    if not isinstance(given, dict):
        yield "it is no object"
        return
    for hop in live:
        if str(hop) not in given:
            yield f"hop {hop} is live and has none"
    for name, pair in given.items():
        if name not in map(str, known):
            yield f"{name!r} is no hop of the question, it has {', '.join(map(str, known))}"
        elif not isinstance(pair, dict):
            yield f"hop {name} is no object with must_state and near_miss"
        else:
            for key in sorted(set(pair) - set(KEYS)):
                yield f"hop {name} has the unknown key {key!r}"
            for key in KEYS:
                if fault := "is missing" if key not in pair else text_fault(pair[key]):
                    yield f"{key} of hop {name} {fault}"


def read(work: Work, question: dict) -> dict[int, Standard]:
    """The standards of a question's live hops, in the order of the hops; `question` is its line of candidates.jsonl.

    A hop that is not live may have one too, it is checked and left out. A live hop without one, a hop that the
    question does not have and any other key refuse the file; a question without live hops needs none.
    """
    path = work.standards(question["qid"])
    known, live = sorted(hop["hop"] for hop in question["hops"]), sorted(hop["hop"] for hop in question["hops"] if hop["live"])
    if not live and not path.exists():
        return {}
    way_out = (
        f"before reading, write there what a document must state to support each live hop ({', '.join(map(str, live))}) "
        'and the near miss to reject: {"1": {"must_state": "...", "near_miss": "..."}}'
    )
    given = read_json(path, way_out)
    if faults := list(_faults(given, known, live)):
        raise Refused(f"{paths.shown(path)} is refused: {'; '.join(faults)}; {way_out}")
    return {hop: standard(**given[str(hop)]) for hop in live}
