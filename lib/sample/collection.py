"""Lay a collection into a run: plant it, train its tokenizer, import it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from lib import contracts, corpus, files, paths, processes, sources, trace
from lib.corpus import imported, jsonl, trec
from lib.sample import gsm8k, student_set, tokenizer, world

COLLECTIONS = ("sample", "gsm8k", "student", "imported")
TRAINING_TEXTS = 20_000  # of which the tokenizer is trained


def lay(collection: str, run: str | Path, *, source: str = "", queries: int = 300, documents: int = 12_000, seed: int = 0,
        tokenizer_file: str = "", keep_queries_file: str = "") -> None:
    """Fill `planted/`, `documents/` and `queries/` of the run folder, where they are not today's already.

    "sample" plants the world of `queries` and `documents` at the seed; "gsm8k" plants the two files in
    `source`; "student" plants `queries` of the student's own set with eight labelled documents each, and fills
    `qrels/planted/` too; "imported" takes what `python -m lib.corpus import` has laid, and refuses a run without it.
    Without a tokenizer file one is trained on the planted documents.
    """
    run = Path(run)
    if collection not in COLLECTIONS:
        raise ValueError(f"the collection {collection!r} is unknown; choose one of {', '.join(COLLECTIONS)}")
    if collection == "imported":
        for name, value in (("tokenizer_file", tokenizer_file), ("keep_queries_file", keep_queries_file)):
            if value:
                raise ValueError(f"{name} {value!r} comes too late for an imported collection; give it to python -m lib.corpus import")
        for table in ("documents", "queries"):
            contracts.parts(run / table)
        return
    if collection == "gsm8k" and not source:
        raise ValueError("the collection gsm8k needs source_folder, the folder of gsm8k_test.jsonl and gsm8k_example_model_solutions.jsonl")
    if collection == "student" and documents != student_set.PAGES * queries:
        raise ValueError(f"the collection student has {student_set.PAGES} documents a query; set documents to {student_set.PAGES * queries}, not {documents}")
    read = [paths.source(name) for name in (tokenizer_file, keep_queries_file) if name]
    read += [paths.source(source) / name for name in (gsm8k.QUESTIONS, gsm8k.SOLUTIONS)] if collection == "gsm8k" else []
    for path in read:
        trace.record("read", path)
    made_of = {
        "collection": collection, "queries": queries, "documents": documents, "seed": seed,
        "files": {paths.shown(path): files.sha256(path) for path in read}, "modules": sources.hashes("lib.sample.collection"),
    }
    planted = run / "planted"
    with processes.lock(run):
        if not _is_laid(run, made_of):
            shutil.rmtree(planted, ignore_errors=True)
            if collection == "sample":
                world.write(planted, seed, queries, documents)
            elif collection == "student":
                student_set.plant(planted, seed, queries)
            else:
                gsm8k.plant(paths.source(source), planted)
            if not tokenizer_file:
                tokenizer.train(_training_texts(planted), planted / "tokenizer.json", phrases=collection == "student")
            corpus.write(
                run, jsonl.documents(planted / "documents.jsonl"), jsonl.queries(planted / "queries.jsonl"),
                paths.source(tokenizer_file) if tokenizer_file else planted / "tokenizer.json",
                keep_queries=paths.source(keep_queries_file) if keep_queries_file else "all",
            )
            if collection == "student":
                imported.write_qrels(run, trec.qrels(planted / "qrels.txt"), "planted")
            files.write_json(planted / "manifest.json", made_of | {"sha256": _hashes(planted)})
        for path in _outputs(run, collection):
            trace.record("write", path)


def _training_texts(planted: Path) -> Iterator[str]:
    count = sum(1 for _ in jsonl.documents(planted / "documents.jsonl"))
    stride = max(1, count // TRAINING_TEXTS)
    return (row["text"] for i, (_, row) in enumerate(jsonl.documents(planted / "documents.jsonl")) if i % stride == 0)


def _is_laid(run: Path, made_of: dict) -> bool:
    manifest = run / "planted" / "manifest.json"
    try:
        laid = json.loads(manifest.read_text())
        for table in _tables(made_of["collection"]):
            contracts.parts(run / table)
    except (OSError, ValueError):
        return False
    return laid == made_of | {"sha256": _hashes(run / "planted")}


def _hashes(planted: Path) -> dict[str, str]:
    found = [*sorted(planted.glob("*.json*")), *planted.glob("qrels.txt")]
    return {path.name: files.sha256(path) for path in found if path.name != "manifest.json"}


def _tables(collection: str) -> list[str]:
    return ["documents", "queries", *(["qrels/planted"] if collection == "student" else [])]


def _outputs(run: Path, collection: str) -> list[Path]:
    return [path for folder in ("planted", *_tables(collection)) for path in sorted((run / folder).iterdir())
            if path.suffix in (".json", ".jsonl", ".txt", ".parquet") and not path.name.startswith((".", "calls"))]
