"""The expansion of every question over the duplicate files, as far as the recorded decisions go."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lib import ids, paths
from lib.qrels import decisions, documents, standards
from lib.qrels.duplicates import Decision, Expansion, expand
from lib.qrels.exact import ExactDuplicates
from lib.qrels.near_duplicates import near
from lib.qrels.refusals import Refused
from lib.qrels.work import Work, read_lines


class Question(NamedTuple):
    """A line of qrels.jsonl, and what the judging loop says of its documents in the API spelling."""

    row: dict
    live: list[int]
    seeds: dict[str, list[int]]
    rejected: dict[str, list[int]]


class Closed(NamedTuple):
    """A question with its expansion; `reopened` says for each pending document that was decided before why it is open again."""

    question: Question
    expansion: Expansion
    reopened: dict[str, str]


def questions(qrels: Path) -> dict[str, Question]:
    """The questions of what `build` wrote, in its order; Refused where a line is none, or a question stands twice."""
    found = {}
    for row in read_lines(qrels, "run python -m lib.qrels build, or name its file by --qrels"):
        try:
            live = [hop["hop"] for hop in row["hops"] if hop["live"]]
            judged = ({ids.api(each["docid"]): each["hops"] for each in row[name]} for name in ("documents", "rejected"))
            one = Question(row, live, *judged)
            if row["qid"] in found or len(one.seeds) < len(row["documents"]) or len(one.rejected) < len(row["rejected"]):
                raise Refused(f"{paths.shown(qrels)} names {row['qid']!r} or a document of it twice; run python -m lib.qrels build again")
        except (KeyError, TypeError) as error:
            name = row.get("qid", f"question {len(found) + 1}")
            raise Refused(f"{paths.shown(qrels)}: {name} is no line of qrels ({error!r}); run python -m lib.qrels build again") from error
        found[row["qid"]] = one
    if not found:
        raise Refused(f"{paths.shown(qrels)} holds no question; run python -m lib.qrels build")
    return found


class _Copies:
    """The classes of exact copies among documents, by the file and by equal cached texts; each document is looked up once."""

    def __init__(self, work: Work, exact_dups: Path):
        self._work, self._exact = work, ExactDuplicates(exact_dups)
        self._class: dict[str, frozenset[str]] = {}
        self._text: dict[str, str | None] = {}

    def text_sha256(self, docid: str) -> str | None:
        if docid not in self._text:
            self._text[docid] = text_sha256(self._work, docid)
        return self._text[docid]

    def groups(self, docids: set[str], decided: dict[str, str]) -> Iterator[Collection[str]]:
        """Groups that may overlap; `decided` has the hashes of texts that were decided on, they stand in where a text is not cached."""
        new = docids - self._class.keys()
        self._class |= {docid: members for members in self._exact.classes(new) for docid in members}
        self._class |= {docid: frozenset((docid,)) for docid in new - self._class.keys()}
        known, equal = set(docids), defaultdict(set)
        for members in {self._class[docid] for docid in docids}:
            known |= members
            yield members
        for docid in known:
            if sha256 := self.text_sha256(docid) or decided.get(docid):
                equal[sha256].add(docid)
        yield from equal.values()


def text_sha256(work: Work, docid: str) -> str | None:
    """The hash of the cached text of a document, None where there is none."""
    try:
        return documents.text(work, docid).sha256
    except documents.Gap:
        return None


def closure(work: Work, qrels: Path, near_dups: Path, exact_dups: Path) -> dict[str, Closed]:
    """Expand every question until the neighbours of all included documents are looked up; nothing but the cache of `near` is written.

    Refused where an included document has no row in the near-duplicate files: that is how two spellings of an id show.
    """
    asked, copies, edges = questions(qrels), _Copies(work, exact_dups), {}
    taken = {qid: _taken(work, qid, question, copies) for qid, question in asked.items()}
    found, left = {}, list(asked)
    while left:
        for qid in left:
            found[qid] = _expanded(asked[qid], *taken[qid][:2], copies, edges)
        missing = sorted({docid for expansion in found.values() for docid in expansion.missing})
        left = [qid for qid in left if found[qid].missing]
        if missing:
            for docid, nearest in near.neighbours(near_dups, missing, work.expand / "near").items():
                edges[ids.api(docid)] = {ids.api(other): shortest(jaccard) for other, jaccard in nearest.items()}
    reopened = {qid: {docid: why for docid, why in taken[qid][2].items() if docid in found[qid].pending} for qid in asked}
    return {qid: Closed(asked[qid], found[qid], reopened[qid]) for qid in asked}


def shortest(jaccard: float) -> float:
    """A Jaccard as it is written: the shortest decimal that is the same float32, so 0.7 and not 0.699999988079071."""
    return float(str(np.float32(jaccard)))


def _taken(work: Work, qid: str, question: Question, copies: _Copies) -> tuple[dict[str, Decision], dict[str, str], dict[str, str]]:
    """What the recorded decisions say today, the hashes of their texts, and what is reopened."""
    recorded = decisions.read(work, qid)
    bars = standards.read(work, question.row) if recorded else {}
    said, reopened = {}, {}
    for docid, decision in sorted(recorded.items()):
        said[docid], why = decisions.counted(decision, copies.text_sha256(docid), bars)
        if why:
            reopened[docid] = " and ".join(why)
    counts = {docid: recorded[docid].text_sha256 for docid, decision in said.items() if decision.live}
    return {docid: said[docid] for docid in counts}, counts, reopened


def _expanded(
    question: Question, said: dict[str, Decision], texts: dict[str, str], copies: _Copies, edges: dict[str, dict[str, float]]
) -> Expansion:
    """Expand one question with the copies of every document that it comes to."""
    known = question.seeds.keys() | question.rejected.keys() | said.keys()
    while True:
        near_by = {docid: edges[docid] for docid in known & edges.keys()}
        expansion = expand(question.seeds, question.live, copies.groups(known, texts), near_by, said, question.rejected)
        reached = set(expansion.included).union(*(edges.get(docid, ()) for docid in expansion.included))
        if reached <= known:
            return expansion
        known |= reached
