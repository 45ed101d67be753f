"""The released qrels: per question, grade 1 only, without per-hop data, in the formats of the field."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from lib import files, ids, paths
from lib.exports import card, export
from lib.exports.export import Set
from lib.exports.rows import ExportError
from lib.qrels import corpus_ids, current, documents
from lib.qrels import work as places
from lib.qrels.build import REVIEW
from lib.qrels.refusals import Refused
from lib.qrels.work import Work

RELEVANT = 1
_FIELDS = {"qid": str, "question": str, "workbook_sha256": str, "documents": list, "rejected": list, "votes": dict, "pairs": int}
_BUILD = "give the file that expand export or build wrote"


def release(work: Work, qrels: Path, outdir: Path, near_dups: Path | None, corpus: Path | None, texts: bool = True) -> list[str]:
    """Write the questions and documents of `qrels` into `outdir` (lib.exports): every document of a question at grade 1.

    `qrels` is the file of `expand export`; that of `build` is taken too, and then card, manifest and the last line say that
    it is not closed over duplicates. The corpus is known from the near-duplicate files, or from a file of ids, which counts
    where both are given. corpus.jsonl holds the released documents; one that was never fetched has the text of
    an exact copy that was. needs_review.jsonl is read beside `qrels`, else in the work folder.

    Refused, and nothing written: no such files, a repeat, two spellings of one document, an id outside the corpus, a question
    without documents, a text that is not cached (release without texts), the work folder's own file where verdicts or decisions
    have changed since.
    """
    qrels = Path(qrels)
    lines = _read(qrels)
    current.check(work, qrels, {line["qid"]: line for line in lines})
    review = next((path for path in (qrels.with_name(REVIEW), work.qrels.with_name(REVIEW)) if path.exists()), None)
    if review is None:
        raise Refused(f"there is no {REVIEW} beside {paths.shown(qrels)} or in the work folder, and the card counts its hops; run build first")
    rows = [(line["qid"], docid, RELEVANT) for line in lines for docid in sorted(ids.api(found["docid"]) for found in line["documents"])]
    released = sorted({docid for _, docid, _ in rows})
    asked = corpus_ids.check(released, near_dups, corpus)
    hops = places.read_lines(review, "run build again")
    try:
        facts = _facts(lines, hops, {path.name: path for path in (qrels, review)}, asked)
    except (KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{paths.shown(qrels)} or {review.name} beside it has a line that no step wrote ({error!r}); {_BUILD}") from error
    queries = [(line["qid"], line["question"]) for line in lines]
    try:
        data = export.write(outdir, rows, queries, lambda data: _card(data, facts), _texts(work, lines, released) if texts else None,
                            grades=(RELEVANT,), facts=facts)
    except ExportError as error:
        raise Refused(f"{paths.shown(qrels)} was not released: {error}") from error
    told = [f"released: {data.pairs:,} pairs of {data.questions:,} questions, {len(released):,} documents, in {paths.shown(outdir)}"]
    return told if facts["closed over duplicates"] else [*told, f"{paths.shown(qrels)} is not closed over duplicates; expand it and release again"]


def _read(path: Path) -> list[dict]:
    """The questions by id; each field that is used has its type, and all lines are of one step."""
    found: dict[str, dict] = {}
    for number, line in enumerate(lines := places.read_lines(path, "run expand export, or build, first"), 1):
        place = f"{paths.shown(path)}, question {number}"
        for name, kind in _FIELDS.items():
            if not isinstance(line.get(name), kind):
                raise Refused(f"{place} has no {name!r} that is a {kind.__name__}; {_BUILD}")
        if ("rounds" in line) != ("rounds" in lines[0]):
            raise Refused(f"{place} is expanded and question 1 is not, or the reverse; {_BUILD}")
        if line["qid"] in found:
            raise Refused(f"{place} is {line['qid']!r} again; a question stands once: {_BUILD}")
        if not line["documents"]:
            raise Refused(f"{place}, {line['qid']!r}, has no document and cannot be released; {_BUILD}")
        for document in line["documents"]:
            fault = ids.fault(document.get("docid")) if isinstance(document, dict) else "is no object"
            if fault:
                raise Refused(f"{place}, {line['qid']!r}, has a document whose id {fault}; {_BUILD}")
        found[line["qid"]] = line
    if not found:
        raise Refused(f"{paths.shown(path)} holds no question; run build first")
    return [found[qid] for qid in sorted(found)]


def _texts(work: Work, lines: list[dict], docids: list[str]) -> Iterator[tuple[str, str]]:
    copies: dict[str, set[str]] = {}  # exact copies of one another: of a class any may be the one that was read
    for document in chain.from_iterable(line["documents"] for line in lines):
        if document.get("origin") == "exact" and document.get("parent"):
            one, other = ids.api(document["docid"]), ids.api(document["parent"])
            copies.setdefault(one, set()).add(other)
            copies.setdefault(other, set()).add(one)
    for docid in docids:
        yield docid, _text(work, docid, copies)


def _text(work: Work, docid: str, copies: dict[str, set[str]]) -> str:
    """The text of a document, or of one of its class."""
    waiting, seen, gap = [docid], {docid}, None
    for member in waiting:
        try:
            return documents.text(work, member).text
        except documents.Gap as error:
            gap = gap or error
            more = sorted(copies.get(member, set()) - seen)
            seen.update(more)
            waiting += more
    way_out = "run fetch --all, for a near copy expand scan and fetch --ids-file, or release with --no-texts"
    raise Refused(f"the text of document {docid} is missing ({gap.reason}); {way_out}") from gap


def _facts(lines: list[dict], review: list[dict], sources: dict[str, Path], asked: dict[str, Path]) -> dict:
    """What the manifest says beside files and counts."""
    included = [document for line in lines for document in line["documents"]]
    origin = Counter(document.get("origin", "judged") for document in included)
    near = [document for line in lines for document in line.get("near", [])]
    votes: Counter = Counter()
    for line in lines:
        votes.update(line["votes"])
    return {
        "closed over duplicates": "rounds" in lines[0],
        "documents": len({ids.api(document["docid"]) for document in included}),
        "origin": {name: origin[name] for name in ("judged", "exact", "near")},
        "pool entries": sum(line["pairs"] for line in lines),
        "votes": dict(votes),
        "rejected": sum(len(line["rejected"]) for line in lines),
        "near copies": {"judged": len(near), "rejected": sum(not document["hops"] for document in near)},
        "needs review": {"hops": len(review), "questions": len({row["qid"] for row in review})},
        "workbooks": sorted({line["workbook_sha256"] for line in lines}),
        "made from": {name: files.sha256(path) for name, path in sorted(sources.items())},
        "corpus": {name: files.sha256(path) for name, path in sorted(asked.items())},
    }


def _card(data: Set, facts: dict) -> str:
    closed, origin, near, review = (facts[name] for name in ("closed over duplicates", "origin", "near copies", "needs review"))
    opening = "For each question the documents that support it, judged from a reviewer's workbook" + (
        " and closed over duplicates of the corpus." if closed else ".\n\n**Not closed over duplicates**: copies of these documents are unjudged."
    )
    by_origin = card.table(["origin", "pairs", "who judged"], [
        ("judged", origin["judged"], "the document was read, or the reviewer voted for it"),
        ("exact", origin["exact"], "an exact copy of an included document; inherits its judgment unread"),
        ("near", origin["near"], f"a near copy, read on its own: {near['judged']:,} were judged, {near['rejected']:,} of them rejected"),
    ])  # fmt: skip
    votes = card.table(["vote", "count"], facts["votes"].items())
    judged = (
        f"{facts['pool entries']:,} pool entries (question, part of the question, document) were judged, by the reviewer's votes below or by reading "
        f"the full text against a standard written before. Only failures were recorded, each with the sentence that decides it; what was shown whole "
        f"and not rejected is accepted. {facts['rejected']:,} documents were rejected for a part they were judged on.\n\n{by_origin}\n\n{votes}"
    )
    rule = (
        "Exact copies inherit; near copies do not, since a copy can drop the very sentence that decides. "
        "Each was judged against all parts of the question; only an accepted one puts its own neighbours up for judgment, and this was repeated until none was left. Edges count in both directions."
        if closed else "The set was released before its expansion: a copy of a relevant document that a system returns counts as unjudged."
    )
    sources = card.table(["source", "sha256"], [*(("workbook", sha256) for sha256 in facts["workbooks"]), *facts["made from"].items()])
    ids_of = f"Every document is in the corpus; its ids were read from {len(facts['corpus']):,} files, whose hashes stand in `manifest.json`."
    limitations = [
        "Still to be reviewed, since no document supports a part of the question or a note leaves open whether it is needed: "
        f"parts {review['hops']:,}, questions {review['questions']:,}. The documents of these questions may not cover them.",
        "A pair without a line is unjudged, not non-relevant; rejected documents have no line either, and there are no 0 lines. "
        "Pools came from the reviewer's workbook: documents outside it were read only where they copy an included one.",
        "Grade 1 is not graded further: full and partial support are the same, and a document may support one part of its question alone. "
        "The assignments to parts are not released.",
        "What was accepted by silence was read, but no sentence was recorded for it.",
        "The corpus is no part of this release: `beir/corpus.jsonl`, where it is there, has the released documents alone.",
        "Copies of one text have a line each; measures that should count a text once need the copies taken together.",
    ]
    return card.write("Relevant documents of each question", opening, data, {RELEVANT: "relevant: supports at least one part of the question"},
                      [("How it was judged", judged), ("Duplicates", rule), ("Sources", f"{sources}\n\n{ids_of}")], limitations)
