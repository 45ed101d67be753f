"""The first step: a reviewer's workbook x the verified questions, one pool of (hop, document) entries a question.

A hop is skipped only when it is judged No and its note, read as a whole, says that it is not needed. A Supports or Partial
support vote guarantees its entry, also on a skipped hop; Does not support binds, unless `overrides.json` records why not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lib import ids
from lib.qrels import overrides, questions
from lib.qrels import work as places
from lib.qrels.notes import note_class
from lib.qrels.overrides import SUPPORTS, Override
from lib.qrels.pools import VOTES, cast, question, read, sha256
from lib.qrels.questions import Question, Verified
from lib.qrels.refusals import Refused, Unsettled
from lib.qrels.sheets.columns import fold
from lib.qrels.work import Work

__all__ = ["note_class", "question", "read", "sha256", "write"]

POSITIVE = VOTES[:2]
STATES = ("guaranteed", "bound", "overridden", "contradiction", "pending", "skipped")

if TYPE_CHECKING:
    from lib.qrels.workbook import HopRow, VoteRow, Workbook

    Judged = dict[tuple[str, int], HopRow]
    Votes = dict[str, dict[tuple[int, str], list[VoteRow]]]  # by question, then by hop and document


def write(work: Work, workbook_path: str | Path, questions_path: str | Path, columns: Mapping | None = None) -> list[str]:
    """Write `candidates.jsonl`, one line a verified question, and give the lines that say what was joined and what stands out.

    Refused, with every cell in one message, where the workbook speaks of a hop that its question does not have, or judges
    one hop in two ways. Contradictions, and questions without a pool, are raised as Unsettled after the file is written.
    """
    from lib.qrels import workbook  # slow to import, and every later step reads the pools from here

    verified = questions.read(questions_path)
    book = workbook.read(workbook_path) if columns is None else workbook.read(workbook_path, columns)
    with work.held():
        told = [*book.notices, *_join(book, verified)]
        judged, votes = _judged(book, verified), _votes(book, verified)
        recorded = overrides.read(work)
        told += overrides.check(work, recorded, {
            (qid, *entry): [row.vote for row in rows if row.vote] for qid, pool in votes.items() for entry, rows in pool.items()
        })
        lines = [_line(asked, book, verified, judged, votes[asked.qid], recorded) for asked in verified.questions]
        places.write_lines(work.candidates, lines)
    told += _notes(lines) + _on_skipped(lines) + _retold(verified, judged) + _counts(lines)
    left = _without_pool(lines, book, verified) + _contradictions(lines)
    if left:
        raise Unsettled(left, told)
    return told


def state(votes: Iterable[str], override: Override | None, live: bool) -> str:
    """What stands for an entry before anybody reads it, one of STATES; an override beats the votes, which it is recorded against."""
    positive, negative = (any((vote in POSITIVE) is side for vote in votes) for side in (True, False))
    if override and negative:
        return "overridden" if override.verdict == SUPPORTS else "bound"
    if positive:
        return "contradiction" if negative else "guaranteed"
    return "bound" if negative else "pending" if live else "skipped"


def _join(book: Workbook, verified: Verified) -> list[str]:
    """How many questions matched; the workbook's others by name. Refused where none did."""
    known = {asked.qid for asked in verified.questions}
    named = dict.fromkeys(row.qid for row in (*book.hops, *book.votes))
    matched, others = [qid for qid in named if qid in known], [qid for qid in named if qid not in known]
    if not matched:
        few = [", ".join(repr(qid) for qid in list(qids)[:3]) or "none" for qids in (named, (asked.qid for asked in verified.questions))]
        raise Refused(
            f"none of the {len(named)} questions of {book.name} ({few[0]}) is among the {len(known)} of {verified.name} ({few[1]}); "
            "give the two files that belong together, ids spelled alike"
        )
    told = [f"{len(matched)} of the {len(named)} questions of {book.name} are among the {len(known)} of {verified.name}"]
    return told + ([f"left out, {len(others)} not verified: {', '.join(others)}"] if others else [])


def _judged(book: Workbook, verified: Verified) -> Judged:
    """The row of each judged hop. Every row and vote on an unknown hop, and every second judgment, is refused, in one message."""
    known = {asked.qid: {hop.hop for hop in asked.hops} for asked in verified.questions}
    found, faults = {}, []
    for row in (*book.hops, *book.votes):
        if row.hop not in known.get(row.qid, {row.hop}):
            there = ", ".join(map(str, sorted(known[row.qid])))
            faults.append(f"{row.cell} names hop {row.hop} of question {row.qid}, which has {there}")
    for row in book.hops:
        first = found.setdefault((row.qid, row.hop), row)
        if row.qid in known and (first.judgment, first.note) != (row.judgment, row.note):
            faults.append(f"{first.cell} and {row.cell} judge hop {row.hop} of question {row.qid} in two ways")
    if faults:
        raise Refused(f"{book.name}: {'; '.join(faults)}; mend these cells, or the hops in {verified.name}")
    return found


def _votes(book: Workbook, verified: Verified) -> Votes:
    """The rows of each entry of the verified questions: the two spellings of a document are one entry."""
    found = {asked.qid: defaultdict(list) for asked in verified.questions}
    for row in book.votes:
        if row.qid in found:
            found[row.qid][row.hop, ids.api(row.docid)].append(row)
    return found


def _line(asked: Question, book: Workbook, verified: Verified, judged: Judged, votes: Mapping, recorded: Mapping) -> dict:
    hops = [_hop(hop.hop, hop.text, judged.get((asked.qid, hop.hop))) for hop in asked.hops]
    live = {hop["hop"]: hop["live"] for hop in hops}
    pool = []
    for (hop, docid), rows in sorted(votes.items()):
        voted, override = [row for row in rows if row.vote], recorded.get((asked.qid, hop, docid))
        pool.append({
            "hop": hop, "docid": docid, "state": state([row.vote for row in voted], override, live[hop]),
            "votes": [{"vote": row.vote, "cell": row.cell} for row in voted], "override": override and override._asdict(),
        })
    return {
        "qid": asked.qid, "question": asked.question, "workbook": book.name, "workbook_sha256": book.sha256,
        "questions_sha256": verified.sha256, "hops": hops, "pool": pool,
    }


def _hop(hop: int, text: str, row: HopRow | None) -> dict:
    """A hop that no row judges is live."""
    judgment, note = (row.judgment, row.note) if row else (None, None)
    kind = note_class(note) if note and note.strip() else None
    return {
        "hop": hop, "text": text, "judgment": judgment, "note": note, "note_class": kind,
        "live": not (judgment == "No" and kind == "skip"), "cell": row.cell if row else None,
    }


def _notes(lines: list[dict]) -> list[str]:
    """Notes that a reader should look at: what they say is not clear, or it is clear and the judgment says something else."""
    told = []
    for line in lines:
        for hop in line["hops"]:
            what = f"{hop['cell']}: hop {hop['hop']} of question {line['qid']} stays live"
            if hop["note_class"] == "ask":
                told.append(f"ask: {what}; whether it is needed does not come out of its note {hop['note']!r}")
            elif hop["note_class"] == "skip" and hop["live"]:
                judgment = hop["judgment"] or "neither Yes nor No"
                told.append(f"{what}: its note {hop['note']!r} says it is not needed, and it is judged {judgment}")
    return told


def _on_skipped(lines: list[dict]) -> list[str]:
    """Votes that guarantee a document on a hop that is skipped."""
    told = []
    for line in lines:
        skipped = {hop["hop"] for hop in line["hops"] if not hop["live"]}
        for entry in line["pool"]:
            if entry["hop"] in skipped and entry["state"] in ("guaranteed", "overridden"):
                told.append(f"{_named(line, entry)} is guaranteed although the hop is skipped: {cast(entry)}")
    return told


def _retold(verified: Verified, judged: Judged) -> list[str]:
    """Hops whose text in the workbook is another one than was verified."""
    return [
        f"{row.cell}: the text of hop {hop.hop} of question {asked.qid} is not the verified one, which is taken"
        for asked in verified.questions for hop in asked.hops
        if (row := judged.get((asked.qid, hop.hop))) and row.text and fold(row.text) != fold(hop.text)
    ]


def _counts(lines: list[dict]) -> list[str]:
    hops = [hop for line in lines for hop in line["hops"]]
    entries = [entry for line in lines for entry in line["pool"]]
    states = Counter(entry["state"] for entry in entries)
    live, ask = sum(hop["live"] for hop in hops), sum(hop["note_class"] == "ask" for hop in hops)
    assert sum(states.values()) == len(entries) and set(states) <= set(STATES)
    return [
        f"questions: {len(lines):,}; hops: {live:,} live, {len(hops) - live:,} skipped, {ask:,} ask",
        f"entries: {len(entries):,} ({', '.join(f'{states[name]:,} {name}' for name in STATES)}); "
        f"documents: {len({entry['docid'] for entry in entries}):,}",
    ]


def _without_pool(lines: list[dict], book: Workbook, verified: Verified) -> list[str]:
    named = {row.qid for row in (*book.hops, *book.votes)}
    return [
        f"question {line['qid']} {'has no document' if line['qid'] in named else 'does not stand'} in {book.name}; "
        f"add it there, or take it out of {verified.name}"
        for line in lines if not line["pool"]
    ]


def _contradictions(lines: list[dict]) -> list[str]:
    return [
        f"{_named(line, entry)} is contradicted: {cast(entry)}; settle it in the workbook, or by a reason and a quote in overrides.json"
        for line in lines for entry in line["pool"] if entry["state"] == "contradiction"
    ]


def _named(line: dict, entry: dict) -> str:
    return overrides.shown((line["qid"], entry["hop"], entry["docid"]))
