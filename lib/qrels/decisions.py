"""The decisions on near copies of a question, and what of them still counts today."""

from collections.abc import Mapping
from typing import NamedTuple

from lib import files, ids, paths
from lib.qrels.duplicates import Decision
from lib.qrels.refusals import Refused
from lib.qrels.standards import Standard
from lib.qrels.work import Work, read_json


class Recorded(NamedTuple):
    """A decision as it was taken: the hops supported, of those that were live, on this text and by these standards (hashes by hop)."""

    hops: list[int]
    live: list[int]
    sentence: str
    contrast: str | None
    text_sha256: str
    standards: dict[str, str]


def read(work: Work, qid: str) -> dict[str, Recorded]:
    """The recorded decisions of a question by document; Refused where the file is no such file."""
    path = work.decisions(qid)
    if not path.exists():
        return {}
    way_out = "restore it, or take out the decision and judge that document again"
    found = read_json(path, way_out)
    if not isinstance(found, dict):
        raise Refused(f"{paths.shown(path)} is no object of decisions by document; {way_out}")
    for docid, decision in found.items():
        if fault := ids.fault(docid) or (ids.api(docid) != docid and f"is not spelled {ids.api(docid)}") or _fault(decision):
            raise Refused(f"{paths.shown(path)}: {docid!r} {fault}; {way_out}")
    return {docid: Recorded(**decision) for docid, decision in found.items()}


def _fault(decision) -> str | None:
    if not isinstance(decision, dict) or set(decision) != set(Recorded._fields):
        return f"has not exactly the fields {', '.join(Recorded._fields)}"
    for name in ("hops", "live"):
        if not isinstance(decision[name], list) or any(type(hop) is not int for hop in decision[name]):
            return f"has no list of hops as {name}"
    if not set(decision["hops"]) <= set(decision["live"]):
        return "supports a hop that was not live"
    if not isinstance(decision["standards"], dict) or set(decision["standards"]) != set(map(str, decision["live"])):
        return "has not one standard for each hop that was live"
    return None if isinstance(decision["text_sha256"], str) else "has no hash of its text"


def write(work: Work, qid: str, decisions: Mapping[str, Recorded]) -> None:
    files.write_json(work.decisions(qid), {docid: decisions[docid]._asdict() for docid in sorted(decisions)})


def counted(decision: Recorded, text_sha256: str | None, standards: Mapping[int, Standard]) -> tuple[Decision, list[str]]:
    """What a decision says today of the live hops, those of `standards`, and why it does not speak of the others.

    It does not speak of a hop whose standard changed or that went live later, and of none where the text changed; a text that is
    not cached now (None) has not changed.
    """
    if text_sha256 not in (None, decision.text_sha256):
        return Decision((), ()), ["its text changed"]
    later = [f"hop {hop} went live later" for hop in sorted(standards.keys() - set(decision.live))]
    same = {hop for hop in decision.live if hop in standards and standards[hop].sha256 == decision.standards[str(hop)]}
    changed = [f"the standard of hop {hop} changed" for hop in sorted(decision.live) if hop in standards and hop not in same]
    return Decision(sorted(same.intersection(decision.hops)), sorted(same)), changed + later
