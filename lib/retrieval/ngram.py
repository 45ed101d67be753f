"""Word n-gram overlap, idf-weighted and exact (spec, "The candidate design": word 5-gram overlap).

A document's score is the sum of idf(g) over the distinct word n-grams g that it shares with the
query; idf as in BM25, rounded to a multiple of 2^-32 so that the sum is one of integers.
The n-grams of all queries are read first; then one pass over the documents keeps, of each, only those that some
query holds (lib.retrieval.grams). A hash finds them and their words decide, so that nothing is merged.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib.retrieval import bm25, grams, parallel, postings, tokenizer
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
    """The n-grams of some documents that queries hold, each once a document: documents ascending, and so the n-grams of each."""

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
    windows, key = int(np.maximum(length - n + 1, 0).sum()), tokenizer.keys(known, known.size)
    slots, bits, at, gram, spent = _numbered(word, first, key, n, windows, threads)
    size = np.empty(len(length), np.int64)
    parallel.in_ranges(lambda a, b: grams.distinct(a, b, gram, first, size), len(size), threads)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    units = Groups(start, spent[: start[-1]])
    parallel.in_ranges(lambda a, b: grams.packed(a, b, gram, first, size, *units), len(size), threads)
    return Queries(n, known, key, word, at, slots, bits, _ranges(windows), units)


def _ranges(windows: int) -> int:
    """In how many ranges a table of so many n-grams is filled; no result depends on it but their numbers."""
    return RANGES if windows >= LARGE else 1


def _numbered(word: np.ndarray, first: np.ndarray, key: np.ndarray, n: int, windows: int, threads: int) -> tuple[np.ndarray, ...]:
    """The table, the filter, where the words of each gram begin, the gram that begins at each word, or -1; and int32[windows] that is free again.

    New memory takes more time than what is done in it.
    """
    parts, queries = _ranges(windows), len(first) - 1
    edges = np.linspace(0, queries, threads + 1).astype(int)
    end, none = np.zeros((threads, parts), np.int64), (np.empty(0, np.int32), np.empty(0, np.uint64), np.empty(0, np.int32))
    window, hashes, gram = np.empty(windows, np.int32), np.empty(windows, np.uint64), np.empty(len(word), np.int32)

    def spread(*into: np.ndarray) -> None:
        parallel.each(lambda t: grams.spread(edges[t], edges[t + 1], word, first, key, n, end[t], *into), range(threads), threads)

    spread(*none)
    ends = np.cumsum(end.T).reshape(parts, threads)  # by range, then by thread, so that each range has the queries' order
    start = np.concatenate([np.zeros(1, np.int64), ends[:, -1]])
    end = np.ascontiguousarray((ends - end.T).T)
    spread(window, hashes, gram)
    bits = np.zeros(1 << max(6, (windows // 8).bit_length()), np.uint64)  # 8 to 16 bits a gram, two of them set: small enough for a cache
    places, at, size = 1 << max(4, (windows + windows // 2).bit_length()), np.empty(windows, np.int32), np.full(parts, -1)
    while (size < 0).any():
        slots = np.zeros(places, np.uint64)
        parallel.each(lambda part: grams.number(part, parts, start, window, hashes, word, n, slots, bits, at, gram, size), range(parts), threads)
        places *= 2
    base = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    parallel.each(lambda part: grams.renumber(part, parts, start, base, window, slots, gram), range(parts), threads)
    for a, b, old in zip(base[:-1], base[1:], start[:-1], strict=True):
        at[a:b] = at[old : old + b - a]
    return slots, bits, at[: base[-1]], gram, window


def _find(texts: Documents, queries: Queries, first: int) -> Found:
    """What the documents from row `first` on hold, TEXTS of them at most."""
    read, known = tokenizer.of(texts[first : first + TEXTS]), queries.vocabulary
    cuts, largest = tokenizer.blocks(read)
    eights, edge, key = tokenizer.room(largest)
    places, hashes, length = np.empty(len(key), np.int32), np.empty(len(key), np.uint64), np.empty(len(read.start) - 1, np.int64)
    unit, doc, block, found = np.empty(0, np.int32), np.empty(0, np.int32), 0, 0
    while block < len(cuts) - 1:
        unit, doc = _longer(unit[:found], 2 * len(key)), _longer(doc[:found], 2 * len(key))
        block, found = grams.find(
            *read, cuts, block, eights, edge, key, places, hashes, queries.n, queries.bits, queries.slots, queries.room, queries.at, queries.word,
            queries.key, known.data, known.start, length, found, unit, doc,
        )  # fmt: skip
    return Found(unit[:found].copy(), doc[:found].copy(), length)


def _longer(values: np.ndarray, more: int) -> np.ndarray:
    """The values, with room for more."""
    longer = np.empty(len(values) + more, values.dtype)
    longer[: len(values)] = values
    return longer


def _joined(parts: Iterable[Found]) -> Found:
    """What parts hold that follow each other; their documents are numbered on."""
    kept, rows = [Found(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))], 0
    for part in parts:
        kept.append(part._replace(doc=part.doc + np.int32(rows)))
        rows += len(part.length)
    return Found(*map(np.concatenate, zip(*kept, strict=True)))


def find(texts: Documents, queries: Queries, threads: int = 1) -> Found:
    """The n-grams of the queries in the documents, in one pass."""
    return _joined(parallel.each(partial(_find, texts, queries), range(0, len(texts), TEXTS), threads))


def grouped(parts: Iterable[Found], queries: Queries, threads: int = 1) -> Postings:
    """The postings of document parts that follow each other, from what `find` gave for each; a thread groups a range of the n-grams."""
    parts, length = list(parts), [np.empty(0, np.int64)]
    length += [part.length for part in parts]
    rows, edges = np.cumsum([len(one) for one in length]), np.linspace(0, queries.size, threads + 1).astype(int)
    # start[unit + 2] counts a unit; then start[unit + 1] is where its next document goes, and at last where the next unit begins
    start, sizes = np.zeros(queries.size + 2, np.int64), np.zeros(threads, np.int64)

    def count(t: int, first: int, last: int) -> None:
        for part in parts:
            grams.count(part.unit, first, last, start)
        sizes[t] = np.cumsum(start[first + 2 : last + 2], out=start[first + 2 : last + 2])[-1]

    def place(t: int, first: int, last: int) -> None:
        start[first + 1], start[first + 2 : last + 1] = sizes[:t].sum(), start[first + 2 : last + 1] + sizes[:t].sum()
        for part, row in zip(parts, rows, strict=False):
            grams.place(part.unit, part.doc, np.int32(row), first, last, start, member)

    ranges = [(t, first, last) for t, (first, last) in enumerate(pairwise(edges.tolist())) if first < last]
    parallel.each(lambda one: count(*one), ranges, threads)
    member = np.empty(sizes.sum(), np.int32)
    parallel.each(lambda one: place(*one), ranges, threads)
    return Postings(Groups(start[:-1], member), np.concatenate(length))


def index(texts: Documents, queries: Queries, threads: int = 1) -> Postings:
    """The postings of one document part for the n-grams of the queries."""
    return grouped([find(texts, queries, threads)], queries, threads)


def index_shards(shards: Iterable[Documents], queries: Queries, threads: int = 1) -> Postings:
    """The postings of documents that come shard by shard: of a shard only what was found in it is kept."""
    return grouped((find(texts, queries, threads) for texts in shards), queries, threads)


def idfs(known: Statistics, threads: int = 1) -> np.ndarray:
    """int64[units]: the idf of each n-gram in units of 2^-32, from the scalar logarithm of each df that occurs."""
    number = np.zeros(int(known.df.max(initial=0)) + 1, np.int64)
    for df in np.flatnonzero(np.bincount(known.df, minlength=1)).tolist():
        number[df] = round(bm25.idf(known.documents, df) / UNIT)
    idf = np.empty(len(known.df), np.int64)
    parallel.in_ranges(lambda first, last: number.take(known.df[first:last], out=idf[first:last], mode="clip"), len(idf), threads)
    return idf


def search(part: Postings, known: Statistics, queries: Queries, k: int, removed=None, row: int = 0, threads: int = 1) -> Hits:
    """The best k of one document part whose first document is corpus row `row`; only documents that share an n-gram.

    `known` holds the statistics of the whole corpus before removal.
    """
    return postings.search(part, idfs(known, threads), queries.units, UNIT, k, removed, row, threads)


def top(texts: Documents, queries: Documents, k: int = 100, removed=None, n: int = N, threads: int = 1) -> Hits:
    """The best k documents of each query by shared word n-grams, each counted once.

    `removed` (bool[documents]) takes documents out of the result, not out of the statistics.
    """
    asked = read_queries(queries, n, threads)
    part = index(texts, asked, threads)
    return search(part, postings.statistics(part), asked, k, removed, threads=threads)
