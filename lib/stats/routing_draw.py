"""A drawn run of any size, as routing and the tables find one: lists, fused places, reranker's scores, answers and scores, by shards.

Shapes are the published run's where it states them: 8% of the documents long, 5 of the fused 20 new, picks that nearly
all have both labels, three gaps in a thousand pairs. Texts are of a word or two: no stage here reads them but to compare.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts
from lib.contracts import CUT, DEPTH, TOP
from lib.retrieval import hits
from lib.retrieval.hits import Hits

LONG_TOKENS, LONG, KEPT, PAGED, NEW = 8144, 0.08, 0.998, 0.99, 5
CHECKPOINT, MODEL, PROMPT, GATE = "larger/1", "drawn judge", "5" * 64, "6" * 64
CLASSES = ("ok", "unevaluable", "timeout", "refusal", "withdrawn")
OF_LLM = {"source_page": 1, "v1": 2, "v2_gap": 3, "v2": 4}  # the sets that are answered, and what parts their draws
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


class Folder:
    """The parts of one table of a run, finished by `close`."""

    def __init__(self, run: Path, table: str, out: str):
        self._table, self._folder, self._lines = table, Path(run) / out, []

    def add(self, part: str, columns: Mapping) -> None:
        self._lines.append(contracts.write(self._table, contracts.table(self._table, dict(columns)), self._folder / f"{part}.parquet"))

    def close(self) -> None:
        contracts.finish(self._folder, self._lines)


def names(prefix: str, rows: np.ndarray, digits: int) -> pa.Array:
    """The ids of rows, zero-padded: made of bytes at once, since millions are asked for."""
    text = np.empty((len(rows), len(prefix) + digits), np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode(), np.uint8)
    for place in range(digits):
        text[:, len(prefix) + place] = ord("0") + rows // 10 ** (digits - 1 - place) % 10
    return _texts(text)


def _texts(letters: np.ndarray) -> pa.Array:
    """uint8[n, width] as n texts of that width."""
    n, width = letters.shape
    return pa.StringArray.from_buffers(n, pa.py_buffer(np.arange(n + 1, dtype=np.int32) * width), pa.py_buffer(np.ascontiguousarray(letters)))


def _constant(value: str, n: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), n)


def candidates(run: Path, queries: int, documents: int, part: int, seed: int) -> None:
    """Fill `documents/`, `queries/`, `hits/dense`, `fused/` and `rerank/`, `part` queries a file; the same seed gives the same run."""
    run, random = Path(run), np.random.default_rng([seed, 0])
    long = random.random(documents) < LONG
    folder = Folder(run, "documents", "documents")
    for at in range(0, documents, 4 * part):
        rows = np.arange(at, min(at + 4 * part, documents))
        tokens = np.where(long[rows], LONG_TOKENS + 1, 500).astype(np.int32)
        folder.add(f"part-{at // (4 * part):05}", {
            "docid": names("shard_", rows, 11), "text": names("text ", rows, 8).cast(pa.large_string()), "n_chars": np.full(len(rows), 13, np.int32),
            "n_tokens": tokens, "removed": np.zeros(len(rows), bool),
        })
    folder.close()
    folders = {out: Folder(run, table, out) for table, out in
               (("queries", "queries"), ("hits", "hits/dense"), ("fused", "fused"), ("rerank", "rerank"))}
    score = np.broadcast_to(np.linspace(1, 0.5, DEPTH, dtype=np.float32), (part, DEPTH))
    for at in range(0, queries, part):
        rows, name = np.arange(at, min(at + part, queries), dtype=np.int32), f"part-{at // part:05}"
        n, random = len(rows), np.random.default_rng([seed, 1, at])
        dense = hits.first_places(Hits(random.integers(0, documents, (n, DEPTH), dtype=np.int32), score[:n]))
        place = random.integers(0, 8 * CUT, n)  # of the source page in the dense list; outside where it has none, or is beyond
        page = np.where(place < DEPTH, dense.doc[np.arange(n), np.minimum(place, DEPTH - 1)], -1)
        source = np.where(random.random(n) < PAGED, np.where(place < CUT, page, random.integers(0, documents, n)), -1).astype(np.int32)
        keep = random.random(n) < KEPT
        folders["queries"].add(name, {
            "qid": names("q", rows, 8), "text": names("query ", rows, 8), "source_docid": pa.nulls(n, pa.string()),
            "source_doc": pa.array(source, mask=source < 0), "keep": keep,
        })
        lists = Hits(np.where(keep[:, None], dense.doc, -1), np.where(keep[:, None], dense.score, np.float32(0)))
        folders["hits/dense"].add(name, {"doc": contracts.as_places(lists.doc), "score": contracts.as_places(lists.score)})
        folders["fused"].add(name, _fused(random, lists.doc, documents, keep))
        short = (lists.doc[:, TOP:CUT] >= 0) & ~long[np.maximum(lists.doc[:, TOP:CUT], 0)]
        pairs = int(short.sum())
        folders["rerank"].add(name, {
            "query": np.broadcast_to(rows[:, None], short.shape)[short], "doc": lists.doc[:, TOP:CUT][short],
            "score": random.random(pairs, dtype=np.float32), "model": _constant("drawn reranker", pairs),
        })
    for folder in folders.values():
        folder.close()


def _fused(random: np.random.Generator, dense: np.ndarray, documents: int, keep: np.ndarray) -> dict:
    """15 of the dense 20, 4 of its lower ranks and one document that it lacks, in an order of their own."""
    n = len(dense)
    ranks = np.argsort(random.random((1024, CUT)), axis=1)[random.integers(0, 1024, n)]  # 0-based places of the dense list
    lower = CUT + np.argsort(random.random((1024, DEPTH - CUT)), axis=1)[random.integers(0, 1024, n), : NEW - 1]
    places = np.concatenate([ranks[:, : CUT - NEW], lower], axis=1)
    doc = np.concatenate([np.take_along_axis(dense, places, 1), random.integers(0, documents, (n, 1), dtype=np.int32)], axis=1)
    rank = np.concatenate([places + 1, np.zeros((n, 1), int)], axis=1)
    order = np.argsort(random.random((1024, CUT)), axis=1)[random.integers(0, 1024, n)]
    there = np.take_along_axis(doc, order, 1) >= 0
    there &= keep[:, None]
    doc, rank = np.where(there, np.take_along_axis(doc, order, 1), -1), np.where(there, np.take_along_axis(rank, order, 1), 0).astype(np.int16)
    score = np.where(there, np.linspace(0.1, 0.05, CUT), 0.0)
    columns = {"doc": doc, "score": score, "best_rank": np.maximum(rank, 1), "dense_rank": rank}
    return {name: contracts.as_places(values) for name, values in columns.items()}


def intents(run: Path, name: str) -> Iterator[tuple[str, pa.Table]]:
    for line in contracts.parts(Path(run) / "intents" / name):
        yield Path(line["part"]).stem, contracts.read_part("intents", Path(run) / "intents" / name / line["part"])


def answers(run: Path, name: str, seed: int) -> None:
    """Answer the LLM's intents of a set as `answers/<set>`: three in a thousand are gaps, fifteen unevaluable, the rest have a score."""
    folder = Folder(run, "answers", f"answers/{name}")
    for part, sent in intents(run, name):
        sent = sent.filter(pc.equal(sent["judge"], "llm"))
        n, random = sent.num_rows, np.random.default_rng([seed, OF_LLM[name], int(part[-5:])])
        kind = np.searchsorted([0.982, 0.997, 0.999], random.random(n), side="right")
        kind[sent["withdrawn"].to_numpy()] = CLASSES.index("withdrawn")
        letters, valid = _HEX[random.integers(0, 16, (n, 64), dtype=np.uint8)], kind <= 1
        folder.add(part, {column: sent[column] for column in ("query", "doc", "version", "stage", "round", "reason", "rank")} | {
            "key": _texts(letters), "task_id": _texts(letters[:, :16]), "answer": pa.array(CLASSES).take(pa.array(kind)),
            "score": pa.array(random.choice(3, n, p=(0.45, 0.35, 0.2)).astype(np.int8), mask=kind != 0),
            "query_evaluable": pa.array(kind == 0, mask=~valid),
            "prompt_sha256": pc.if_else(pa.array(valid), PROMPT, pa.scalar(None, pa.string())),
            "model": pc.if_else(pa.array(valid), MODEL, pa.scalar(None, pa.string())),
        })
    folder.close()


def scores(run: Path, name: str, seed: int) -> None:
    """Score the student's intents of a set, one unit a part, as `scores/<set>`."""
    folder = Folder(run, "scores", f"scores/{name}")
    for part, sent in intents(run, name):
        sent = sent.filter(pc.equal(sent["judge"], "student"))
        score = np.random.default_rng([seed, 9, OF_LLM[name], int(part[-5:])]).normal(0.7, 0.6, sent.num_rows).astype(np.float32)
        folder.add(f"{part}-00", {"query": sent["query"], "doc": sent["doc"], "score": score,
                                  "checkpoint": _constant(CHECKPOINT, len(score)), "gate": _constant(GATE, len(score))})
    folder.close()


def examples(run: Path, seed: int) -> None:
    """The labelled picks and long documents of v1, two in a hundred held out, as `examples/`."""
    folder = Folder(run, "examples", "examples")
    for line in contracts.parts(Path(run) / "answers" / "v1"):
        told = contracts.read_part("answers", Path(run) / "answers" / "v1" / line["part"], ["query", "doc", "stage", "answer", "score"])
        told = told.filter(pc.and_(pc.is_in(told["stage"], pa.array(contracts.TRAINED)), pc.equal(told["answer"], "ok")))
        held = np.random.default_rng([seed, 8, int(line["part"][5:10])]).random(told.num_rows) < 0.02
        folder.add(line["part"].removesuffix(".parquet"), {"query": told["query"], "doc": told["doc"], "label": told["score"], "held_out": held})
    folder.close()
