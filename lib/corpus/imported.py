"""Runs and qrels made elsewhere, put into the query parts of a run."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from lib import contracts, paths, processes
from lib.contracts import DEPTH
from lib.corpus import index, replace, tables
from lib.corpus.lines import Place, Refused
from lib.corpus.trec import Judged, Ranked

BATCH = 65536  # lines looked up at once
GRADES = ("clip", "drop")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_RANKED = np.dtype([("query", "i4"), ("doc", "i4"), ("rank", "i4"), ("score", "f4"), ("line", "i8")])
_JUDGED = np.dtype([("query", "i4"), ("doc", "i4"), ("label", "i1"), ("line", "i8")])


def write_route(run: str | Path, rows: Iterable[Ranked], name: str) -> dict[str, int]:
    """Fill `hits/NAME/` from the lines of one run file, in any line order, and give the counts.

    A query's order is its rank column, whose ranks are 1, 2, ... n, each once; scores are stored
    as they are, and queries whose scores rise somewhere are counted. Ranks after 100 are cut and
    counted. A document that stands twice in a query keeps both places (fusion counts the first)
    and is counted. A qid or docid that the run does not have, and a gap in the ranks, are Refused
    with the line. A query without lines has no hits.
    """
    counts = {"lines": 0, "queries with hits": 0, "cut after rank 100": 0, "repeated documents": 0, "queries whose scores rise": 0}

    def part(file: str, found: np.ndarray, piece: tables.Part) -> pa.Table:
        found = found[np.lexsort((found["line"], found["rank"], found["query"]))]
        doc = np.full((piece.rows, DEPTH), -1, dtype=np.int32)
        score = np.zeros((piece.rows, DEPTH), dtype=np.float32)
        starts = np.flatnonzero(np.r_[True, found["query"][1:] != found["query"][:-1]]) if len(found) else np.zeros(0, int)
        for of_query in np.split(found, starts[1:]) if len(found) else []:
            wanted = np.arange(1, len(of_query) + 1)
            wrong = np.flatnonzero(of_query["rank"] != wanted)
            if len(wrong):
                line, rank = of_query["line"][wrong[0]], of_query["rank"][wrong[0]]
                raise Refused(f"{Place(file, line)} has rank {rank} where its query has rank {wanted[wrong[0]]} next; ranks are 1, 2, 3, ... each once")
            top, at = of_query[:DEPTH], of_query["query"][0] - piece.first
            doc[at, : len(top)], score[at, : len(top)] = top["doc"], top["score"]
            counts["queries with hits"] += 1
            counts["cut after rank 100"] += len(of_query) - len(top)
            counts["repeated documents"] += len(top) - len(np.unique(top["doc"]))
            counts["queries whose scores rise"] += bool((np.diff(top["score"]) > 0).any())
        counts["lines"] += len(found)
        return contracts.table("hits", {"doc": contracts.as_places(doc), "score": contracts.as_places(score)})

    _write(run, f"hits/{name}", "hits", rows, _RANKED, part)
    return counts


def is_route(run: str | Path, name: str) -> bool:
    """Whether `hits/NAME/` is finished and was imported, not searched.

    ValueError where it was imported for documents or queries that have changed since: it is not silently searched instead.
    """
    folder = Path(run) / "hits" / name
    lines = contracts.lines(folder) if (folder / "manifest.json").exists() else []
    belongs = {line["corpus"] for line in lines if "corpus" in line}
    if (folder / replace.FORMER).exists() or belongs and belongs != {replace.corpus_hash(Path(run))}:
        raise ValueError(
            f"{paths.shown(folder)} was imported for other documents or queries; import the run again, or remove the folder to have the route searched"
        )
    return bool(belongs)


def write_qrels(run: str | Path, rows: Iterable[Judged], name: str, grades: str | None = None) -> dict[str, int]:
    """Fill `qrels/NAME/` with labels from the lines of one qrels file, and give the counts.

    Rows go by query, then by line. A grade outside 0, 1, 2 is Refused unless `grades` names the
    rule: "clip" makes it the nearest of the three, "drop" leaves the line out; both are counted.
    So are a pair that is judged twice, and a qid or docid that the run does not have, with the line.
    """
    counts = {"labels": 0, "clipped": 0, "dropped": 0} | {f"grade {label}": 0 for label in (0, 1, 2)}

    def graded() -> Iterator[Judged]:
        for row in rows:
            if row.grade in (0, 1, 2):
                yield row
            elif grades == "clip":
                counts["clipped"] += 1
                yield row._replace(grade=min(max(row.grade, 0), 2))
            elif grades == "drop":
                counts["dropped"] += 1
            else:
                raise Refused(f"{row.place} has the grade {row.grade}; labels are 0, 1 and 2, name --grades clip or --grades drop")

    def part(file: str, found: np.ndarray, piece: tables.Part) -> pa.Table:
        by_pair = found[np.lexsort((found["line"], found["doc"], found["query"]))]
        again = np.flatnonzero((by_pair["query"][1:] == by_pair["query"][:-1]) & (by_pair["doc"][1:] == by_pair["doc"][:-1]))
        if len(again):
            first, second = by_pair["line"][again[0]], by_pair["line"][again[0] + 1]
            raise Refused(f"{Place(file, second)} judges the pair of line {first} again; a pair has one grade")
        found = found[np.lexsort((found["line"], found["query"]))]
        for label in (0, 1, 2):
            counts[f"grade {label}"] += int((found["label"] == label).sum())
        counts["labels"] += len(found)
        return _labels(run, found, piece)

    if grades not in (None, *GRADES):
        raise ValueError(f"grades is {grades!r}; it is clip or drop")
    _write(run, f"qrels/{name}", "labels", graded(), _JUDGED, part)
    return counts


def _labels(run: str | Path, found: np.ndarray, piece: tables.Part) -> pa.Table:
    qids = tables.queries(run, piece.shard, ["qid"])["qid"].take(pa.array(found["query"] - piece.first))
    n = len(found)
    return contracts.table("labels", {
        "qid": qids, "docid": _docids(run, found["doc"]), "label": found["label"],
        "query_evaluable": [True] * n, "judge": ["imported"] * n, "version": ["imported"] * n, "stage": ["qrels"] * n,
        "round": [0] * n, "llm_label": [None] * n, "student_score": [None] * n, "prompt_sha256": [None] * n,
        "model": ["imported"] * n,
    })


def _docids(run: str | Path, rows: np.ndarray) -> list[str]:
    found: dict[int, str] = {}
    wanted = np.unique(rows)
    for piece in tables.parts(run, "documents"):
        inside = wanted[(wanted >= piece.first) & (wanted < piece.first + piece.rows)]
        if len(inside):
            column = tables.documents(run, piece.shard, ["docid"])["docid"]
            found |= {int(row): column[int(row) - piece.first].as_py() for row in inside}
    return [found[int(row)] for row in rows]


def _write(run: str | Path, out: str, table: str, rows: Iterable, kind: np.dtype, part: Callable[[str, np.ndarray, tables.Part], pa.Table]) -> None:
    """Sort the lines into query parts on disk, then make one part after the other."""
    run, name = Path(run), out.partition("/")[2]
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot name a folder; use letters, digits, point, - and _")
    with processes.lock(run), replace.staged(run, out) as folder:
        pieces = tables.parts(run, "queries")
        belongs = {"corpus": replace.corpus_hash(run)}
        file = _spool(run, rows, kind, pieces, folder)
        made = []
        for piece in pieces:
            spool = folder / f"{piece.shard}.lines"
            found = np.fromfile(spool, dtype=kind) if spool.exists() else np.zeros(0, dtype=kind)
            made.append(contracts.write(table, part(file, found, piece), folder / f"{piece.shard}.parquet") | belongs)
            spool.unlink(missing_ok=True)
        contracts.finish(folder, made, [run / "documents", run / "queries"])
        replace.swap(run, [out])


def _spool(run: Path, rows: Iterable, kind: np.dtype, pieces: list[tables.Part], folder: Path) -> str:
    """Append the lines of each query part to a file of its own; gives the name of the file they came from."""
    documents, queries = index.build(run, "documents"), index.build(run, "queries")
    ends = np.array([piece.first + piece.rows for piece in pieces])
    rows, file = iter(rows), ""
    while batch := list(itertools.islice(rows, BATCH)):
        file = batch[0].place.file
        found = np.zeros(len(batch), dtype=kind)
        for column, what, known in (("query", "qid", queries), ("doc", "docid", documents)):
            found[column] = known.rows([getattr(row, what) for row in batch])
            if (found[column] < 0).any():
                row = batch[int(np.flatnonzero(found[column] < 0)[0])]
                raise Refused(f"{row.place} has the {what} {getattr(row, what)!r}, which this run does not have")
        found["line"] = [row.place.line for row in batch]
        if kind is _RANKED:
            found["rank"], found["score"] = [row.rank for row in batch], [row.score for row in batch]
        else:
            found["label"] = [row.grade for row in batch]
        home = np.searchsorted(ends, found["query"], side="right")
        for at in np.unique(home):
            with open(folder / f"{pieces[at].shard}.lines", "ab") as handle:
                found[home == at].tofile(handle)
    return file
