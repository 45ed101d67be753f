"""Word n-gram overlap, idf-weighted and exact (spec, "The candidate design": word 5-gram overlap).

A document's score is the sum of idf(g) over the distinct word n-grams g that it shares with the
query; idf as in BM25, rounded to a multiple of 2^-32 so that the sum is one of integers.
The n-grams of all queries are read first; then one pass over the documents keeps, of each, only those that some
query holds (lib.retrieval.grams). A hash finds them and their words decide, so that nothing is merged.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib.retrieval import bm25, grams, hits, postings, tokenizer
from lib.retrieval.hits import Hits
from lib.retrieval.postings import Groups, Postings, Statistics

N = 5
UNIT = 2.0**-32
TEXTS = 512  # documents that are encoded and read by one thread at a time
RANGES, LARGE = 64, 1 << 18  # ranges of the queries' table where it holds so many n-grams

Documents = Sequence[str] | pa.Array | pa.ChunkedArray


class Queries(NamedTuple):
    """The distinct n-grams of each query, numbered by ranges of their hashes and there as they come; a gram's words are `word[at[gram]:at[gram] + n]`."""

    n: int
    vocabulary: tokenizer.Vocabulary
    key: np.ndarray  # uint64[words of the vocabulary], as lib.retrieval.tokenizer.Words has them
    word: np.ndarray  # int32, the word numbers of all queries end to end
    at: np.ndarray  # int32[grams]
    slots: np.ndarray  # uint64[2**m], the table of lib.retrieval.grams
    bits: np.ndarray  # uint64[2**m], its filter
    ranges: int  # that the table is filled by
    units: Groups

    @property
    def size(self) -> int:
        """How many distinct n-grams."""
        return len(self.at)

    @property
    def room(self) -> int:
        """Places of a range of the table."""
        return len(self.slots) // self.ranges


class Found(NamedTuple):
    """The n-grams of some documents that queries hold, as they stand there: documents ascending, repeats too."""

    unit: np.ndarray  # int32
    doc: np.ndarray  # int32, rows among these documents
    length: np.ndarray  # int64[documents], in words


def read_queries(texts: Documents, n: int = N, threads: int = 1) -> Queries:
    """Number the n-grams of the queries; a query of fewer than n words has none and finds nothing."""
    if n < 1:
        raise ValueError(f"n is {n}; an n-gram has at least 1 word")
    if threads < 1:
        raise ValueError(f"threads is {threads}; give at least 1")
    known, word, length = tokenizer.numbered(tokenizer.of(texts), threads)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
    windows = int(np.maximum(length - n + 1, 0).sum())
    key, held = np.empty(known.size, np.uint64), known.slot_key > 0
    key[known.slot_word[held]] = known.slot_key[held]
    slots, bits, at, gram = _numbered(word, first, key, n, windows, threads)
    size, count = np.empty(len(length), np.int64), np.empty(len(word), np.int64)
    hits.in_threads(lambda a, b: grams.distinct(a, b, gram, first, size, count), len(size), threads)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    units = Groups(start, np.empty(start[-1], np.int32), np.empty(start[-1], np.int64))
    hits.in_threads(lambda a, b: grams.packed(a, b, gram, first, size, count, *units), len(size), threads)
    return Queries(n, known, key, word, at, slots, bits, _ranges(windows), units)


def _ranges(windows: int) -> int:
    """In how many ranges a table of so many n-grams is filled; no result depends on it but their numbers."""
    return RANGES if windows >= LARGE else 1


def _numbered(word: np.ndarray, first: np.ndarray, key: np.ndarray, n: int, windows: int, threads: int) -> tuple[np.ndarray, ...]:
    """The table, the filter, where the words of each gram begin, and the gram that begins at each word, or -1."""
    parts, queries = _ranges(windows), len(first) - 1
    edges = np.linspace(0, queries, threads + 1).astype(int)
    end, none = np.zeros((threads, parts), np.int64), (np.empty(0, np.int32), np.empty(0, np.uint64))
    window, hashes = np.empty(windows, np.int32), np.empty(windows, np.uint64)

    def spread(into: tuple[np.ndarray, np.ndarray]) -> None:
        hits.in_threads(lambda a, b: [grams.spread(edges[t], edges[t + 1], word, first, key, n, end[t], *into) for t in range(a, b)], threads, threads)

    spread(none)
    ends = np.cumsum(end.T).reshape(parts, threads)  # by range, then by thread, so that each range has the queries' order
    start = np.concatenate([np.zeros(1, np.int64), ends[:, -1]])
    end = np.ascontiguousarray((ends - end.T).T)
    spread((window, hashes))
    bits = np.zeros(1 << max(6, (windows // 8).bit_length()), np.uint64)  # 8 to 16 bits a gram, two of them set: small enough for a cache
    places, at, local, size = 1 << max(4, (windows + windows // 2).bit_length()), np.empty(windows, np.int32), np.empty(windows, np.int32), np.full(parts, -1)
    while (size < 0).any():
        slots = np.zeros(places, np.uint64)
        hits.in_threads(lambda a, b: grams.number(a, b, parts, start, window, hashes, word, n, slots, bits, at, local, size), parts, threads)
        places *= 2
    base = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    moved, gram = np.empty(base[-1], np.int32), np.full(len(word), -1, np.int32)
    hits.in_threads(lambda a, b: grams.renumber(a, b, parts, start, base, window, local, slots, at, moved, gram), parts, threads)
    return slots, bits, moved, gram


def _find(texts: Documents, queries: Queries, first: int) -> Found:
    """What the documents from row `first` on hold, TEXTS of them at most."""
    parts, at, hashes = [], np.empty(0, np.int32), np.empty(0, np.uint64)
    for _, block in tokenizer.read(tokenizer.of(texts[first : first + TEXTS])):
        if len(at) < len(block.key):
            at, hashes = np.empty(2 * len(block.key), np.int32), np.empty(2 * len(block.key), np.uint64)
        kept = grams.sift(block.key, queries.n, queries.bits, at, hashes)
        unit, doc = np.empty(kept, np.int32), np.empty(kept, np.int32)
        found = grams.match(
            at[:kept], hashes[:kept], *block, queries.n, queries.slots, queries.room, queries.at, queries.word,
            queries.key, queries.vocabulary.data, queries.vocabulary.start, unit, doc,
        )
        parts.append(Found(unit[:found], doc[:found], np.diff(block.first)))
    return _joined(parts)


def _joined(parts: Iterable[Found]) -> Found:
    """What parts hold that follow each other; their documents are numbered on."""
    kept, rows = [Found(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))], 0
    for part in parts:
        kept.append(part._replace(doc=part.doc + np.int32(rows)))
        rows += len(part.length)
    return Found(*map(np.concatenate, zip(*kept, strict=True)))


def find(texts: Documents, queries: Queries, threads: int = 1) -> Found:
    """The n-grams of the queries in the documents, in one pass."""
    firsts, here = range(0, len(texts), TEXTS), partial(_find, texts, queries)
    if threads == 1 or len(firsts) < 2:
        return _joined(map(here, firsts))
    with ThreadPoolExecutor(threads) as pool:
        return _joined(pool.map(here, firsts))


def grouped(parts: Iterable[Found], queries: Queries, threads: int = 1) -> Postings:
    """The postings of document parts that follow each other, from what `find` gave for each; a thread groups a range of the n-grams."""
    found = _joined(parts)

    def of_range(first: int, last: int) -> Groups:
        unit, doc = found.unit, found.doc
        if last - first < queries.size:
            unit, doc = np.empty_like(unit), np.empty_like(doc)
            among = grams.among(found.unit, found.doc, first, last, unit, doc)
            unit, doc = unit[:among], doc[:among]
        start = np.zeros(last - first + 1, np.int64)
        grams.add(unit, start)
        np.cumsum(start, out=start)
        member, count = np.empty(len(doc), np.int32), np.empty(len(doc), np.int64)
        grams.place(unit, doc, start[:-1].copy(), member)
        kept = grams.once(start, member, count)
        return Groups(start, member[:kept], count[:kept])

    edges = np.linspace(0, queries.size, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        groups = list(pool.map(of_range, edges[:-1], edges[1:]))
    before = np.cumsum([0, *(len(one.member) for one in groups)])
    starts = [one.start[:-1] + base for one, base in zip(groups, before[:-1], strict=True)]
    units = Groups(np.concatenate([*starts, before[-1:]]), *(np.concatenate(columns) for columns in list(zip(*groups, strict=True))[1:]))
    return Postings(units, found.length)


def index(texts: Documents, queries: Queries, threads: int = 1) -> Postings:
    """The postings of one document part for the n-grams of the queries."""
    return grouped([find(texts, queries, threads)], queries, threads)


def index_shards(shards: Iterable[Documents], queries: Queries, threads: int = 1) -> Postings:
    """The postings of documents that come shard by shard: of a shard only what was found in it is kept."""
    return grouped((find(texts, queries, threads) for texts in shards), queries, threads)


def idfs(known: Statistics) -> np.ndarray:
    """int64[units]: the idf of each n-gram in units of 2^-32, from the scalar logarithm of each df that occurs."""
    number = np.zeros(int(known.df.max(initial=0)) + 1, np.int64)
    for df in np.flatnonzero(np.bincount(known.df, minlength=1)).tolist():
        number[df] = round(bm25.idf(known.documents, df) / UNIT)
    return number[known.df]


def search(part: Postings, known: Statistics, queries: Queries, k: int, removed=None, row: int = 0, threads: int = 1) -> Hits:
    """The best k of one document part whose first document is corpus row `row`; only documents that share an n-gram.

    `known` holds the statistics of the whole corpus before removal.
    """
    once = np.ones(len(part.units.member), np.int64)
    return postings.search(part, queries.units, idfs(known)[queries.units.member], once, UNIT, k, removed, row, threads)


def top(texts: Documents, queries: Documents, k: int = 100, removed=None, n: int = N, threads: int = 1) -> Hits:
    """The best k documents of each query by shared word n-grams, each counted once.

    `removed` (bool[documents]) takes documents out of the result, not out of the statistics.
    """
    asked = read_queries(queries, n, threads)
    part = index(texts, asked, threads)
    return search(part, postings.statistics(part), asked, k, removed, threads=threads)
