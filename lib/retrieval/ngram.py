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

Documents = Sequence[str] | pa.Array | pa.ChunkedArray


class Queries(NamedTuple):
    """The distinct n-grams of each query, numbered in the order of their words; a gram's words are `word[at[gram]:at[gram] + n]`."""

    n: int
    vocabulary: tokenizer.Vocabulary
    key: np.ndarray  # uint64[words of the vocabulary], as lib.retrieval.tokenizer.Words has them
    word: np.ndarray  # int32, the word numbers of all queries end to end
    at: np.ndarray  # int32[grams]
    slots: np.ndarray  # uint64[2**m], the table of lib.retrieval.grams
    bits: np.ndarray  # uint64[2**m], its filter
    units: Groups

    @property
    def size(self) -> int:
        """How many distinct n-grams."""
        return len(self.at)


class Found(NamedTuple):
    """The n-grams of some documents that queries hold, as they stand there: documents ascending, repeats too."""

    unit: np.ndarray  # int32
    doc: np.ndarray  # int32, rows among these documents
    length: np.ndarray  # int64[documents], in words


def _by_words(word: np.ndarray, at: np.ndarray, n: int, words: int, threads: int) -> np.ndarray:
    """The grams in the order of their words; each thread orders those that begin with a range of words."""
    if threads == 1 or not len(at):
        return grams.by_words(word, at, np.arange(len(at), dtype=np.int32), n, words)
    begins = word[at]
    share = np.searchsorted(np.cumsum(np.bincount(begins, minlength=words)), np.linspace(0, len(at), threads + 1)[1:-1])
    cuts = [0, *share.tolist(), words]

    def of_range(first: int, last: int) -> np.ndarray:
        chosen = np.flatnonzero((first <= begins) & (begins < last)).astype(np.int32)
        return grams.by_words(word, at, chosen, n, words)

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(of_range, cuts[:-1], cuts[1:])))


def read_queries(texts: Documents, n: int = N, threads: int = 1) -> Queries:
    """Number the n-grams of the queries; a query of fewer than n words has none and finds nothing."""
    if n < 1:
        raise ValueError(f"n is {n}; an n-gram has at least 1 word")
    known, word, length = tokenizer.numbered(tokenizer.of(texts), threads)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
    windows = int(np.maximum(length - n + 1, 0).sum())
    key, held = np.empty(known.size, np.uint64), known.slot_key > 0
    key[known.slot_word[held]] = known.slot_key[held]
    slots = np.zeros(1 << max(4, (windows + windows // 2).bit_length()), np.uint64)
    bits = np.zeros(1 << max(1, (windows // 8).bit_length()), np.uint64)  # 8 to 16 bits a gram, two of them set: small enough for a cache
    at, gram = np.empty(windows, np.int32), np.empty(len(word), np.int32)
    at = at[: grams.number(word, first, key, n, slots, bits, at, gram)]
    at = grams.renumber(_by_words(word, at, n, known.size, threads), slots, at, gram)
    size, count = np.empty(len(length), np.int64), np.empty(len(word), np.int64)
    hits.in_threads(lambda a, b: grams.distinct(a, b, gram, first, size, count), len(size), threads)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    units = Groups(start, np.empty(start[-1], np.int32), np.empty(start[-1], np.int64))
    grams.packed(gram, first, size, count, *units)
    return Queries(n, known, key, word, at, slots, bits, units)


def _find(texts: Documents, queries: Queries, first: int) -> Found:
    """What the documents from row `first` on hold, TEXTS of them at most."""
    parts, at, hashes = [], np.empty(0, np.int32), np.empty(0, np.uint64)
    for _, block in tokenizer.read(tokenizer.of(texts[first : first + TEXTS])):
        if len(at) < len(block.key):
            at, hashes = np.empty(2 * len(block.key), np.int32), np.empty(2 * len(block.key), np.uint64)
        kept = grams.sift(block.key, queries.n, queries.bits, at, hashes)
        unit, doc = np.empty(kept, np.int32), np.empty(kept, np.int32)
        found = grams.match(
            at[:kept], hashes[:kept], *block, queries.n, queries.slots, queries.at, queries.word,
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


def grouped(parts: Iterable[Found], queries: Queries) -> Postings:
    """The postings of document parts that follow each other, from what `find` gave for each."""
    found = _joined(parts)
    start = np.zeros(queries.size + 1, np.int64)
    grams.add(found.unit, start)
    np.cumsum(start, out=start)
    member, count = np.empty(len(found.doc), np.int32), np.empty(len(found.doc), np.int64)
    grams.place(found.unit, found.doc, start[:-1].copy(), member)
    kept = grams.once(start, member, count)
    return Postings(Groups(start, member[:kept].copy(), count[:kept].copy()), found.length)


def index(texts: Documents, queries: Queries, threads: int = 1) -> Postings:
    """The postings of one document part for the n-grams of the queries."""
    return grouped([find(texts, queries, threads)], queries)


def index_shards(shards: Iterable[Documents], queries: Queries, threads: int = 1) -> Postings:
    """The postings of documents that come shard by shard: of a shard only what was found in it is kept."""
    return grouped((find(texts, queries, threads) for texts in shards), queries)


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
