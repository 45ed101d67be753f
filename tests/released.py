"""A released folder read back by the tools of the field, each into {qid: {docid: grade}}."""

import csv
import hashlib
import json
from pathlib import Path

import ir_measures
import pytrec_eval
from ir_datasets.datasets.base import Dataset
from ir_datasets.datasets.beir import BeirDocs, BeirQrels, BeirQueries, BeirTitleDoc
from ir_datasets.formats import GenericQuery, TrecQrels
from ir_datasets.util.download import LocalDownload

from lib.corpus import beir, trec

FILES = ["README.md", "beir/corpus.jsonl", "beir/qrels/test.tsv", "beir/queries.jsonl", "manifest.json", "qrels.jsonl", "qrels.trec"]


def dataset(folder: Path) -> Dataset:
    """The BEIR folder as a dataset of ir_datasets."""
    name, files = f"released-{folder.name}", {name: LocalDownload(folder / "beir" / name) for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")}
    docs = BeirDocs(name, files["corpus.jsonl"], BeirTitleDoc) if (folder / "beir" / "corpus.jsonl").exists() else None
    return Dataset(docs, BeirQueries(name, files["queries.jsonl"], GenericQuery), BeirQrels(files["qrels/test.tsv"], {}))


def nested(rows) -> dict[str, dict[str, int]]:
    """Rows (qid, docid, grade) by question; a pair that stands twice fails."""
    found: dict[str, dict[str, int]] = {}
    for qid, docid, grade in rows:
        assert docid not in found.setdefault(qid, {}) and type(grade) is int
        found[qid][docid] = grade
    return found


def read_back(folder: Path) -> dict[str, dict]:
    """By reader; each has read every line."""
    path = folder / "qrels.trec"
    of = [(row.query_id, row.doc_id, row.relevance) for row in ir_measures.read_trec_qrels(str(path))]
    with open(path, encoding="utf-8") as lines:
        pytrec = dict(pytrec_eval.parse_qrel(lines))
    with open(folder / "beir" / "qrels" / "test.tsv", encoding="utf-8", newline="") as lines:
        plain = [(qid, docid, int(grade)) for qid, docid, grade in list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]]
    with open(folder / "qrels.jsonl", encoding="utf-8") as lines:
        ours = [(row["qid"], found["docid"], found["grade"]) for row in map(json.loads, lines) for found in row["documents"]]
    return {
        "ir_measures": nested(of), "pytrec_eval": pytrec, "csv": nested(plain), "json": nested(ours),
        "ir_datasets trec": nested((row.query_id, row.doc_id, row.relevance) for row in TrecQrels(LocalDownload(path), {}).qrels_iter()),
        "ir_datasets beir": nested((row.query_id, row.doc_id, row.relevance) for row in dataset(folder).qrels_iter()),
        "lib.corpus trec": nested(row[1:] for row in trec.qrels(path)),
        "lib.corpus beir": nested(row[1:] for row in beir.qrels(folder / "beir" / "qrels" / "test.tsv")),
    }


def queries(folder: Path) -> dict[str, str]:
    found = {row.query_id: row.text for row in dataset(folder).queries_iter()}
    assert found == {row["qid"]: row["text"] for _, row in beir.queries(folder / "beir")}
    return found


def documents(folder: Path, monkeypatch, home: Path) -> dict[str, str]:
    """The corpus as ir_datasets builds its store of it, under a home of the test's own."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(home))
    found = {row.doc_id: row.text for row in dataset(folder).docs_iter()}
    assert found == {row["docid"]: row["text"] for _, row in beir.documents(folder / "beir")}
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Every file and its bytes; each stands in the manifest as it is, and is UTF-8 with LF and without a byte order mark."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    listed = {line["file"]: line for line in json.loads(found["manifest.json"])["files"]}
    assert sorted(listed) == sorted(set(found) - {"manifest.json"})
    for name, data in found.items():
        text = data.decode("utf-8")
        assert not text.startswith("\ufeff") and "\r" not in text and text.endswith("\n"), name
        if name in listed:
            assert (listed[name]["bytes"], listed[name]["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
            assert listed[name]["rows"] == (None if name == "README.md" else text.count("\n") - name.endswith(".tsv"))
    return found
