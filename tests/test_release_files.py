"""The released files of a run beside its labels, read by the tools of the field, and every run that is not released."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import released

from lib import contracts
from lib.exports.rows import ExportError
from lib.release import published
from lib.release.__main__ import main

ROOT = Path(__file__).parents[1]
NASTY = ["007", "1e5", "NA", "=1+1", "d#1", '"q"', "é", "😀", "\uffff"]


def label(qid: str, docid: str, grade: int | None, judge: str = "llm", version: str = "v1", stage: str = "dense_1_5") -> dict:
    llm = judge == "llm"
    return {"qid": qid, "docid": docid, "label": grade, "query_evaluable": grade is not None, "judge": judge, "version": version, "stage": stage,
            "round": 1, "llm_label": grade if llm else None, "student_score": None if llm else float(grade), "prompt_sha256": "p" * 64 if llm else None,
            "model": "m|1" if llm else "larger/100"}


def folder(run: Path, name: str, parts: list[list[dict]], **more) -> None:
    lines = [contracts.write(name, contracts.table(name, rows), run / name / f"part-{at:05d}.parquet") | more for at, rows in enumerate(parts)]
    contracts.finish(run / name, lines)


def made(run: Path, labels: list[list[dict]], docids=("d1", "d2", "d3"), qids=("q1", "q2", "q3")) -> Path:
    """A run of labels, queries and documents; the last document is removed."""
    documents = [{"docid": docid, "text": f"text of {docid}\r\n", "n_chars": 1, "n_tokens": 1, "removed": docid == docids[-1]} for docid in docids]
    queries = [{"qid": qid, "text": f"What is {qid}?", "source_docid": None, "source_doc": None, "keep": True} for qid in qids]
    folder(run, "documents", [documents[:2], documents[2:]])
    folder(run, "queries", [queries[:1], queries[1:]])
    folder(run, "labels", labels, gaps=1)
    return run


def facts(out: Path) -> dict:
    return json.loads((out / "manifest.json").read_text())


def test_a_whole_run_is_released_as_its_labels(tiny_home, tmp_path, monkeypatch):
    run, out = tiny_home / "runs" / "tiny", tmp_path / "out"
    done = subprocess.run([sys.executable, "-m", "lib.release", str(run), "--outdir", str(out)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    labels = duckdb.sql(f"select qid, docid, label, version, stage, judge from read_parquet('{run}/labels/*.parquet')")
    expected = released.nested(duckdb.sql("select qid, docid, label::int from labels where label is not null").fetchall())  # noqa: F841
    for reader, found in released.read_back(out).items():
        assert found == expected, reader
    count = dict(duckdb.sql("select label, count(*) from labels group by all").fetchall())
    manifest = facts(out)
    assert manifest["counts"]["grades"] == {str(grade): count.get(grade, 0) for grade in (0, 1, 2)} and all(count.get(grade) for grade in (0, 1))
    assert manifest["unevaluable"] == count.get(None, 0) > 0
    mix = {tuple(row[name] for name in ("version", "stage", "judge")): row["rows"] for row in manifest["mix"]}
    assert mix == {row[:3]: row[3] for row in duckdb.sql("select version, stage, judge, count(*) from labels group by all").fetchall()}
    assert sum(mix.values()) == manifest["counts"]["pairs"] + manifest["unevaluable"]
    known = duckdb.sql(f"select docid, text from read_parquet('{run}/documents/*.parquet')").fetchall()
    assert list(released.documents(out, monkeypatch, tmp_path / "home").items()) == known, "all of the run, in corpus order"
    asked = duckdb.sql(f"select qid, text from read_parquet('{run}/queries/*.parquet')").fetchall()
    assert released.queries(out) == {qid: text for qid, text in asked if qid in expected}
    first = released.contents(out)
    main([str(run), "--outdir", str(out)])
    assert released.contents(out) == first and sorted(first) == released.FILES
    assert not (run / ".release-sort").exists()


def test_the_parts_of_a_run_are_sorted_and_what_is_no_line_is_counted(tmp_path):
    labels = [[label("q2", "d3", 2), label("q2", "d1", 0, "student", stage="short"), label("q1", "d2", None)],
              [label("q1", "d1", 1, version="v2 gap"), label("q3", "d1", None), label("q3", "d2", None, version="v2", stage="trial")]]
    run, out = made(tmp_path / "run", labels), tmp_path / "out"
    assert published.publish(run, out) == [f"3 pairs of 2 questions in {out}, 5 files, README.md and manifest.json",
                                           "3 pairs whose query cannot be evaluated are no lines, 2 gaps"]
    assert (out / "qrels.trec").read_text() == "q1 0 d1 1\nq2 0 d1 0\nq2 0 d3 2\n"
    found = facts(out)
    assert (found["unevaluable"], found["gaps"], found["questions judged"], found["questions without a line"]) == (3, 2, 3, 1)
    assert (found["documents with a line"], found["documents of the run"], found["documents removed"]) == (2, 3, 1)
    assert [(row["version"], row["stage"], row["judge"], row["rows"], row["unevaluable"]) for row in found["mix"]] == [
        ("v1", "dense_1_5", "llm", 3, 2), ("v1", "short", "student", 1, 0), ("v2 gap", "dense_1_5", "llm", 1, 0), ("v2", "trial", "llm", 1, 1),
    ]  # fmt: skip
    card = (out / "README.md").read_text()
    for said in ("2 questions, 3 pairs.", "6 judged pairs of 3 queries: 3 are lines, 3 are not", "2 more pairs are gaps", "| 1 | 1 | partially relevant, uncertain |",
                 "a default, not a calibration", "identifies none", "The mix of judges and of labels changes over the run", f"| llm | m\\|1 | {'p' * 64} | 5 |", "| student | larger/100 | — | 1 |", "unjudged, not non-relevant"):
        assert said in card
    published.publish(run, out, texts=False)
    assert not (out / "beir" / "corpus.jsonl").exists() and (out / "qrels.trec").read_text().count("\n") == 3


def test_ids_stay_text(tmp_path):
    labels = [[label(qid, docid, at % 3) for at, docid in enumerate(NASTY)] for qid in NASTY]
    published.publish(made(tmp_path / "run", labels, NASTY, NASTY), tmp_path / "out")
    expected = {qid: {docid: at % 3 for at, docid in enumerate(NASTY)} for qid in NASTY}
    assert all(found == expected for found in released.read_back(tmp_path / "out").values())
    released.contents(tmp_path / "out")


@pytest.mark.parametrize("rows, fault", [
    ([label("q1", "d1", 1), label("q1", "d1", 1)], "the question 'q1' has 'd1' twice"),
    ([label("q1", "d1", 1), label("q1", "d1", 2)], "the question 'q1' has 'd1' with the grades "),
    ([label("q1", "d1", 3)], "the grade 3 for 'd1'"),
    ([label("q1", "d404", None), label("q1", "d1", 1)], "labels has rows of no docid in documents/, the first: 'd404'; run 12-merge again"),
    ([label("q9", "d1", 1)], "labels has rows of no qid in queries/, the first: 'q9'; run 12-merge again"),
    ([label("q1", "d1", None)], "there is no pair to release"),
])  # fmt: skip
def test_labels_that_make_no_set_are_named_and_nothing_is_left(tmp_path, rows, fault):
    run = made(tmp_path / "run", [rows])
    with pytest.raises(ExportError, match=fault):
        published.publish(run, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"] and not (run / ".release-sort").exists()


def test_a_run_without_finished_labels_is_not_released(tmp_path, capsys):
    run = made(tmp_path / "run", [[label("q1", "d1", 1)]])
    (run / "labels" / "part-00000.parquet").write_bytes((run / "labels" / "part-00000.parquet").read_bytes()[:-9])
    arguments = [str(run), "--outdir", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match="lib.release: .*part-00000.parquet"):
        main(arguments)
    folder(run, "labels", [[label("q1", "d1", 1)], []], rows=7)
    with pytest.raises(SystemExit, match="labels has 1 rows, its manifest says 14; run 12-merge again"):
        main(arguments)
    (run / "labels" / "manifest.json").unlink()
    with pytest.raises(SystemExit, match="labels is not finished .it has no manifest.json."):
        main(arguments)
    with pytest.raises(SystemExit, match="lib.release: the run '.x' is no name of a folder"):
        main([".x", "--outdir", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


MANY = """
import resource, sys
from pathlib import Path
import duckdb
import pyarrow as pa
from lib import contracts
from lib.release import published

run, out, published.MEMORY = Path(sys.argv[1]), Path(sys.argv[2]), "64MB"
published.THREADS = 1
columns = {
    "documents": "'shard_00001_' || lpad(i::text, 5, '0') as docid, 'text' as text, 4 as n_chars, 1 as n_tokens, false as removed from range(25) t(i)",
    "queries": "'question-' || lpad((i * 7919 % 40000)::text, 40, '0') as qid, 'text' as text, null as source_docid, null as source_doc, true as keep from range(40000) t(i)",
    "labels": "qid, docid, (hash(qid, docid) % 3)::tinyint as label, true as query_evaluable, 'llm' as judge, 'v1' as version, 'pick' as stage, 1 as round, "
              "label as llm_label, null as student_score, 'p' as prompt_sha256, 'm' as model from queries, documents",
}
database = duckdb.connect(config={"threads": 1, "memory_limit": "96MB", "temp_directory": str(run / "tmp")})
for name, sql in columns.items():
    schema = contracts.TABLES[name]
    (run / name).mkdir(parents=True)
    database.execute(f"create temp table {name} as select {sql}") if name != "labels" else None
    parts = []
    for at, batch in enumerate(database.sql(f"select {sql}").to_arrow_reader(200_000)):
        parts.append(contracts.write(name, pa.table(batch).cast(schema), run / name / f"part-{at:05d}.parquet"))
    contracts.finish(run / name, parts)
database.close()

spilled, rows = [], published._rows
def watched(database, query):
    for at, row in enumerate(rows(database, query)):
        if not at:
            spilled.append(sum(path.stat().st_size for path in run.glob(".release-sort/*")) // 2**20)
        yield row

published._rows = watched
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
published.publish(run, out)
print(max(spilled), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_million_labels_are_sorted_on_disk(tmp_path):
    done = subprocess.run([sys.executable, "-c", MANY, str(tmp_path / "run"), str(tmp_path / "out")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spilled, more = map(int, done.stdout.split())
    with open(tmp_path / "out" / "qrels.trec", "rb") as lines:
        keys = [line.rsplit(b" ", 1)[0] for line in lines]
    assert len(keys) == 1_000_000 and all(one < other for one, other in zip(keys, keys[1:], strict=False))
    assert spilled > 5 and more < 150
