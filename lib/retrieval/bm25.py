"""BM25 over lowercased [a-z0-9]+ words, exact.

The form of Robertson and Zaragoza 2009 as Lucene 8 and later score it (LUCENE-8563, without the
constant k1 + 1): sum over the query's words of ln(1 + (N - df + 0.5)/(df + 0.5)) tf/(tf + k1(1 - b + b len/avglen)),
a word that stands twice in the query counts twice. The idf is above 0, so every match is.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lib.retrieval import postings
from lib.retrieval.hits import Hits
from lib.retrieval.postings import Groups, Postings, Statistics

K1 = 1.2
B = 0.75


class Queries(NamedTuple):
    """The distinct words of each query, ascending by bytes, with their number in the query."""

    vocabulary: dict[str, int]
    units: Groups

    @property
    def size(self) -> int:
        return len(self.vocabulary)


def read_queries(texts: Sequence[str]) -> Queries:
    """Number the words of the queries; a query without a word is legal and finds nothing."""
    known = postings.vocabulary(texts)
    word, length = postings.words(texts, known)
    return Queries(known, postings.group(np.repeat(np.arange(len(texts)), length), word, len(texts), len(known)))


def index(texts: Sequence[str], queries: Queries) -> Postings:
    """The postings of one document part for the words of the queries; empty texts are legal rows."""
    word, length = postings.words(texts, queries.vocabulary)
    doc, known = np.repeat(np.arange(len(texts)), length), word >= 0
    return Postings(postings.group(word[known], doc[known], queries.size, len(texts)), length)


def idf(documents: int, df: int) -> float:
    """ln(1 + (N - df + 0.5)/(df + 0.5)), by the scalar logarithm."""
    return math.log(1.0 + (documents - df + 0.5) / (df + 0.5))


def search(part: Postings, known: Statistics, queries: Queries, k: int, removed=None, row: int = 0, threads: int = 1) -> Hits:
    """The best k of one document part whose first document is corpus row `row`; only scores above 0.

    `known` holds the statistics of the whole corpus before removal. float64, the query's
    distinct words ascending by bytes: (count * idf) * (tf / (tf + k1 * (1 - b + b * len / avglen))).
    """
    idfs = np.array([idf(known.documents, df) for df in known.df.tolist()], np.float64)
    average = known.words / max(known.documents, 1)
    tf = part.units.count.astype(np.float64)
    length = part.length[part.units.member]
    weight = queries.units.count * idfs[queries.units.member]
    return postings.search(part, queries.units, weight, tf / (tf + K1 * (1 - B + B * length / (average or 1.0))), 1.0, k, removed, row, threads)


def top(texts: Sequence[str], queries: Sequence[str], k: int = 100, removed=None, threads: int = 1) -> Hits:
    """The best k documents of each query.

    `removed` (bool[documents]) takes documents out of the result, not out of the statistics.
    An empty corpus, empty texts and empty queries give empty lists.
    """
    asked = read_queries(queries)
    part = index(texts, asked)
    return search(part, postings.statistics(part), asked, k, removed, threads=threads)
