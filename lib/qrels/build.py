"""From the verdicts of all questions to the qrels, and to the list of hops that a reviewer has to look at again."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from lib import paths
from lib.qrels import pools, recorded
from lib.qrels.refusals import Refused, Unsettled, run
from lib.qrels.settlement import Settlement, settle
from lib.qrels.work import Work, read_json, write_lines

REVIEW = "needs_review.jsonl"
Hashes = Mapping[str, str]  # of the cached texts of one question's documents


def build(work: Work, out: str | Path) -> list[str]:
    """Write the qrels, a line a question, to `out`, and `needs_review.jsonl` beside it.

    needs_review is always written: every live hop without support, and every hop whose note asks. The qrels are not while a
    question has no verdicts of today, an entry two answers, a line no question or document, or a question no document left:
    Unsettled lists all of it at once. Two documents with one text and two answers for a hop are a conflict too.
    """
    out = Path(out)
    review = out.with_name(REVIEW)
    if out.name in (REVIEW, work.candidates.name, work.expanded.name):
        raise Refused(f"the qrels cannot be written to {paths.shown(out)}, which is another file of the line; give --out another name")
    with work.held():
        questions = pools.read(work)
        texts = {qid: recorded.hashes(work, question) for qid, question in questions.items()}
        found, faults = _verdicts(work, questions, texts)
        lines = [(qid, (row["hop"], row["docid"]), int(row["accepted"])) for qid, file in found.items() for row in file["verdicts"]]
        pool = {qid: {(entry["hop"], entry["docid"]) for entry in question["pool"]} for qid, question in questions.items()}
        corpus = {item for qid, items in pool.items() for item in items if item[1] in texts[qid]}
        settled = settle(pool, corpus, lines)
        reviews = [row for qid, question in questions.items() for row in _reviews(question, settled.accepted[qid], qid in found)]
        write_lines(review, reviews)
        told = [f"{paths.shown(review)}: {_number(len(reviews), 'hop')} for the reviewer to look at"]
        faults += _faults(settled, found, questions)
        for qid in found.keys() & questions.keys():
            faults += _twins(qid, found[qid], texts[qid])
        if faults:
            kept = "; the file that is there is of an earlier build" if out.exists() else ""
            raise Unsettled(sorted(faults), [*told, f"{paths.shown(out)} was not written{kept}"])
        rows = [_line(question, found[qid], settled.accepted[qid]) for qid, question in questions.items()]
        write_lines(out, rows)
    released = sum(len(row["documents"]) for row in rows)
    return [f"{paths.shown(out)}: {_number(len(rows), 'question')}, {_number(released, 'relevant document')}", *told]


def line(work: Work, question: dict) -> dict:
    """The line of the qrels that the verdicts of today give for a question; Refused where they do not stand, see `recorded.today`."""
    file = recorded.today(work, question, recorded.hashes(work, question))
    return _line(question, file, [(row["hop"], row["docid"]) for row in file["verdicts"] if row["accepted"]])


def _verdicts(work: Work, questions: Mapping[str, dict], texts: Mapping[str, Hashes]) -> tuple[dict[str, dict], list[str]]:
    """The verdicts files that can be read, those of strangers too, and what is wrong with the other ones."""
    found, faults = {}, []
    for qid, question in questions.items():
        try:
            found[qid] = recorded.today(work, question, texts[qid])
        except Refused as error:
            faults.append(str(error))
    names = {work.verdicts(qid).name for qid in questions}
    for path in sorted(work.verdicts("any").parent.glob("*.json")):
        if path.name in names or path.name.startswith("."):
            continue
        try:
            qid = read_json(path, "remove it")["qid"]
            if work.verdicts(qid).name != path.name:
                raise Refused(f"{paths.shown(path)} holds the verdicts of {qid}, whose file has another name; remove it")
            found[qid] = recorded.read(work, qid)
        except (TypeError, KeyError, AttributeError):
            faults.append(f"{paths.shown(path)} is no verdicts file; remove it")
        except Refused as error:
            faults.append(str(error))
    return found, faults


def _faults(settled: Settlement, found: Mapping[str, dict], questions: Mapping[str, dict]) -> Iterator[str]:
    for qid, (hop, docid) in settled.conflicts:
        yield f"{qid}: hop {hop} of {docid} is both accepted and rejected; leave one answer and {run('verdicts', qid)} again"
    for qid, (hop, docid) in settled.unknown_documents:
        if any((entry["hop"], entry["docid"]) == (hop, docid) for entry in questions[qid]["pool"]):
            yield f"{qid}: {docid} is accepted for hop {hop}, but no text of it is cached, so the corpus may lack it; {run('fetch', qid)}"
        else:
            yield f"{qid}: {docid} is no candidate of hop {hop}; {run('verdicts', qid)} again"
    for qid in settled.unknown_questions:
        yield f"{qid} has verdicts and is no question of candidates.jsonl; remove its file from verdicts/ or run candidates again"
    for qid in settled.empty:
        if qid in found:
            yield f"{qid} is left without documents; add some in the workbook, or take the question out, and run candidates again"


def _twins(qid: str, file: dict, texts: Hashes) -> Iterator[str]:
    """A line for each hop on which documents with one text are accepted and rejected."""
    answers = defaultdict(lambda: {True: {}, False: {}})
    for row in file["verdicts"]:
        if row["docid"] in texts:
            answers[row["hop"], texts[row["docid"]]][row["accepted"]][row["docid"]] = row["by"]
    for (hop, _), given in sorted(answers.items()):
        accepted, rejected = given[True], given[False]
        if accepted and rejected and accepted.keys() != rejected.keys():
            pairs = [", ".join(f"{docid} (by {by})" for docid, by in sorted(side.items())) for side in (accepted, rejected)]
            yield (
                f"{qid}: hop {hop} accepts {pairs[0]} and rejects {pairs[1]}, which have one and the same text; "
                f"give both one answer, an override where a vote stands, and {run('verdicts', qid)} again"
            )


def _reviews(question: dict, accepted: list[tuple[int, str]], has_verdicts: bool) -> Iterator[dict]:
    """A row for each hop without support that is live, and for each whose note asks; a guaranteed vote supports without verdicts too."""
    supported = {hop for hop, _ in accepted} | {entry["hop"] for entry in question["pool"] if entry["state"] == "guaranteed"}
    for hop in question["hops"]:
        reasons = []
        if hop["live"] and hop["hop"] not in supported:
            bare = hop["judgment"] == "No" and "judged No, and " or ""
            reasons.append(f"{bare}no document supports it" if has_verdicts else f"{bare}its candidates have no verdicts of today")
        if hop["note_class"] == "ask":
            reasons.append("its note leaves open whether the hop is needed")
        if reasons:
            kept = {key: hop[key] for key in ("hop", "text", "judgment", "note")}
            yield {"qid": question["qid"], **kept, "reason": "; ".join(reasons), "workbook_sha256": question["workbook_sha256"]}


def _line(question: dict, file: dict, accepted: list[tuple[int, str]]) -> dict:
    """A question of the qrels; `by` names for each of a document's hops, in their order, what accepted it."""
    by = {(row["hop"], row["docid"]): row["by"] for row in file["verdicts"]}
    votes = Counter(vote["vote"] for entry in question["pool"] for vote in entry["votes"])
    none = sum(not entry["votes"] for entry in question["pool"])
    taken, refused = _by_document(accepted), _by_document(by.keys() - set(accepted))
    assert len(by) + sum(entry["state"] == "skipped" for entry in question["pool"]) == len(question["pool"])
    return {
        "qid": question["qid"], "question": question["question"], "workbook_sha256": question["workbook_sha256"],
        "hops": [{key: hop[key] for key in ("hop", "text", "live")} for hop in question["hops"]],
        "documents": [{"docid": docid, "hops": hops, "by": [by[hop, docid] for hop in hops]} for docid, hops in taken],
        "rejected": [{"docid": docid, "hops": hops} for docid, hops in refused],
        "votes": {vote: votes[vote] for vote in pools.VOTES} | {"none": none},
        "pairs": len(question["pool"]), "standards": file["standards"],
    }


def _by_document(pairs) -> list[tuple[str, list[int]]]:
    hops = defaultdict(list)
    for hop, docid in sorted(pairs):
        hops[docid].append(hop)
    return sorted(hops.items())


def _number(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
