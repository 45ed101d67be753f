"""The labels of a run as a released set: sorted and counted out of core, every exception counted in the manifest."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from lib import contracts, corpus, paths, processes, trace
from lib.exports import card, export
from lib.exports.export import Set
from lib.exports.rows import ExportError
from lib.judge.contract import GUIDELINE
from lib.student.cuts import CUTS

MEMORY = "2GB"  # of the sort; more goes to disk
THREADS = min(4, len(os.sched_getaffinity(0)))
_ROWS = 20_000  # handed over at once
_PLACES = {"v1": 0, "v2 gap": 1, "v2": 2}

GRADES = {0: "not relevant", 1: "partially relevant, uncertain", 2: "relevant: a full solution or a direct answer"}

MIX = """select version, stage, judge, count(*), count(*) filter (label = 0), count(*) filter (label = 1), count(*) filter (label = 2),
  count(*) filter (label is null) from labels group by all order by all"""
MODELS = "select judge, model, coalesce(prompt_sha256, '') as prompt, count(*) from labels group by all order by all"
QUESTIONS = "select count(distinct qid), count(distinct qid) filter (label is not null), count(distinct docid) filter (label is not null) from labels"


def publish(run: Path, outdir: Path, texts: bool = True) -> list[str]:
    """Write the labels of a finished run into `outdir` (lib.exports), and give what there is to say of it.

    A null label (the query cannot be evaluated) is no line: the manifest and the card count it. Questions are those with a
    line; documents are all of the run, also removed ones, in corpus order, unless `texts` is false. Memory is bounded:
    53M rows are sorted by DuckDB on disk, and texts are read a part at a time.

    ExportError names a row that belongs to no query or document of the run, or to two rows; ContractError where the run
    has no finished labels.
    """
    run = Path(run)
    lines = contracts.parts(run / "labels")
    with processes.lock(run), _database(run) as database:
        _accounted(run, database, sum(line["rows"] for line in lines))
        facts = _facts(run, database, sum(line.get("gaps", 0) for line in lines))
        rows = _rows(database, "select qid, docid, label from labels where label is not null order by qid, docid")
        queries = _rows(database, "select qid, text from queries semi join (from labels where label is not null) using (qid) order by qid")
        data = export.write(outdir, rows, queries, lambda data: _card(run.name, data, facts), _documents(run) if texts else None, facts=facts)
    return [
        f"{data.pairs:,} pairs of {data.questions:,} questions in {paths.shown(outdir)}, {len(data.files)} files, README.md and manifest.json",
        f"{facts['unevaluable']:,} pairs whose query cannot be evaluated are no lines, {facts['gaps']:,} gaps",
    ]


@contextmanager
def _database(run: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of the run as views; what a killed export left of its sort is removed."""
    spill = run / ".release-sort"
    shutil.rmtree(spill, ignore_errors=True)
    try:
        options = {"memory_limit": MEMORY, "threads": THREADS, "temp_directory": str(spill), "preserve_insertion_order": False}
        with duckdb.connect(config=options) as database:
            for name in ("labels", "documents", "queries"):
                parts = [run / name / line["part"] for line in contracts.parts(run / name)]
                for part in parts:
                    trace.record("read", part)
                database.read_parquet(list(map(str, parts))).create_view(name)
            yield database
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple]:
    for batch in database.cursor().sql(query).to_arrow_reader(_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _documents(run: Path) -> Iterator[tuple[str, str]]:
    for part in corpus.parts(run, "documents"):
        for batch in corpus.documents(run, part.shard, ["docid", "text"]).to_batches(max_chunksize=_ROWS // 20):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _accounted(run: Path, database: duckdb.DuckDBPyConnection, stated: int) -> None:
    """Every row that the manifest states is there, and belongs to a query and a document of the run."""
    ((rows,),) = database.sql("select count(*) from labels").fetchall()
    if rows != stated:
        raise ExportError(f"{paths.shown(run / 'labels')} has {rows:,} rows, its manifest says {stated:,}; run 12-merge again")
    for column, table in (("qid", "queries"), ("docid", "documents")):
        strangers = database.sql(f"select distinct {column} from labels anti join {table} using ({column}) order by all limit 10").fetchall()
        if strangers:
            named = ", ".join(ascii(value) for (value,) in strangers)
            raise ExportError(f"{paths.shown(run / 'labels')} has rows of no {column} in {table}/, the first: {named}; run 12-merge again")


def _facts(run: Path, database: duckdb.DuckDBPyConnection, gaps: int) -> dict:
    """What the manifest says of a release beside its files."""
    names = ("version", "stage", "judge", "rows", "0", "1", "2", "unevaluable")
    mix = sorted(database.sql(MIX).fetchall(), key=lambda row: _PLACES.get(row[0], len(_PLACES)))
    ((judged, released, documents),) = database.sql(QUESTIONS).fetchall()
    ((known, removed),) = database.sql("select count(*), count(*) filter (removed) from documents").fetchall()
    return {
        "unevaluable": sum(row[-1] for row in mix), "gaps": gaps,
        "questions judged": judged, "questions without a line": judged - released, "documents with a line": documents,
        "documents of the run": known, "documents removed": removed,
        "mix": [dict(zip(names, row, strict=True)) for row in mix],
        "models": [
            {"judge": judge, "model": model, "prompt_sha256": prompt or None, "rows": n} for judge, model, prompt, n in database.sql(MODELS).fetchall()
        ],
        "made from": {name: contracts.contents(run / name) for name in ("labels", "queries", "documents")},
    }


def _card(name: str, data: Set, facts: dict) -> str:
    mix = card.table(["version", "stage", "judge", "rows", "0", "1", "2", "unevaluable"], [row.values() for row in facts["mix"]])
    models = card.table(["judge", "model", "prompt_sha256", "rows"], [row.values() for row in facts["models"]])
    rows = data.pairs + facts["unevaluable"]
    counted = (
        f"{rows:,} judged pairs of {facts['questions judged']:,} queries: {data.pairs:,} are lines, {facts['unevaluable']:,} are not, since "
        f"their query cannot be evaluated (a null label), and {facts['gaps']:,} more pairs are gaps, which no call brought a valid reply. "
        f"{facts['questions without a line']:,} queries have no line and are left out. The lines name {facts['documents with a line']:,} documents "
        f"of the run's {facts['documents of the run']:,}, of which {facts['documents removed']:,} are removed near-duplicates that no route returns."
    )
    limitations = [
        f"{GRADES[1].capitalize()}: score 1 is the least stable label ({data.grades[1]:,} lines). Count it as relevant, or not, and say which.",
        f"The relevance model's labels are its score s cut at {CUTS[0]:g} and {CUTS[1]:g}: the cuts are a default, not a calibration. "
        "`labels/` of the run keeps s of every pair it scored, for a threshold of your own.",
        f"`guideline_version` is `{GUIDELINE}` for every prompt, so it identifies none; the prompt's text is known by prompt_sha256, above.",
        "The mix of judges and of labels changes over the run, by version and stage, above: a share over all lines is a share over that mix, "
        "and a stage that judges what another left (`v2 gap`) need not have its mix.",
        "A pair without a line is unjudged, not non-relevant: lines cover the dense and the fused top 20 and the queries' source pages, nothing else. "
        "Measure with condensed lists, or report the share judged.",
        "Version `v2` extends `v1` by what the fused top 20 adds to the dense top 20; documents that only one version saw are judged by another rule "
        "(see version and stage).",
    ]
    return card.write(
        f"Relevance judgments of the run {name}", "One grade a (question, document) pair, by an LLM judge or by a relevance model distilled from it.",
        data, GRADES, [("Who judged", f"{counted}\n\n{mix}"), ("Judges", models)], limitations,
    )
