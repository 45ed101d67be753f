"""What a reader rejected: `rejections/<qid>.json`, taken whole or refused whole."""

from collections.abc import Iterator
from typing import NamedTuple

from lib import ids, paths
from lib.qrels import documents
from lib.qrels.refusals import Refused, run
from lib.qrels.standards import text_fault
from lib.qrels.work import Work, read_json

KEYS = ("hop", "docid", "sentence", "contrast")
_SETTLED = {
    "bound": "a Does not support vote rejects it already",
    "overridden": "overrides.json accepts it, settle it there",
    "contradiction": "its votes contradict each other, settle it in the workbook or in overrides.json",
    "skipped": "its hop is skipped",
}


class Rejection(NamedTuple):
    """One failure: the sentence of the text that decides it, and the contrast case that would have passed."""

    hop: int
    docid: str
    sentence: str
    contrast: str


def read(work: Work, question: dict) -> dict[tuple[int, str], Rejection]:
    """The rejections of a question by (hop, document); none where there is no file.

    A rejection names a live hop and a pending document of it, or a guaranteed one, which its vote keeps. One fault
    refuses the file: the one Refused lists all of them. Ids may have either spelling; two spellings of one are a repeat.
    """
    path = work.rejections(question["qid"])
    if not path.exists():
        return {}
    qid, form = question["qid"], 'a list of {"hop": 1, "docid": "...", "sentence": "...", "contrast": "..."}'
    given = read_json(path, f"write {form}, [] where every document passes")
    if not isinstance(given, list):
        raise Refused(f"{paths.shown(path)} is refused: it is no list; write {form}, [] where every document passes")
    found, faults = {}, []
    for number, row in enumerate(given, 1):
        own = list(_form_faults(row)) or list(_pool_faults(work, question, row, found))
        if own:
            faults.append(f"rejection {number} {'; '.join(own)}")
        else:
            rejection = Rejection(row["hop"], ids.api(row["docid"]), row["sentence"], row["contrast"])
            found[rejection.hop, rejection.docid] = rejection
    if faults:
        listed = "".join(f"\n  {fault}" for fault in faults)
        raise Refused(f"{paths.shown(path)} is refused, nothing was written for {qid}; mend it and {run('verdicts', qid)} again:{listed}")
    return found


def strays(work: Work, qids: list[str]) -> list[str]:
    """The files in rejections/ that belong to none of the questions: under such a name a rejection would be passed over.

    `q1.JSON` and `q1.json.txt` are such names too; what an editor keeps beside the file itself, as `q1.json~`, is none.
    """
    folder, names = work.rejections("any").parent, {work.rejections(qid).name for qid in qids}
    found = sorted(path.name for path in folder.glob("*") if ".json" in path.name.lower() and not path.name.startswith("."))
    read = tuple(names.intersection(found))
    return [name for name in found if name not in names and not name.startswith(read)]


def _form_faults(row) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"is no object with {', '.join(KEYS)}"
        return
    if unknown := sorted(set(row) - set(KEYS)):
        yield f"has the unknown key {unknown[0]!r}, it takes {', '.join(KEYS)}"
    if missing := [key for key in KEYS if key not in row]:
        yield f"has no {', '.join(missing)}"
        return
    if isinstance(row["hop"], bool) or not isinstance(row["hop"], int):
        yield f"has the hop {row['hop']!r}, which is no whole number"
    if fault := ids.fault(row["docid"]):
        yield f"has the docid {row['docid']!r}, which {fault}"
    for key in ("sentence", "contrast"):
        if fault := text_fault(row[key]):
            yield f"has a {key} that {fault}"


def _pool_faults(work: Work, question: dict, row: dict, found: dict) -> Iterator[str]:
    hop, docid = row["hop"], ids.api(row["docid"])
    live = {known["hop"]: known["live"] for known in question["hops"]}
    states = {entry["docid"]: entry["state"] for entry in question["pool"] if entry["hop"] == hop}
    written = docid if docid == row["docid"] else f"{row['docid']} (that is {docid})"
    if hop not in live:
        yield f"names hop {hop}, the question has {', '.join(map(str, live))}"
    elif not live[hop]:
        yield f"names hop {hop}, which is skipped and not judged"
    elif docid not in states:
        others = sorted({entry["hop"] for entry in question["pool"] if entry["docid"] == docid})
        elsewhere = f", it is one of hop {', '.join(map(str, others))}" if others else " or of any hop"
        yield f"names {written}, which is no candidate of hop {hop}{elsewhere}"
    elif states[docid] not in ("pending", "guaranteed"):
        yield f"names hop {hop} of {written}, which is not pending: {_SETTLED[states[docid]]}"
    elif (hop, docid) in found:
        yield f"names hop {hop} of {written} a second time"
    else:
        try:
            if not documents.occurs(row["sentence"], documents.text(work, docid).text):
                yield f"has a sentence that does not stand in the cached text of {docid}: {row['sentence'][:80]!r}; copy it from the text"
        except documents.Gap as gap:
            yield f"cannot be checked, the text of {docid} is not cached ({gap.reason}); {run('fetch', question['qid'])}"
