"""The worksheet of one question: its hops and their standards first, then the full text of every document that is still to judge."""

from collections.abc import Iterator

from lib import paths
from lib.qrels import documents, pools, printed, recorded, rendered, standards
from lib.qrels.documents import Document
from lib.qrels.printed import block, is_whole, quoted, visible
from lib.qrels.refusals import Unsettled, run
from lib.qrels.standards import Standard
from lib.qrels.work import Work


def render(work: Work, qid: str, max_chars: int = printed.MAX_CHARS) -> Iterator[str]:
    """The lines of a worksheet; what was shown whole is remembered only when the line after the last one is asked for.

    So a reader that stops early (`| head`) has been shown nothing. A document is shown once, for all hops that have no standing
    verdict on it yet. After the last line Unsettled lists what cannot be recorded: texts longer than `max_chars` characters,
    which are cut (0 is no limit), and texts that are not cached. Refused as `standards.read` refuses, before the first line.
    """
    printed.check_max_chars(max_chars)
    question = pools.question(work, qid)
    bars = standards.read(work, question)
    asked = _asked(work, question)
    shown, gaps = _texts(work, asked)
    whole = [document for document in shown if is_whole(document.text, max_chars)]
    longest = max((len(document.text) for document in shown), default=0)
    left = list(_left(question, shown, gaps, max_chars, longest))
    yield f"=== question {visible(qid)}: {_standing(work, question, bars, asked, shown)}"
    yield f"=== what fails goes to {paths.shown(work.rejections(qid))}, [] where nothing does; then {run('verdicts', qid)}"
    yield from head(question, bars)
    yield from left
    for document in shown:
        yield ""
        yield from block(document, printed.named_hops(asked[document.docid]), max_chars, longest)
    yield ""
    yield f"=== end of the worksheet of {visible(qid)}: {len(whole)} of {len(asked)} documents shown whole"
    rendered.mark(work, qid, {one.docid: (one.sha256, {hop: bars[hop].sha256 for hop in asked[one.docid]}) for one in whole})
    if left:
        raise Unsettled(left)


def _asked(work: Work, question: dict) -> dict[str, list[int]]:
    """The hops that are still to judge, by document, both ascending."""
    found = {}
    for hop, docid in sorted(recorded.pending(question) - recorded.standing(work, question)):
        found.setdefault(docid, []).append(hop)
    return dict(sorted(found.items()))


def _texts(work: Work, asked: dict[str, list[int]]) -> tuple[list[Document], list[documents.Gap]]:
    shown, gaps = [], []
    for docid in asked:
        try:
            shown.append(documents.text(work, docid))
        except documents.Gap as gap:
            gaps.append(gap)
    return shown, gaps


def _left(question: dict, shown: list[Document], gaps: list[documents.Gap], max_chars: int, longest: int) -> Iterator[str]:
    """What this render does not show whole; one flag shows all of it."""
    for document in shown:
        if not is_whole(document.text, max_chars):
            yield f"{visible(document.docid)}: {printed.truncated(document.text, max_chars, longest)}"
    for gap in gaps:
        yield f"{visible(gap.docid)}: GAP, no text ({visible(gap.reason)}): {run('fetch', question['qid'])} and render again"


def head(question: dict, bars: dict[int, Standard]) -> Iterator[str]:
    """The lines of a question and its hops with their standards; `question` is its line of candidates.jsonl or of the qrels."""
    yield from quoted(question["question"])
    for hop in question["hops"]:
        yield f"=== hop {hop['hop']}: {'live' if hop['live'] else 'skipped, not judged'}{_judgment(hop)}"
        yield from quoted(hop["text"])
        if hop["live"]:
            bar = bars[hop["hop"]]
            yield from quoted(bar.must_state, "must state | ")
            yield from quoted(bar.near_miss, "near miss  | ")


def _judgment(hop: dict) -> str:
    judged = f", judged {hop['judgment']}" if hop.get("judgment") else ""
    judged += ", asked whether it is needed" if hop.get("note_class") == "ask" else ""
    return f"{judged}, note {visible(repr(hop['note']))}" if hop.get("note") else judged


def _standing(work: Work, question: dict, bars: dict[int, Standard], asked: dict[str, list[int]], shown: list[Document]) -> str:
    """What is left of a question, in one line."""
    total = len(recorded.pending(question))
    if not total:
        return "nothing to judge, its votes settle every entry"
    if not asked:
        return f"nothing left to judge; to read it again remove {paths.shown(work.verdicts(question['qid']))}"
    marks = rendered.read(work, question["qid"])
    before = sum(all(rendered.shows(marks, one, hop, bars[hop]) for hop in asked[one.docid]) for one in shown)
    left = sum(map(len, asked.values()))
    return f"{left} of {total} pending entries are left to judge, in {len(asked)} documents, {before} of them shown whole before"
