"""What BM25 takes beside bm25s: the same raw texts indexed and searched, each way in a fresh process.

`python -m lib.retrieval.bm25_measure WAY FOLDER DOCUMENTS ROUNDS` runs one way over the first documents of a folder that
`write` filled, leaves its lists as `FOLDER/WAY.npy` and prints its JSON.
"""

import hashlib
import json
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lib import paths, processes
from lib.retrieval import blocks as block_index
from lib.retrieval import bm25, hits
from lib.retrieval.hits import Hits
from lib.retrieval.postings import Statistics
from lib.text import tokens

K = 100
PART = 16384  # documents of a file
PIECE = 2500  # characters of a document of real text, to the end of a line
SUFFIXES = (".py", ".pyi", ".md", ".rst", ".txt", ".html", ".c", ".h", ".js")


class Measured(NamedTuple):
    """Processor seconds of building from the texts on disk and of a search of all queries; wall seconds of it by 1 and 2 threads; MiB."""

    build: float
    search: float
    one: float
    two: float  # NaN where it was not asked for
    mib: float  # by which the peak of the process rose over its imports
    postings: int
    sha256: str  # of the lists


def zipf(documents: int, words: int, length: float, queries: int, query_length: float, seed: int) -> tuple[Iterator[str], list[str]]:
    """Texts and queries whose words are drawn alike: word r of 1 to `words` with a probability of ln(1 + 1/r)/ln(1 + words), nearly 1/r.

    Lengths are lognormal with these means, of standard deviations 0.8 and 0.5.
    """
    names = np.array([f"w{r}" for r in range(1, words + 1)], object)

    def texts(n: int, mean: float, spread: float, draw: np.random.Generator) -> Iterator[str]:
        for size in np.maximum(draw.lognormal(math.log(mean) - spread**2 / 2, spread, n), 1).astype(np.int64):
            yield " ".join(names[(np.exp(draw.random(size) * math.log(1 + words))).astype(np.int64).clip(1, words) - 1])

    return texts(documents, length, 0.8, np.random.default_rng([seed, 0])), list(texts(queries, query_length, 0.5, np.random.default_rng([seed, 1])))


def real(folders: Iterable[Path], megabytes: float, queries: int, query_length: int, seed: int) -> tuple[list[str], list[str], str]:
    """Documents of the text files under some folders up to a size, runs of words of them as queries, and what was read, with its hash."""
    found, digest, size, read = [], hashlib.sha256(), 0, 0
    for path in sorted({path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file()}):
        if size >= megabytes * 1e6:
            break
        content = path.read_bytes()
        text, read, size = content.decode("utf-8", "replace"), read + 1, size + len(content)
        digest.update(hashlib.sha256(content).digest())
        found += [piece for piece in re.findall(rf"(?s).{{1,{PIECE}}}(?:\n|\Z)|.{{{PIECE}}}", text) if piece.strip()]
    draw, asked = np.random.default_rng(seed), []
    while len(asked) < queries:
        words = tokens(found[draw.integers(len(found))])
        length = max(1, int(draw.lognormal(math.log(query_length) - 0.125, 0.5)))
        if len(words) >= length:
            at = draw.integers(len(words) - length + 1)
            asked.append(" ".join(words[at : at + length]))
    return found, asked, f"{read:,} files, {size / 1e6:.1f} MB, sha256 of their hashes {digest.hexdigest()[:16]}, {len(found):,} documents"


def write(folder: Path, texts: Iterable[str], queries: list[str], removed_share: float, seed: int) -> int:
    """Write texts as Parquet files of PART documents, with a mask of removed ones, and the queries; how many documents."""
    folder.mkdir(parents=True)
    draw, part, count = np.random.default_rng([seed, 2]), [], 0

    def flush() -> None:
        removed = draw.random(len(part)) < removed_share
        pq.write_table(pa.table({"text": pa.array(part, pa.large_string()), "removed": removed}), folder / f"texts-{(count - 1) // PART:05}.parquet")
        part.clear()

    for text in texts:
        if len(part) == PART:
            flush()
        part.append(text)
        count += 1
    flush()
    (folder / "queries.json").write_text(json.dumps(queries))
    return count


def _read(folder: Path, documents: int) -> Iterator[pa.Table]:
    """The first documents, a file at a time."""
    for path in sorted(folder.glob("texts-*.parquet")):
        if documents <= 0:
            return
        table = pq.read_table(path, use_threads=False).slice(0, documents)
        documents -= len(table)
        yield table


def blocks(folder: Path, documents: int, queries: list[str]):
    """lib.retrieval.bm25, a file at a time."""
    known, parts, rows, row = bm25.vocabulary(queries), [], [], 0
    total = Statistics(0, 0, np.zeros(known.size, np.int64))
    for table in _read(folder, documents):
        part, found = bm25.index(table["text"], known, table["removed"].to_numpy())
        total = bm25.added(total, found)
        parts.append(part)
        rows.append(row)
        row += len(table)
    whole = block_index.joined(parts, rows)
    del parts, part
    asked = bm25.ask(queries, known, total)
    made = bm25.ready(whole, total, asked)

    def search(threads: int) -> Hits:
        best = hits.heap(len(queries), K)
        bm25.search(best, made, asked, threads=threads)
        return hits.ranked(best, threads)

    return search, len(whole.doc)


def bm25s(folder: Path, documents: int, queries: list[str]):
    """bm25s with its numba backend; the removed documents have the weight 0."""
    import bm25s as peer

    texts, removed = [], []
    for table in _read(folder, documents):
        texts += table["text"].to_pylist()
        removed.append(table["removed"].to_numpy())
    words = partial(peer.tokenize, token_pattern=r"[a-z0-9]+", stopwords=None, show_progress=False)
    index = peer.BM25(k1=bm25.K1, b=bm25.B, method="lucene", backend="numba")
    index.index(words(texts), show_progress=False)
    del texts
    asked = [[index.vocab_dict[word] for word in query if word in index.vocab_dict] for query in words(queries, return_ids=False)]
    mask = (~np.concatenate(removed)).astype(np.float32)

    def search(threads: int) -> Hits:
        found = index.retrieve(asked, k=min(K, len(mask)), n_threads=threads if threads > 1 else 0, show_progress=False, weight_mask=mask)
        return Hits(found.documents, found.scores)

    return search, len(index.scores["data"])


def brute(folder: Path, documents: int, queries: list[str]):
    """Every document scored by the float64 loop of DESIGN section 4, nothing skipped, words by lib.text.tokens."""
    asked = [sorted(Counter(tokens(query)).items()) for query in queries]
    number = {word: i for i, word in enumerate(sorted({word for query in asked for word, _ in query}))}
    df, chunks, words, row = np.zeros(len(number), np.int64), [], 0, 0
    for table in _read(folder, documents):
        found, lengths = [], []
        for i, text in enumerate(table["text"].to_pylist()):
            listed = tokens(text)
            lengths.append(len(listed))
            found += [(number[word], i, tf) for word, tf in Counter(listed).items() if word in number]
        word, doc, tf = np.array(found, np.int32).reshape(-1, 3).T
        del found
        order = np.argsort(word, kind="stable")
        start = np.searchsorted(word[order], np.arange(len(number) + 1))
        df += np.diff(start)
        chunks.append((row, start, doc[order], tf[order].copy(), np.array(lengths), table["removed"].to_numpy()))
        words, row = words + sum(lengths), row + len(table)
    average = words / max(row, 1)

    def search(threads: int) -> Hits:
        best = hits.none(len(queries), K)
        for first, start, doc, tf, length, removed in chunks:
            part = hits.none(len(queries), K)
            for q, query in enumerate(asked):
                score = np.zeros(len(length))
                for word, count in query:
                    w = number[word]
                    some = slice(start[w], start[w + 1])
                    norm = bm25.K1 * (1 - bm25.B + bm25.B * length[doc[some]] / average)
                    score[doc[some]] += (count * bm25.idf(row, int(df[w]))) * (tf[some] / (tf[some] + norm))
                key = np.where(removed, 0, score).astype(np.float32)
                order = np.lexsort((np.arange(len(key)), -key))[:K]
                order = order[key[order] > 0]
                part.doc[q, : len(order)], part.score[q, : len(order)] = order + first, key[order]
            best = hits.merge(best, part, K)
        return best

    return search, int(df.sum())


WAYS: dict[str, Callable] = {way.__name__: way for way in (blocks, bm25s, brute)}
PEERS = ["bm25s"] if find_spec("bm25s") else []


def child(way: str, folder: Path, documents: int, rounds: int) -> Measured:
    """Run one way in a fresh process; RuntimeError with the last line that it printed where it fails."""
    env = os.environ | {"NUMBA_NUM_THREADS": "2"}
    told = processes.answer(way, "lib.retrieval.bm25_measure", way, str(folder), str(documents), str(rounds), cwd=paths.ROOT, env=env)
    return Measured(**json.loads(told.splitlines()[-1]))


def lists(way: str, folder: Path) -> Hits:
    """The lists that a way left."""
    found = np.load(folder / f"{way}.npz")
    return Hits(found["doc"], found["score"])


def measured(way: str, folder: Path, documents: int, rounds: int) -> Measured:
    """Run one way in this process, its compiled loops warm; `rounds` 0 searches once and measures no threads."""
    queries = json.loads((folder / "queries.json").read_text())
    warm, _ = WAYS[way](folder, 200, queries[:8])
    warm(1)
    before, cpu = processes.memory(most=False), time.process_time()
    search, postings = WAYS[way](folder, documents, queries)
    build, laps, walls = time.process_time() - cpu, [], {1: [], 2: []}
    for _ in range(max(rounds, 1)):
        for threads in (1, 2) if rounds else (1,):
            cpu, wall = time.process_time(), time.perf_counter()
            found = search(threads)
            walls[threads].append(time.perf_counter() - wall)
            if threads == 1:
                laps.append(time.process_time() - cpu)
                listed = found
    mib = processes.memory() - before
    np.savez(folder / f"{way}.npz", doc=listed.doc, score=listed.score)
    digest = hashlib.sha256(listed.doc.tobytes() + listed.score.tobytes()).hexdigest()
    assert found.doc.tobytes() == listed.doc.tobytes() or way != "blocks"
    return Measured(build, min(laps), min(walls[1]), min(walls[2], default=float("nan")), mib, postings, digest)


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))._asdict()))
