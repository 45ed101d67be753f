"""Whether what was built and exported is of today: of the verdicts and the decisions as they are now."""

from collections.abc import Mapping
from pathlib import Path

from lib import files, paths
from lib.qrels import build, closure, decisions, pools, standards
from lib.qrels.refusals import Refused
from lib.qrels.work import Work, read_json

_AGAIN = "run python -m lib.qrels build, expand scan and expand export again"


def is_built(work: Work, question: dict, row: dict) -> bool:
    """Whether a line of qrels.jsonl is the one that build would write of the question (its line of candidates.jsonl) today."""
    try:
        return build.line(work, question) == row
    except Refused:
        return False


def note(work: Work, rows: Mapping[str, dict]) -> None:
    """Keep of which lines of the qrels, and of which decisions, the expanded qrels of the work folder were made."""
    files.write_json(work.exported, {
        "expanded_sha256": files.sha256(work.expanded), "questions": {qid: _made_of(work, qid, row) for qid, row in rows.items()},
    })


def exported(work: Work) -> dict[str, dict]:
    """What the last export kept by question; nothing where the expanded qrels are not those that it wrote."""
    if not work.expanded.exists() or not work.exported.exists():
        return {}
    kept = read_json(work.exported, _AGAIN)
    try:
        return kept["questions"] if kept["expanded_sha256"] == files.sha256(work.expanded) else {}
    except (KeyError, TypeError) as error:
        raise Refused(f"{paths.shown(work.exported)} is not what an export writes; {_AGAIN}") from error


def is_exported(work: Work, kept: Mapping[str, dict], qid: str, row: dict) -> bool:
    """Whether the expanded qrels are of this line of the qrels and of the question's decisions as they count now."""
    return kept.get(qid) == _made_of(work, qid, row)


def check(work: Work, qrels: Path, rows: Mapping[str, dict]) -> None:
    """Refuse the work folder's own qrels, or their expansion, where a verdict or a decision has changed since; `rows` are its lines by question.

    Other files are taken as they are, and so is an expansion of which no export has kept anything.
    """
    qrels, built = Path(qrels).resolve(), work.qrels.resolve()
    if qrels not in (built, work.expanded.resolve()) or not work.candidates.exists():
        return
    today = {qid: build.line(work, question) for qid, question in pools.read(work).items()}
    if qrels == built:
        if stale := _unlike(today, rows):
            raise Refused(f"{paths.shown(qrels)} is of other verdicts than there are now on {stale}; run python -m lib.qrels build again")
    elif work.exported.exists():
        if stale := _unlike({qid: _made_of(work, qid, row) for qid, row in today.items()}, exported(work)):
            raise Refused(f"{paths.shown(qrels)} is of other verdicts or decisions than there are now on {stale}; {_AGAIN}")


def _unlike(today: Mapping[str, dict], before: Mapping[str, dict]) -> str:
    """The first five questions that differ, '' where none does."""
    return ", ".join([qid for qid in today | before if today.get(qid) != before.get(qid)][:5])


def _made_of(work: Work, qid: str, row: dict) -> dict:
    """A line of the qrels and the decisions by their hashes, and the documents whose decision is open again: its text or a standard changed."""
    path, recorded = work.decisions(qid), decisions.read(work, qid)
    bars = standards.read(work, row) if recorded else {}
    open_again = [docid for docid in sorted(recorded) if decisions.counted(recorded[docid], closure.text_sha256(work, docid), bars)[1]]
    return {"qrels_line_sha256": pools.sha256(row), "decisions_sha256": files.sha256(path) if path.exists() else None, "open_again": open_again}
