"""The verdicts files, and which of their verdicts still stand: given for today's entry, text and standard."""

from lib import paths
from lib.qrels import documents, overrides, pools, rejections, standards
from lib.qrels.refusals import Refused, run
from lib.qrels.work import Work, read_json

WAYS = ("silence", "vote", "override", "rejection")
_FILE = {"qid", "question_sha256", "workbook_sha256", "standards", "verdicts", "reports"}
_ROW = {"hop", "docid", "accepted", "by", "sentence", "contrast", "text_sha256", "standard_sha256"}


def pending(question: dict) -> set[tuple[int, str]]:
    """The (hop, document) pairs of a question that a reader has to judge."""
    return {(entry["hop"], entry["docid"]) for entry in question["pool"] if entry["state"] == "pending"}


def answer(entry: dict, is_rejected: bool) -> tuple[bool, str]:
    """Whether an entry is accepted, and by what: a vote or an override where there is one, else the reader's silence or rejection.

    An override may also stand on the side of a Does-not-support vote, where other votes contradict it.
    """
    match entry["state"]:
        case "guaranteed":
            return True, "vote"
        case "bound":
            return False, "override" if entry["override"] else "vote"
        case "overridden":
            return True, "override"
        case "pending":
            return (False, "rejection") if is_rejected else (True, "silence")
    raise Refused(f"hop {entry['hop']} of {entry['docid']} is in the state {entry['state']!r}, which has no verdict; run candidates again")


def read(work: Work, qid: str) -> dict | None:
    """The verdicts file of a question as it was recorded, None where there is none; Refused where it is no such file."""
    path = work.verdicts(qid)
    if not path.exists():
        return None
    way_out = f"delete it and {run('verdicts', qid)}"
    found = read_json(path, way_out)
    if _is_file(found) and found["qid"] == qid:
        return found
    raise Refused(f"{paths.shown(path)} is no verdicts file of {qid}; {way_out}")


def _is_file(found) -> bool:
    if not isinstance(found, dict) or set(found) != _FILE or (type(found["verdicts"]), type(found["standards"])) != (list, dict):
        return False
    return all(
        isinstance(row, dict) and set(row) == _ROW and type(row["hop"]) is int and isinstance(row["docid"], str)
        and type(row["accepted"]) is bool and row["by"] in WAYS for row in found["verdicts"]
    )


def standing(work: Work, question: dict) -> set[tuple[int, str]]:
    """The (hop, document) pairs whose verdict still stands, see `fault`; none for another line of candidates.jsonl."""
    found = read(work, question["qid"])
    if found is None or found["question_sha256"] != pools.sha256(question):
        return set()
    bars, texts = _bars(work, question), hashes(work, question)
    return {(row["hop"], row["docid"]) for row in found["verdicts"] if fault(row, texts.get(row["docid"]), bars.get(row["hop"])) is None}


def fault(row: dict, text_sha256: str | None, standard_sha256: str | None) -> str | None:
    """Why a verdict is not today's, or None: a reader's needs the same text and standard, an override the same text, a vote neither."""
    if row["by"] != "vote" and row["text_sha256"] != text_sha256:
        return "another text of the document" if text_sha256 else "a text that is no longer cached"
    if row["by"] in ("silence", "rejection") and row["standard_sha256"] != standard_sha256:
        return "another standard of the hop"
    return None


def is_heard(work: Work, question: dict, found: dict) -> bool:
    """Whether a verdicts file holds just what the rejections file says of pending entries, where there is one; Refused where that is faulty."""
    if not work.rejections(question["qid"]).exists():
        return True
    asked = pending(question)
    given = {(*entry, one.sentence, one.contrast) for entry, one in rejections.read(work, question).items() if entry in asked}
    return given == {(row["hop"], row["docid"], row["sentence"], row["contrast"]) for row in found["verdicts"] if row["by"] == "rejection"}


def hashes(work: Work, question: dict) -> dict[str, str]:
    """The hashes of the cached texts of a question's pool by document; gaps are left out."""
    found = {}
    for docid in {entry["docid"] for entry in question["pool"]}:
        try:
            found[docid] = documents.text(work, docid).sha256
        except documents.Gap:
            pass
    return found


def today(work: Work, question: dict, texts: dict[str, str]) -> dict:
    """The verdicts file of a question, where its verdicts still stand, answer every entry of the pool and hold its rejections and overrides; else Refused.

    `texts` holds the hashes of the cached texts. What stands twice in it, or is in no pool, is left for `settlement.settle` to find.
    """
    qid = question["qid"]
    found, path = read(work, qid), paths.shown(work.verdicts(qid))
    if found is None:
        raise Refused(f"{qid} has no verdicts; judge it and {run('verdicts', qid)}")
    if found["question_sha256"] != pools.sha256(question):
        raise Refused(f"{path} was recorded for another line of candidates.jsonl; {run('verdicts', qid)} again")
    bars, pool = _bars(work, question), {(entry["hop"], entry["docid"]) for entry in question["pool"]}
    for row in found["verdicts"]:
        why = fault(row, texts.get(row["docid"]), bars.get(row["hop"]))
        if why and (row["hop"], row["docid"]) in pool:
            raise Refused(f"{path} judges hop {row['hop']} of {row['docid']} by {why}; {run('worksheet', qid)}, then {run('verdicts', qid)}")
    given = {(row["hop"], row["docid"]): row for row in found["verdicts"]}
    for entry in question["pool"]:
        if entry["state"] == "skipped":
            continue
        row = given.get((entry["hop"], entry["docid"]))
        if row is None or (row["accepted"], row["by"]) not in (answer(entry, False), answer(entry, True)):
            what = "has no verdict on" if row is None else "answers against the votes on"
            raise Refused(f"{path} {what} hop {entry['hop']} of {entry['docid']}; {run('verdicts', qid)} again")
    overrides.check_taken(work, question)
    if not is_heard(work, question, found):
        raise Refused(f"{paths.shown(work.rejections(qid))} says something else than {path}, which was recorded before; {run('verdicts', qid)} again")
    return found


def _bars(work: Work, question: dict) -> dict[int, str]:
    if not work.standards(question["qid"]).exists():
        return {}
    return {hop: bar.sha256 for hop, bar in standards.read(work, question).items()}
