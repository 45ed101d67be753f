"""What the reviewer records against a vote: a verdict on one entry of a pool, with a reason and a quote of the document."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lib import ids, paths
from lib.qrels import documents
from lib.qrels import work as places
from lib.qrels.pools import VOTES
from lib.qrels.refusals import Refused
from lib.qrels.work import Work

SUPPORTS, REJECTS = "supports", "does not support"
NEGATIVE = VOTES[2]  # the vote that an override is about
_KEYS = {"qid", "hop", "docid", "verdict", "reason", "quote"}
_WAY_OUT = f"hold a list of objects with {', '.join(sorted(_KEYS))}"

Entry = tuple[str, int, str]  # qid, hop, docid in the API spelling


class Override(NamedTuple):
    verdict: str  # supports, or does not support
    reason: str
    quote: str


def read(work: Work) -> dict[Entry, Override]:
    """The overrides by entry, none where there is no `overrides.json`; Refused with every fault of the file in one message."""
    if not work.overrides.exists():
        return {}
    rows = places.read_json(work.overrides, f"mend it, or remove it; it may {_WAY_OUT}")
    if not isinstance(rows, list):
        raise Refused(f"{paths.shown(work.overrides)} holds a {type(rows).__name__}; it may {_WAY_OUT}")
    found, faults = {}, []
    for place, row in enumerate(rows, 1):
        if fault := _fault(row):
            faults.append(f"override {place} {fault}")
            continue
        entry = row["qid"], row["hop"], ids.api(row["docid"])
        if entry in found:
            faults.append(f"override {place} repeats {shown(entry)}; keep one")
        found[entry] = Override(row["verdict"], row["reason"], row["quote"])
    _refuse(work, faults)
    return found


def check(work: Work, overrides: Mapping[Entry, Override], votes: Mapping[Entry, Sequence[str]]) -> list[str]:
    """Refuse overrides that no vote asks for, or whose quote is not in the text; lines on the quotes that cannot be looked up yet.

    `votes` are those of every entry of every pool. An override stands only on an entry with a Does not support vote.
    """
    faults, unread = [], []
    for entry, override in overrides.items():
        if entry not in votes:
            faults.append(f"{shown(entry)} is in no pool; take its override out, or mend the ids")
        elif NEGATIVE not in votes[entry]:
            cast = ", ".join(votes[entry]) or "no vote"
            faults.append(f"{shown(entry)} has {cast}, and an override needs a {NEGATIVE} vote; take it out")
        else:
            what = f"the quote of the override on {shown(entry)}"
            try:
                if not documents.occurs(override.quote, documents.text(work, entry[2]).text):
                    faults.append(f"{what}, {override.quote!r:.80}, does not stand in the text; quote it as it stands there")
            except documents.Gap as gap:
                unread.append(f"{what} is not checked yet ({gap.reason}); run fetch, then candidates again")
    _refuse(work, faults)
    return unread


def check_taken(work: Work, question: dict) -> None:
    """Refuse where the file says something else now of a question's entries than its line of candidates.jsonl took from it."""
    given = {entry[1:]: override._asdict() for entry, override in read(work).items() if entry[0] == question["qid"]}
    if given != {(entry["hop"], entry["docid"]): entry["override"] for entry in question["pool"] if entry["override"]}:
        raise Refused(f"{paths.shown(work.overrides)} says something else of {question['qid']} than candidates.jsonl, which took it up before; "
                      "run python -m lib.qrels candidates again")


def shown(entry: Entry) -> str:
    qid, hop, docid = entry
    return f"question {qid} hop {hop} document {docid}"


def _fault(row: object) -> str | None:
    if not isinstance(row, dict) or set(row) != _KEYS:
        keys = sorted(row) if isinstance(row, dict) else type(row).__name__
        return f"has {keys}, not exactly the keys {sorted(_KEYS)}"
    for key in ("qid", "docid"):
        if fault := ids.fault(row[key]):
            return f"has the {key} {row[key]!r}, which {fault}; write it in quotes"
    if type(row["hop"]) is not int or row["hop"] < 1:
        return f"has the hop {row['hop']!r}; give a whole number from 1, without quotes"
    if row["verdict"] not in (SUPPORTS, REJECTS):
        return f"has the verdict {row['verdict']!r}; give {SUPPORTS!r} or {REJECTS!r}"
    for key in ("reason", "quote"):
        if not isinstance(row[key], str) or not row[key].strip():
            return f"has the {key} {row[key]!r}; give a {key} that is not blank"
    return None


def _refuse(work: Work, faults: list[str]) -> None:
    if faults:
        raise Refused(f"{paths.shown(work.overrides)}: {'; '.join(faults)}")
