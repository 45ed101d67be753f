"""Take the decisions on near copies out of a file: all of them, or none and every reason why."""

import json
from collections.abc import Mapping
from pathlib import Path

from lib import ids, paths
from lib.qrels import closure, decisions, documents, pending, printed, rendered
from lib.qrels.decisions import Recorded
from lib.qrels.documents import Document
from lib.qrels.pending import Scanned
from lib.qrels.refusals import Refused
from lib.qrels.standards import text_fault
from lib.qrels.work import Work, read_json

KEYS = ("hops", "sentence", "contrast")
SHAPE = '{docid: {"hops": [...], "sentence": "...", "contrast": "..."}}, no hops for a rejection'


def apply(work: Work, qid: str, decisions_file: Path) -> list[str]:
    """Record a decision for each document of the file; one that is left out stays pending.

    A decision answers every live hop, with a sentence that stands in the text; where it denies one, it needs a contrast case. Refused
    whole, with all faults: a document that is not pending now or stands there twice, a hop that is not live, a text that no whole
    render has shown as it is today beside today's standards. Decisions that are recorded already, word for word, change nothing.
    """
    with work.held(qid):
        given, faults = _read(Path(decisions_file))
        scanned, marks, recorded = pending.read(work, qid), rendered.read(work, qid), decisions.read(work, qid)
        new, same = {}, []
        for docid, value in given.items():
            found = _shape_faults(value, scanned)
            if not found and docid in recorded and _stands(work, docid, recorded[docid], value, scanned):
                same.append(docid)
                continue
            found += _place_faults(work, docid, scanned)
            if not found:
                document = documents.text(work, docid)
                new[docid] = _decision(value, document, scanned)
                found = _text_faults(new[docid], document, scanned, marks)
            faults += [f"{docid} {fault}" for fault in found]
        if faults:
            raise Refused(f"{paths.shown(decisions_file)} is refused whole, nothing of it is recorded: {'; '.join(faults)}")
        if new:
            decisions.write(work, qid, recorded | new)
    return _told(work, qid, new, same, scanned)


def _told(work: Work, qid: str, new: Mapping[str, Recorded], same: list[str], scanned: Scanned) -> list[str]:
    told = []
    if new:
        accepted = sum(bool(decision.hops) for decision in new.values())
        told.append(f"{paths.shown(work.decisions(qid))}: {len(new)} decided, {accepted} accepted, {len(new) - accepted} rejected")
    if same:
        told.append(f"{qid}: recorded before and left as it is: {len(same)} of the file's decisions")
    left = len(scanned.pending.keys() - new.keys())
    stay = f"{pending.number(left)} of the last scan {'stays' if left == 1 else 'stay'} pending"
    return [*told, f"{qid}: {stay}; {'render and apply again, or ' if left else ''}{pending.SCAN}"]


def _read(path: Path) -> tuple[dict[str, dict], list[str]]:
    """The decisions by document in the API spelling, and the documents and fields that stand there twice."""
    way_out = f"give a JSON object of decisions, {SHAPE}"
    given = read_json(path, way_out, of_pairs=tuple)  # so that a key that stands twice is seen
    if not isinstance(given, tuple):
        raise Refused(f"{paths.shown(path)} is no object; {way_out}")
    found, faults = {}, []
    for key, value in given:
        docid = ids.api(key)
        if docid in found:
            faults.append(f"{docid} stands there twice" + (f", also as {key}" if key != docid else ""))
            continue
        found[docid] = dict(value) if isinstance(value, tuple) else value
        if isinstance(value, tuple) and len(found[docid]) < len(value):
            faults.append(f"{docid} has a field twice")
    return found, faults


def _shape_faults(value, scanned: Scanned) -> list[str]:
    """What is wrong with a decision by itself."""
    if not isinstance(value, dict):
        return [f"has no decision, which is {SHAPE}"]
    faults = [f"has the unknown field {key!r}" for key in sorted(value.keys() - set(KEYS))]
    hops, live = value.get("hops"), scanned.standards.keys()
    known = {hop["hop"] for hop in scanned.question.row["hops"]}
    if not isinstance(hops, list) or any(type(hop) is not int for hop in hops):
        return [*faults, f"has {json.dumps(hops, default=str)[:60]} as hops, not a list of hops"]
    for hop in sorted(set(hops)):
        if hop not in live:
            faults.append(f"is decided for hop {hop}, which {'is not live' if hop in known else 'the question does not have'}")
        elif hops.count(hop) > 1:
            faults.append(f"names hop {hop} twice")
    if fault := "is missing" if "sentence" not in value else text_fault(value["sentence"]):
        faults.append(f"has a sentence that {fault}")
    contrast = value.get("contrast")
    if denied := sorted(live - set(hops)):
        if fault := "is missing" if "contrast" not in value else text_fault(contrast):
            faults.append(f"is denied for {', '.join(f'hop {hop}' for hop in denied)} by a contrast that {fault}")
    elif contrast not in (None, "") and (fault := text_fault(contrast)):
        faults.append(f"has a contrast that {fault}; leave it out where every live hop is accepted")
    return faults


def _decision(value: dict, document: Document, scanned: Scanned) -> Recorded:
    hops, live, contrast = sorted(value["hops"]), sorted(scanned.standards), value.get("contrast") or None
    bars = {str(hop): scanned.standards[hop].sha256 for hop in live}
    return Recorded(hops, live, value["sentence"], contrast, document.sha256, bars)


def _stands(work: Work, docid: str, recorded: Recorded, value: dict, scanned: Scanned) -> bool:
    """Whether a decision of the file is word for word the one that is recorded, and that one still counts in full."""
    said = sorted(value["hops"]), value["sentence"], value.get("contrast") or None
    _, why_open = decisions.counted(recorded, closure.text_sha256(work, docid), scanned.standards)
    return said == (recorded.hops, recorded.sentence, recorded.contrast) and not why_open


def _place_faults(work: Work, docid: str, scanned: Scanned) -> list[str]:
    """Why a document is not to be decided now."""
    if docid in scanned.decided:
        where = paths.shown(work.decisions(scanned.question.row["qid"]))
        return [f"is decided already, otherwise; to decide it anew take it out of {where}"]
    if docid not in scanned.pending:
        return [f"is not pending; take it out of the file, or {pending.SCAN}"]
    try:
        twin = scanned.relevant.get(documents.text(work, docid).sha256, docid)
    except documents.Gap as gap:
        return [f"has no text ({gap.reason}); run fetch --ids-file {paths.shown(work.fetch_ids)} and render"]
    if twin != docid and docid not in scanned.included:
        return [f"has the text of {twin}, which is relevant and needs no decision; {pending.SCAN}"]
    return []


def _text_faults(decision: Recorded, document: Document, scanned: Scanned, marks: dict) -> list[str]:
    """Why a decision cannot be on what was read."""
    faults = []
    if hidden := [hop for hop, standard in scanned.standards.items() if not rendered.shows(marks, document, hop, standard)]:
        flag = f" --max-chars {len(document.text)}" if len(document.text) > printed.MAX_CHARS else ""
        beside = ", ".join(f"hop {hop}" for hop in hidden)
        way_out = f"run python -m lib.qrels expand render{flag}"
        faults.append(f"was not shown whole with today's text beside today's standards of {beside}; {way_out}")
    if not documents.occurs(decision.sentence, document.text):
        faults.append(f"has a sentence that its text does not hold, {decision.sentence[:80]!r}; copy it from the render")
    return faults
