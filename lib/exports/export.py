"""Write one released set in every format at once, in one pass over its rows, with a card and a manifest of hashes."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from lib.exports import folder, formats
from lib.exports.folder import Output, Written
from lib.exports.rows import ExportError, by_question, legal

CARD = "README.md"


class Set(NamedTuple):
    """What was written: the data files, and how many questions, pairs and pairs of each grade."""

    files: list[Written]
    questions: int
    pairs: int
    grades: dict[int, int]


def write(
    outdir: str | Path, rows: Iterable[tuple[str, str, int]], queries: Iterable[tuple[str, str]], card: Callable[[Set], str],
    documents: Iterable[tuple[str, str]] | None = None, grades: Collection[int] = (0, 1, 2), facts: dict | None = None,
) -> Set:
    """Write TREC qrels, JSONL, a BEIR folder, the card as README.md and manifest.json into `outdir`, whole or not at all.

    rows: (qid, docid, grade), sorted by both ids as code points; queries: (qid, text) of exactly the questions of the
    rows, in the same order; documents: (docid, text) in the order of the corpus file, None for no corpus file. All are
    read once, as they come. facts: what the manifest says besides files and counts.

    UTF-8, LF, no byte order mark; the same input gives the same bytes. ExportError (rows.by_question, folder.whole), and
    nothing is written.
    """
    with folder.whole(Path(outdir)) as made:
        data = _judgments(made, rows, queries, grades)
        if documents is not None:
            data = data._replace(files=[*data.files, _corpus(made, documents)])
        counts = {"questions": data.questions, "pairs": data.pairs, "grades": {str(grade): n for grade, n in data.grades.items()}}
        folder.write_manifest(made, [*data.files, folder.write_text(made, CARD, card(data))], {"counts": counts} | (facts or {}))
    return data


def _judgments(made: Path, rows: Iterable, queries: Iterable, grades: Collection[int]) -> Set:
    """The three spellings of the pairs and the questions, side by side, so that none can hold what another lacks."""
    found: Counter = Counter(dict.fromkeys(sorted(grades), 0))
    questions = 0
    with ExitStack() as stack:
        trec, jsonl, beir, asked = outputs = [
            stack.enter_context(Output(made, name, formats.BEIR_HEADER if name == formats.BEIR_QRELS else ""))
            for name in (formats.TREC, formats.JSONL, formats.BEIR_QRELS, formats.BEIR_QUERIES)
        ]
        for judged, query in zip_longest(by_question(rows, grades), queries):
            if judged is None or query is None or judged.qid != query[0]:
                raise ExportError(_unmatched(judged and judged.qid, query and query[0]))
            trec.add(formats.trec(judged), len(judged.documents))
            beir.add(formats.beir(judged), len(judged.documents))
            jsonl.add(formats.jsonl(judged))
            asked.add(formats.query(*query))
            found.update(grade for _, grade in judged.documents)
            questions += 1
        if not questions:
            raise ExportError("there is no pair to release; judge first")
    return Set([output.written() for output in outputs], questions, found.total(), dict(found))


def _unmatched(judged: str | None, asked: str | None) -> str:
    if judged is None or asked is not None and asked < judged:
        return f"the question {ascii(asked)} has a text and no pair; give the texts of the judged questions, sorted"
    return f"the question {ascii(judged)} has pairs and no text; give the texts of the judged questions, sorted"


def _corpus(made: Path, documents: Iterable[tuple[str, str]]) -> Written:
    with Output(made, formats.BEIR_CORPUS) as output:
        for docid, text in documents:
            legal("document", docid)
            output.add(formats.document(docid, text))
    return output.written()
