"""A BEIR folder: corpus.jsonl, queries.jsonl and qrels/*.tsv (Thakur et al. 2021)."""

from collections.abc import Iterator
from pathlib import Path

from lib import paths
from lib.corpus.lines import Place, Refused, field, lines, objects
from lib.corpus.trec import Judged, grade

HEADER = "query-id\tcorpus-id\tscore"


def documents(folder: str | Path) -> Iterator[tuple[Place, dict]]:
    """Rows for `write`: the text is the title, a line break and the text, or the text alone where the title is empty."""
    for place, row in objects(_file(folder, "corpus.jsonl")):
        title, text = field(place, row, "title", str, ""), field(place, row, "text")
        yield place, {"docid": field(place, row, "_id"), "text": f"{title}\n{text}" if title else text}


def queries(folder: str | Path) -> Iterator[tuple[Place, dict]]:
    """Rows for `write`: the queries of every split, which `keep_queries` can narrow down."""
    for place, row in objects(_file(folder, "queries.jsonl")):
        yield place, {"qid": field(place, row, "_id"), "text": field(place, row, "text")}


def splits(folder: str | Path) -> list[Path]:
    """The qrels files of the folder, `qrels/test.tsv` and the like, by name; there may be none."""
    return sorted((paths.source(folder) / "qrels").glob("*.tsv"))


def qrels(path: str | Path) -> Iterator[Judged]:
    """The judgments of one split: a header, then qid, docid and grade between tabs."""
    for n, (place, line) in enumerate(lines(path)):
        if n == 0:
            if line != HEADER:
                raise Refused(f"{place} is {line[:60]!r}; a BEIR qrels file starts with query-id, corpus-id and score between tabs")
            continue
        columns = line.split("\t")
        if len(columns) != 3:
            raise Refused(f"{place} has {len(columns)} columns between tabs, not qid, docid and grade")
        yield Judged(place, columns[0], columns[1], grade(place, columns[2]))


def _file(folder: str | Path, name: str) -> Path:
    """`name`, or `name.gz` where only that is there."""
    folder = paths.source(folder)
    packed = folder / f"{name}.gz"
    return packed if packed.exists() and not (folder / name).exists() else folder / name
