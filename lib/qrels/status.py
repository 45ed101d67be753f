"""Where each question stands: what is cached, shown whole, recorded, built and expanded, and the step that comes next."""

from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from lib.qrels import current, decisions, documents, overrides, pending, pools, recorded, rendered, standards
from lib.qrels.refusals import Refused, option
from lib.qrels.work import Work, read_lines


class Standing(NamedTuple):
    """One question; None where the work has not come to it, or where what it left is not of today.

    `entries` are (hop, document) pairs of the pool, `pending` those that a reader judges; `shown` counts the pending ones that a
    whole render has shown beside today's standards, `verdicts` those that stand. `relevant` and `expanded` are documents.
    """

    question: str
    live: int
    skipped: int
    entries: int
    documents: int
    cached: int
    pending: int
    shown: int | None
    verdicts: int
    relevant: int | None
    copies_judged: int
    copies_left: int | None
    expanded: int | None
    next: str


def standings(work: Work) -> list[Standing]:
    """One row a question of candidates.jsonl, in its order."""
    built, closed, kept = _by_question(work.qrels), _by_question(work.expanded), current.exported(work)
    questions = pools.read(work)
    built = {qid: row for qid, row in built.items() if qid in questions and current.is_built(work, questions[qid], row)}
    closed = {qid: row for qid, row in closed.items() if qid in built and current.is_exported(work, kept, qid, built[qid])}
    return [_standing(work, question, built.get(qid), closed.get(qid)) for qid, question in questions.items()]


def _by_question(path: Path) -> dict[str, dict]:
    return {row["qid"]: row for row in read_lines(path, "run the step that writes it again")} if path.exists() else {}


def _standing(work: Work, question: dict, built: dict | None, closed: dict | None) -> Standing:
    qid, pool, live = question["qid"], question["pool"], sum(hop["live"] for hop in question["hops"])
    cached, wanted = recorded.hashes(work, question), {entry["docid"] for entry in pool}
    to_judge, stands = recorded.pending(question), recorded.standing(work, question)
    answered = {(entry["hop"], entry["docid"]) for entry in pool if entry["state"] != "skipped"}
    one = Standing(
        qid, live, len(question["hops"]) - live, len(pool), len(wanted), len(cached), len(to_judge), _shown(work, question, to_judge), len(stands),
        len(built["documents"]) if built else None, len(decisions.read(work, qid)), _left(work, qid) if built else None,
        len(closed["documents"]) if closed else None, "",
    )
    try:
        overrides.check_taken(work, question)
    except Refused:
        return one._replace(next="candidates")
    if any(entry["state"] == "contradiction" for entry in pool):
        return one._replace(next="settle what contradicts itself")
    return one._replace(next=_next(one, bool(answered - stands) or not _is_heard(work, question)))


def _is_heard(work: Work, question: dict) -> bool:
    try:
        return recorded.is_heard(work, question, recorded.read(work, question["qid"]))
    except Refused:
        return False


def _shown(work: Work, question: dict, to_judge: set[tuple[int, str]]) -> int | None:
    try:
        bars, marks = standards.read(work, question), rendered.read(work, question["qid"])
    except Refused:
        return None
    shown = 0
    for hop, docid in to_judge:
        try:
            shown += rendered.shows(marks, documents.text(work, docid), hop, bars[hop])
        except documents.Gap:
            pass
    return shown


def _left(work: Work, qid: str) -> int | None:
    """How many copies the last scan left and nobody has decided since; None where there was no scan of today's qrels."""
    try:
        return len(pending.read(work, qid, work.qrels).pending)
    except Refused:
        return None


def _next(one: Standing, unanswered: bool) -> str:
    qid = option(one.question)
    if one.cached < one.documents:
        return f"fetch {qid}"
    if unanswered and one.shown is None:
        return "write its standards"
    if unanswered:
        return f"worksheet {qid}" if one.shown < one.pending else f"verdicts {qid}"
    if one.relevant is None:
        return "build"
    if one.copies_left is None:
        return "expand scan"
    if one.copies_left:
        return f"expand render {qid}"
    return "expand scan, or expand export" if one.expanded is None else "release"


def lines(work: Work) -> list[str]:
    """The rows as a table of text; a dash is what the work has not come to."""
    cells = [["-" if cell is None else cell for cell in one] for one in standings(work)]
    names = [name.replace("_", " ") for name in Standing._fields]
    return tabulate(cells, names, "simple", disable_numparse=True, colalign=["left", *["right"] * (len(names) - 2), "left"]).splitlines()
