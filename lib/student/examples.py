"""The labelled pairs that the relevance model learns from, and those of the queries that are held out.

Valid labels, not null, of picks and long documents only (spec, "Training data"), or imported judgments. Equal queries
never stand on both sides: the split goes by the hash of the normalised query text.
"""

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, corpus, engine, paths, text
from lib.corpus import index
from lib.engine import Stage


def normalised(query: str) -> str:
    """The text that decides on which side a query stands: casefolded, white space folded to single blanks."""
    return " ".join(query.casefold().split())


def held_out(query: np.ndarray, text_hash: np.ndarray, n: int) -> set[int]:
    """Which queries are held out: `n` of them, or the most below n that equal texts, kept together, allow.

    query int[q], text_hash uint64[q] (`hashes`). Texts go by their hash; one whose queries do not all fit is passed over.
    """
    order = np.argsort(text_hash, kind="stable")
    _, first, sizes = np.unique(text_hash[order], return_index=True, return_counts=True)
    held: set[int] = set()
    for start, size in zip(first.tolist(), sizes.tolist(), strict=True):
        if len(held) + size <= n:
            held.update(query[order[start : start + size]].tolist())
        if len(held) == n:
            break
    return held


def hashes(texts: Iterable[str]) -> np.ndarray:
    """uint64[n]: 64 bits of the sha256 of each normalised text; two of 2 million texts meet with a chance of 1 in 9 million."""
    return np.fromiter((int(text.sha256(normalised(one))[:16], 16) for one in texts), np.uint64)


def write(run: str | Path, labels_from: str = "answers", held_queries: int = 6000, workers: int | str = 1) -> dict[str, int]:
    """Bring `examples/` up to date and give its counts: pairs and queries, of training and held out.

    labels_from: "answers" (the valid replies of `answers/v1` to picks and long documents) or "qrels/NAME" (imported
    judgments). ValueError where there are not more labelled queries than `held_queries`.
    """
    lines = engine.map(examples, {"run": str(run), "labels_from": labels_from, "held_queries": held_queries}, workers)
    return {name: sum(line[name] for line in lines) for name in COUNTS}


COUNTS = ("training pairs", "training queries", "held-out pairs", "held-out queries")


def counts(run: str | Path) -> dict[str, int]:
    """The counts of a finished `examples/`."""
    lines = contracts.parts(Path(run) / "examples")
    return {name: sum(line[name] for line in lines) for name in COUNTS}


def read(run: str | Path, held: bool | None = None) -> pa.Table:
    """The examples of a run by query, then document: all, or one side."""
    table = contracts.read("examples", Path(run) / "examples")
    return table if held is None else table.filter(pc.equal(table["held_out"], held))


def _folder(config: dict) -> str:
    source = config["labels_from"]
    if source == "answers":
        return "answers/v1"
    if source.startswith("qrels/") and source.count("/") == 1 and source != "qrels/":
        return source
    raise ValueError(f"labels_from is {source!r}; it is answers, or qrels/NAME for imported judgments")


def _labelled(config: dict, part: corpus.Part) -> dict[str, np.ndarray]:
    """query int32[n], doc int32[n] and label int8[n] of one part of queries, by query, then document."""
    folder = _folder(config)
    path = Path(config["run"]) / folder / f"{part.shard}.parquet"
    if folder == "answers/v1":
        table = contracts.read_part("answers", path, ["query", "doc", "stage", "answer", "score"])
        table = table.filter(pc.and_(pc.equal(table["answer"], "ok"), pc.is_in(table["stage"], pa.array(contracts.TRAINED))))
        query, doc, label = (table[name].to_numpy() for name in ("query", "doc", "score"))
    else:
        table = contracts.read_part("labels", path, ["qid", "docid", "label"])
        table = table.filter(pc.is_valid(table["label"]))
        qids = corpus.queries(config["run"], part.shard, ["qid"])["qid"]
        query = pc.index_in(table["qid"], value_set=qids).to_numpy() + np.int32(part.first)
        doc = _documents(config["run"], contracts.contents(Path(config["run"]) / "documents")).rows(table["docid"].to_pylist())
        label = table["label"].to_numpy()
        if len(strange := np.flatnonzero((label < 0) | (label > 2))):
            raise ValueError(f"{paths.shown(path)} has the label {label[strange[0]]} ({len(strange)} such rows), and the model learns 0, 1 and 2; "
                             "map them before they are imported")
    order = np.lexsort((doc, query))
    return {"query": query[order].astype(np.int32), "doc": doc[order].astype(np.int32), "label": label[order].astype(np.int8)}


@lru_cache(maxsize=1)
def _documents(run: str, contents: str) -> index.Index:
    return index.build(run, "documents")


@lru_cache(maxsize=1)
def _held(run: str, labels_from: str, n: int, contents: str) -> frozenset[int]:
    """The held-out queries of a run, found once a process from all parts; `contents` tells one set of labels from the next."""
    config, found = {"run": run, "labels_from": labels_from}, [(np.empty(0, np.int32), np.empty(0, np.uint64))]
    for part in corpus.parts(run, "queries"):
        rows = np.unique(_labelled(config, part)["query"])
        column = corpus.queries(run, part.shard, ["text"])["text"].take(pa.array(rows - part.first))
        found.append((rows, hashes(column.to_pylist())))
    query, text_hash = map(np.concatenate, zip(*found, strict=True))
    if not 1 <= n < len(query):
        raise ValueError(
            f"{paths.shown(Path(run) / _folder(config))} has {len(query):,} queries with pairs to learn from and held_queries is {n:,}; "
            f"hold out at least 1 and fewer than there are"
        )
    held = held_out(query, text_hash, n)
    if not held:
        raise ValueError(f"held_queries is {n:,} and none can be held out: more queries share each text; take a larger number")
    return frozenset(held)


def _examples(shard: str, config: dict) -> dict:
    run = Path(config["run"])
    contents = " ".join(contracts.contents(run / name) for name in (_folder(config), "queries"))
    held = _held(config["run"], config["labels_from"], config["held_queries"], contents)
    rows = _labelled(config, corpus.part_of("queries", config, shard))
    out = np.isin(rows["query"], np.fromiter(held, np.int32, len(held)))
    line = contracts.write("examples", contracts.table("examples", rows | {"held_out": out}), run / "examples" / f"{shard}.parquet")
    sizes = (int((~out).sum()), len(np.unique(rows["query"][~out])), int(out.sum()), len(np.unique(rows["query"][out])))
    return line | dict(zip(COUNTS, sizes, strict=True))


def _inputs(config: dict) -> tuple[str, ...]:
    return ("documents", "queries", _folder(config))


examples = Stage("lib.student.examples:examples", "examples", "examples", _inputs, ("labels_from", "held_queries"), partial(corpus.shards, "queries"), _examples)
