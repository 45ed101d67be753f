"""The expansion step by step: scan for near copies, show them, and export what is closed; `apply` takes the decisions between."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from lib import files, paths
from lib.qrels import closure, current, decisions, documents, pending, printed, rendered
from lib.qrels.apply import SHAPE, apply
from lib.qrels.closure import Closed
from lib.qrels.documents import Document
from lib.qrels.duplicates import Conflict
from lib.qrels.pending import Scanned
from lib.qrels.printed import block, is_whole, visible
from lib.qrels.refusals import Refused, Unsettled, option
from lib.qrels.work import Work, write_lines
from lib.qrels.worksheet import head

__all__ = ["CLOSED", "apply", "export", "render", "scan"]
CLOSED = "nothing to scan; closure reached"
SHOWN = 5  # near copies that a scan names of each question


def scan(work: Work, qrels: Path, near_dups: Path, exact_dups: Path) -> list[str]:
    """Write what is left to judge of each question, and `fetch_ids.json`: the documents among it whose text is not cached, and
    those that were accepted whose text is no longer.

    Neighbours are looked up until every included document's are known, so that one scan tells all that can be told before the
    next decision. After everything is written, Unsettled lists every text with two answers.
    """
    with work.held():
        found = closure.closure(work, qrels, near_dups, exact_dups)
        wanted, lost = pending.write(work, qrels, found), _lost(work, found)
        files.write_json(work.fetch_ids, sorted(lost.union(wanted)))
    told = [line for qid, one in found.items() for line in _told(work, qid, one)]
    also = [f"accepted, and no longer cached for a release, {pending.number(len(lost))}: {_fetch(work)}"] if lost else []
    if wanted:
        told.append(f"{len(wanted):,} of their texts {'is' if len(wanted) == 1 else 'are'} not cached: {_fetch(work)}")
    if conflicts := _conflicts(work, found):
        raise Unsettled(conflicts, [*told, *also])
    return [*also, *(told or [CLOSED])]


def _lost(work: Work, found: dict[str, Closed]) -> set[str]:
    """The included documents that were decided and whose text is not cached now."""
    decided = {docid for qid, one in found.items() for docid in decisions.read(work, qid).keys() & one.expansion.included.keys()}
    return {docid for docid in decided if closure.text_sha256(work, docid) is None}


def _told(work: Work, qid: str, closed: Closed) -> Iterator[str]:
    """What is pending of a question, and which of it was decided before."""
    if left := closed.expansion.pending:
        copies = sum(len(members) - 1 for members in closed.expansion.copies)
        also = f", {copies} of them exact copies of others" if copies else ""
        named = [f"{docid} ({printed.named_hops(one.hops)}; {_nearest(one.jaccard, one.parent)})" for docid, one in list(left.items())[:SHOWN]]
        more = f" and {len(left) - SHOWN} more in {paths.shown(work.pending(qid))}" if len(left) > SHOWN else ""
        yield f"{qid}: {pending.number(len(left))} to judge{also}: {'; '.join(named)}{more}"
        for docid, why in closed.reopened.items():
            yield f"{qid}: the decision on {docid} is open again, {why}"


def _conflicts(work: Work, found: dict[str, Closed]) -> list[str]:
    return [_conflict(work, qid, conflict) for qid, one in found.items() for conflict in one.expansion.conflicts]


def _conflict(work: Work, qid: str, conflict: Conflict) -> str:
    accepted, denied = (", ".join(f"{docid} by {by}" for docid, by in side) for side in (conflict.accepted, conflict.denied))
    return (
        f"{qid}: one text has two answers on hop {conflict.hop}, accepted for {accepted}, denied for {denied}; take a decision out of "
        f"{paths.shown(work.decisions(qid))}, or judge the documents of the pool alike and build again, then scan"
    )


def _nearest(jaccard: float, parent: str) -> str:
    return f"Jaccard {jaccard} with {visible(parent)}"


def _fetch(work: Work) -> str:
    return f"run fetch --ids-file {shlex.quote(paths.shown(work.fetch_ids))}"


def render(work: Work, qid: str, qrels: Path, max_chars: int = printed.MAX_CHARS) -> Iterator[str]:
    """The lines of a worksheet of near copies: standards first, then each pending text, to be judged against all live hops.

    Of exact copies one is shown, and counts for all of them. As in `worksheet.render`, what was shown whole is remembered only when
    the line after the last one is asked for, and then Unsettled lists what cannot be decided yet.
    """
    printed.check_max_chars(max_chars)
    scanned = pending.read(work, qid, qrels)
    shown, left = _texts(work, scanned)
    longest = max((len(document.text) for document in shown), default=0)
    whole = {document.sha256 for document in shown if is_whole(document.text, max_chars)}
    left += [f"{visible(one.docid)}: {printed.truncated(one.text, max_chars, longest)}" for one in shown if one.sha256 not in whole]
    yield f"=== question {visible(qid)}: {pending.number(len(scanned.pending))} to judge, {len(shown)} to read, each against all live hops"
    yield f"=== decide each in a file, {SHAPE}; then run expand apply {option(qid)} --decisions FILE"
    yield from head(scanned.question.row, scanned.standards)
    yield from left
    for document in shown:
        row = scanned.pending[document.docid]
        copies = [visible(docid) for docid, other in scanned.pending.items() if other.get("copy_of") == document.docid]
        also = f", also for its exact copies {', '.join(copies)}" if copies else ""
        yield ""
        about = f"{printed.named_hops(scanned.standards)}; {_nearest(row['jaccard'], row['parent'])}{also}"
        yield from block(document, about, max_chars, longest)
    yield ""
    yield f"=== end of the near copies of {visible(qid)}: {len(whole)} of {len(shown)} texts shown whole"
    bars = {hop: standard.sha256 for hop, standard in scanned.standards.items()}
    texts = {docid: closure.text_sha256(work, docid) for docid in scanned.pending}
    rendered.mark(work, qid, {docid: (sha256, bars) for docid, sha256 in texts.items() if sha256 in whole})
    if left:
        raise Unsettled(left)


def _texts(work: Work, scanned: Scanned) -> tuple[list[Document], list[str]]:
    """Each pending text once, by the smallest document that has it, and what cannot be shown."""
    shown, left = {}, []
    for docid in sorted(docid for docid, row in scanned.pending.items() if "copy_of" not in row):
        try:
            document = documents.text(work, docid)
            twin = scanned.relevant.get(document.sha256, docid)
            if twin != docid and docid not in scanned.included:
                left.append(f"{visible(docid)} has the text of {visible(twin)}, which is relevant and needs no reading; {pending.SCAN}")
            else:
                shown.setdefault(document.sha256, document)
        except documents.Gap as gap:
            left.append(f"{visible(docid)}: GAP, no text ({visible(gap.reason)}): {_fetch(work)} and render again")
    return list(shown.values()), left


def export(work: Work, qrels: Path, out: Path, near_dups: Path, exact_dups: Path) -> list[str]:
    """Write the qrels closed over duplicates, a line a question in the order of the qrels.

    Closure is computed again from the files. Refused, and nothing is written, while a near copy is pending or a text has two answers.
    """
    if Path(out).resolve() in (Path(qrels).resolve(), work.candidates.resolve()):
        raise Refused(f"the expanded qrels cannot be written to {paths.shown(out)}, which is read here; give --out another name")
    with work.held():
        found = closure.closure(work, qrels, near_dups, exact_dups)
        if left := {qid: len(one.expansion.pending) for qid, one in found.items() if one.expansion.pending}:
            named = ", ".join(f"{qid} ({count})" for qid, count in list(left.items())[:SHOWN])
            more = f" and {len(left) - SHOWN} more questions" if len(left) > SHOWN else ""
            to_do = f"{pending.number(sum(left.values()))} to judge, of {named}{more}"
            raise Refused(f"closure is not reached: {to_do}; {pending.SCAN}, render and apply")
        if conflicts := _conflicts(work, found):
            raise Refused(f"closure is not reached: {'; '.join(conflicts)}")
        write_lines(Path(out), [_line(one) for one in found.values()])
        if Path(out).resolve() == work.expanded.resolve():
            current.note(work, {qid: one.question.row for qid, one in found.items()})
    relevant = [one.origin for closed in found.values() for one in closed.expansion.included.values()]
    counts = ", ".join(f"{relevant.count(origin):,} {origin}" for origin in ("judged", "exact", "near"))
    return [f"{paths.shown(out)}: {len(found):,} questions, {len(relevant):,} relevant documents ({counts})"]


def _line(closed: Closed) -> dict:
    found, near = closed.expansion, closed.expansion.near.items()
    return closed.question.row | {
        "documents": [{"docid": docid} | each._asdict() | {"hops": sorted(each.hops)} for docid, each in found.included.items()],
        "near": [{"docid": docid, "jaccard": each.jaccard, "hops": sorted(each.hops), "round": each.round} for docid, each in near],
        "classes": [{"docid": min(members), "size": len(members)} for members in found.classes],
        "rounds": found.rounds,
    }
