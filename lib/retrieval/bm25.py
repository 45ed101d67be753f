"""BM25 over lowercased [a-z0-9]+ words, exact.

The form of Robertson and Zaragoza 2009 as Lucene 8 and later score it (LUCENE-8563, without the
constant k1 + 1): sum over the query's words of ln(1 + (N - df + 0.5)/(df + 0.5)) tf/(tf + k1(1 - b + b len/avglen)),
a word that stands twice in the query counts twice. The idf is above 0, so every match is.

The queries are known ahead: only their words are indexed and counted. Score: float64, the query's distinct words
ascending by bytes, (count * idf) * (tf / (tf + k1 * (1 - b + b * len / avglen))), rounded to float32.
"""

import math
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib.retrieval import blocks, hits, parallel, tokenizer
from lib.retrieval.blocks import Blocks, Ready
from lib.retrieval.hits import Heap, Hits
from lib.retrieval.postings import Groups, Statistics
from lib.retrieval.tokenizer import Vocabulary

K1 = 1.2
B = 0.75
PART = 4 * blocks.BLOCK  # documents that are not removed in a part of a corpus in memory

Documents = Sequence[str] | pa.Array | pa.ChunkedArray


class Asked(NamedTuple):
    """Some queries: `words` (int32, ascending numbers of the vocabulary), each query's distinct places there, and the weight of each."""

    words: np.ndarray
    units: Groups
    weight: np.ndarray  # float64, the word's count in the query * idf; goes with units.member
    heaviest: np.ndarray  # int64, places of units.member, of each query by weight


def vocabulary(queries: Documents, threads: int = 1) -> Vocabulary:
    """The distinct words of all queries, ascending by bytes."""
    return tokenizer.vocabulary(tokenizer.of(queries), threads)


def index(texts: Documents, known: Vocabulary, removed=None) -> tuple[Blocks, Statistics]:
    """One document part for the words of the queries; empty texts are legal rows.

    The statistics are those of all documents; those that are `removed` (bool[documents]) then leave the blocks.
    """
    counts = tokenizer.counts(tokenizer.of(texts), known)
    df = np.bincount(counts.word, minlength=known.size)
    found = Statistics(len(counts.length), int(counts.length.sum()), df)
    return blocks.invert(counts, known.size, hits.removed_mask(removed, len(counts.length))), found


def added(a: Statistics, b: Statistics) -> Statistics:
    """The statistics of two document parts together."""
    return Statistics(*(x + y for x, y in zip(a, b, strict=True)))


def idf(documents: int, df: int) -> float:
    """ln(1 + (N - df + 0.5)/(df + 0.5)), by the scalar logarithm."""
    return math.log(1.0 + (documents - df + 0.5) / (df + 0.5))


def ask(queries: Documents, known: Vocabulary, statistics: Statistics) -> Asked:
    """Weigh the words of queries by the statistics of the whole corpus before removal; a query without a word finds nothing."""
    counts = tokenizer.counts(tokenizer.of(queries), known)
    words, member = np.unique(counts.word, return_inverse=True)
    idfs = np.array([idf(statistics.documents, df) for df in statistics.df[words].tolist()], np.float64)
    weight, query = counts.count * idfs[member], np.repeat(np.arange(len(counts.length)), np.diff(counts.start))
    return Asked(words, Groups(counts.start, member.astype(np.int32)), weight, np.lexsort((-weight, query)))


def ready(part: Blocks, statistics: Statistics, asked: Asked) -> Ready:
    """Make a document part ready for some queries."""
    average = statistics.words / max(statistics.documents, 1)
    norm = K1 * (1 - B + B * part.length / (average or 1.0))
    return blocks.ready(part, asked.words, len(statistics.df), norm)


def search(best: Heap, part: Ready, asked: Asked, row: int = 0, threads: int = 1) -> None:
    """Put the documents of a part into the heaps, one a query; `row` is the corpus row of its first. Only scores above 0."""
    blocks.add(best, part, asked.units, asked.weight, asked.heaviest, row, threads)


def _parts(removed: np.ndarray) -> Iterator[slice]:
    """Ranges of rows with PART documents that are not removed, the last with fewer."""
    ends = np.flatnonzero(~removed)[PART - 1 :: PART] + 1
    edges = [0, *ends.tolist(), len(removed)]
    return (slice(first, last) for first, last in zip(edges[:-1], edges[1:], strict=True) if last > first)


def indexed(texts: Documents, known: Vocabulary, removed: np.ndarray, threads: int = 1) -> tuple[Blocks, Statistics]:
    """A whole corpus in memory as one part, read a few blocks at a time."""
    rows, total, lock = list(_parts(removed)), Statistics(0, 0, np.zeros(known.size, np.int64)), Lock()

    def one(some: slice) -> Blocks:
        nonlocal total
        part, found = index(texts[some], known, removed[some])
        with lock:
            total = added(total, found)
        return part

    parts = parallel.each(one, rows, threads)
    return blocks.joined(parts, [some.start for some in rows]), total


def top(texts: Documents, queries: Documents, k: int = 100, removed=None, threads: int = 1) -> Hits:
    """The best k documents of each query.

    `removed` (bool[documents]) takes documents out of the result, not out of the statistics.
    An empty corpus, empty texts and empty queries give empty lists.
    """
    best = hits.heap(len(queries), k, threads)
    known = vocabulary(queries, threads)
    part, statistics = indexed(texts, known, hits.removed_mask(removed, len(texts)), threads)
    asked = ask(queries, known, statistics)
    search(best, ready(part, statistics, asked), asked, threads=threads)
    return hits.ranked(best, threads)
