"""From a question's rejections to a verdict on each of its entries: only failures are recorded, silence accepts the rest."""

from collections import Counter

from lib import files, paths
from lib.processes import Locked
from lib.qrels import documents, overrides, pools, printed, recorded, rejections, rendered, standards
from lib.qrels.documents import Document
from lib.qrels.refusals import Refused, Unsettled, run
from lib.qrels.rejections import Rejection
from lib.qrels.standards import Standard
from lib.qrels.work import Work


def record(work: Work, qid: str) -> list[str]:
    """Write `verdicts/<qid>.json`: what is not in the question's rejections is accepted.

    Silence accepts, and a rejection counts, only where a whole render has shown today's text of the document beside
    today's standard of the hop; Unsettled lists what was not shown, and nothing is written. A vote wins against a
    rejection, which is reported. Refused: contradicting votes, overrides that candidates.jsonl has not taken up, a faulty
    rejections file, standards that are missing.
    """
    with work.held(qid):
        question = pools.question(work, qid)
        _check_names(work, question)
        return _record(work, question)


def record_all(work: Work) -> list[str]:
    """Record each question that has a rejections file, has nothing pending, or is recorded already.

    The other ones, and those that were refused, are listed by Unsettled after everything else was written.
    """
    questions = pools.read(work)
    said, left = [], [_stray(name) for name in rejections.strays(work, list(questions))]
    for qid, question in questions.items():
        try:
            if work.rejections(qid).exists() or _was_silent(work, question):
                with work.held(qid):
                    said += _record(work, question)
            else:
                where = paths.shown(work.rejections(qid))
                left.append(f"{qid} is not judged yet: write {where}, [] where every document passes, or {run('verdicts', qid)}")
        except Unsettled as error:
            left += error.lines
        except (Refused, Locked) as error:
            left.append(str(error))
    if left:
        raise Unsettled(left, said)
    return said


def _was_silent(work: Work, question: dict) -> bool:
    """Whether nothing is pending, or all of it was recorded as accepted by silence and still stands."""
    asked = recorded.pending(question)
    if not asked:
        return True
    if not asked <= recorded.standing(work, question):
        return False
    return all(row["by"] != "rejection" for row in recorded.read(work, question["qid"])["verdicts"])


def _stray(name: str) -> str:
    return f"rejections/{name} belongs to no question of candidates.jsonl; rename it, or remove it"


def _check_names(work: Work, question: dict) -> None:
    """Silence is taken for consent only where no rejections lie beside it under a name that nobody reads."""
    qid = question["qid"]
    if not work.rejections(qid).exists():
        if names := rejections.strays(work, list(pools.read(work))):
            raise Refused(f"{_stray(names[0])}; the rejections of {qid} are read from {paths.shown(work.rejections(qid))}")


def _record(work: Work, question: dict) -> list[str]:
    qid = question["qid"]
    if against := [entry for entry in question["pool"] if entry["state"] == "contradiction"]:
        listed = "; ".join(f"hop {entry['hop']} of {entry['docid']} ({pools.cast(entry)})" for entry in against)
        raise Refused(f"the votes of {qid} contradict each other: {listed}; settle them in the workbook or overrides.json and run candidates")
    overrides.check_taken(work, question)
    bars = standards.read(work, question) if recorded.pending(question) or work.standards(qid).exists() else {}
    rejected = rejections.read(work, question)
    texts, gaps = _texts(work, question)
    if left := [*_unread(work, question, bars, texts, gaps), *_false_quotes(question, texts, gaps)]:
        raise Unsettled([f"{line}; nothing was written for {qid}" for line in left])
    judged = [entry for entry in question["pool"] if entry["state"] != "skipped"]
    rows = [_row(entry, rejected.get((entry["hop"], entry["docid"])), bars, texts) for entry in judged]
    reports = [line for entry in question["pool"] for line in _reports(question, entry, rejected)]
    files.write_json(work.verdicts(qid), {
        "qid": qid, "question_sha256": pools.sha256(question), "workbook_sha256": question["workbook_sha256"],
        "standards": {str(hop): bar.sha256 for hop, bar in bars.items()},
        "verdicts": sorted(rows, key=lambda row: (row["hop"], row["docid"])), "reports": reports,
    })
    return [f"{paths.shown(work.verdicts(qid))}: {_counts(rows)}", *reports]


def _texts(work: Work, question: dict) -> tuple[dict[str, Document], dict[str, str]]:
    """The cached texts of the pool, and the reasons for the gaps."""
    texts, gaps = {}, {}
    for docid in sorted({entry["docid"] for entry in question["pool"]}):
        try:
            texts[docid] = documents.text(work, docid)
        except documents.Gap as gap:
            gaps[docid] = gap.reason
    return texts, gaps


def _unread(work: Work, question: dict, bars: dict[int, Standard], texts: dict[str, Document], gaps: dict[str, str]) -> list[str]:
    """A line for each document with a pending entry that no whole render has shown as it is today."""
    qid, hops = question["qid"], {}
    marks = rendered.read(work, qid)
    for hop, docid in sorted(recorded.pending(question)):
        if docid in gaps or not rendered.shows(marks, texts[docid], hop, bars[hop]):
            hops.setdefault(docid, []).append(hop)
    longest = max((len(texts[docid].text) for docid in hops if docid in texts), default=0)
    flag = f" --max-chars {longest}" if longest > printed.MAX_CHARS else ""
    lines = []
    for docid in sorted(hops):
        about = f"{docid} ({printed.named_hops(hops[docid])}) of {qid}"
        if docid in gaps:
            lines.append(f"{about} has no cached text ({gaps[docid]}): {run('fetch', qid)}, then {run('worksheet', qid)}")
        else:
            lines.append(f"{about} was not shown whole with today's text and standards: {run('worksheet', qid, flag)}")
    return lines


def _false_quotes(question: dict, texts: dict[str, Document], gaps: dict[str, str]) -> list[str]:
    """A line for each override whose quote does not stand in the text that it overrides the vote for."""
    lines = []
    for entry in question["pool"]:
        if entry["override"]:
            about, docid = f"the override on hop {entry['hop']} of {entry['docid']} of {question['qid']}", entry["docid"]
            if docid in gaps:
                lines.append(f"{about} cannot be checked, the text is not cached ({gaps[docid]}): {run('fetch', question['qid'])}")
            elif not documents.occurs(entry["override"]["quote"], texts[docid].text):
                quote = entry["override"]["quote"][:80]
                lines.append(f"{about} quotes {quote!r}, which the text does not hold: copy it from the text, then run candidates")
    return lines


def _row(entry: dict, rejection: Rejection | None, bars: dict[int, Standard], texts: dict[str, Document]) -> dict:
    accepted, by = recorded.answer(entry, rejection is not None)
    sentence, contrast = (rejection.sentence, rejection.contrast) if by == "rejection" else (None, None)
    text, bar = texts.get(entry["docid"]), bars.get(entry["hop"])
    return {
        "hop": entry["hop"], "docid": entry["docid"], "accepted": accepted, "by": by,
        "sentence": entry["override"]["quote"] if by == "override" else sentence, "contrast": contrast,
        "text_sha256": text and text.sha256, "standard_sha256": bar and bar.sha256,
    }


def _reports(question: dict, entry: dict, rejected: dict[tuple[int, str], Rejection]) -> list[str]:
    about = f"{question['qid']}: hop {entry['hop']} of {entry['docid']}"
    if entry["state"] not in ("guaranteed", "overridden"):
        return []
    lines = []
    if (entry["hop"], entry["docid"]) in rejected:
        lines.append(f"{about} stays accepted against a rejection: {pools.cast(entry)}")
    if not next(hop["live"] for hop in question["hops"] if hop["hop"] == entry["hop"]):
        lines.append(f"{about} stays accepted on a skipped hop: {pools.cast(entry)}{', overridden' if entry['override'] else ''}")
    return lines


def _counts(rows: list[dict]) -> str:
    def part(accepted: bool) -> str:
        ways = Counter(row["by"] for row in rows if row["accepted"] is accepted)
        each = ", ".join(f"{ways[by]} by {by}" for by in recorded.WAYS if ways[by])
        return f"{ways.total()} {'accepted' if accepted else 'rejected'}{f' ({each})' if each else ''}"

    return f"{part(True)}, {part(False)}"
