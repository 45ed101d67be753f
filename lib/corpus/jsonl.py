"""Documents and queries from JSON Lines: one object a line, its other fields are passed over."""

from collections.abc import Iterator
from pathlib import Path

from lib.corpus.lines import Place, field, objects


def documents(path: str | Path, docid: str = "docid", text: str = "text") -> Iterator[tuple[Place, dict]]:
    """Rows for `write`; `docid` and `text` name the fields, `removed` (true or false) may be there."""
    for place, row in objects(path):
        yield place, {
            "docid": field(place, row, docid), "text": field(place, row, text), "removed": field(place, row, "removed", bool, False),
        }


def queries(path: str | Path, qid: str = "qid", text: str = "text", source: str = "source_docid") -> Iterator[tuple[Place, dict]]:
    """Rows for `write`; the field named by `source`, the docid of the page a query was taken from, may be null or missing."""
    for place, row in objects(path):
        yield place, {
            "qid": field(place, row, qid), "text": field(place, row, text),
            "source_docid": field(place, row, source, (str, type(None)), None),
        }
