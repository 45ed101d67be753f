"""A pair of a run by the ids of its query and its document."""

from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc

from lib import corpus, ids, paths


class Unknown(ValueError):
    """No such query or document in the run."""


class Located(NamedTuple):
    """A pair: its ids as the run spells them, its corpus rows, and the query's part with its first row."""

    qid: str
    docid: str
    query: int
    doc: int
    part: str
    first: int


def _row(column, value: str, kind: str, run: Path) -> int:
    at = pc.index(column, value).as_py()
    if at < 0:
        raise Unknown(f"{paths.shown(run)} has no {kind} {ascii(value)}; its {kind} ids are like {column[0].as_py() if len(column) else 'nothing'}")
    return at


def pair(run: str | Path, qid: str, docid: str) -> Located:
    """Where a pair stands, the document in either spelling; Unknown where the run has no such id."""
    queries = corpus.all_queries(run, ["qid"])["qid"]
    documents = corpus.all_documents(run, ["docid"])["docid"]
    query = _row(queries, qid, "query", run)
    try:
        doc = _row(documents, docid, "document", run)
    except Unknown:
        doc = next((at for other in (ids.api(docid), ids.analysis(docid)) if (at := pc.index(documents, other).as_py()) >= 0), None)
        if doc is None:
            raise
    part = next(part for part in corpus.parts(run, "queries") if part.first <= query < part.first + part.rows)
    return Located(qid, documents[doc].as_py(), query, doc, part.shard, part.first)
