"""Word n-gram overlap, idf-weighted and exact (spec, "The candidate design": word 5-gram overlap).

A document's score is the sum of idf(g) over the distinct word n-grams g that it shares with the
query; idf as in BM25, rounded to a multiple of 2^-32 so that the sum is one of integers.
N-grams are numbered step by step, pair of words, triple, ...: exact, nothing is hashed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lib.retrieval import bm25, postings
from lib.retrieval.hits import Hits
from lib.retrieval.postings import Groups, Postings, Statistics

N = 5
UNIT = 2.0**-32


class Queries(NamedTuple):
    """The distinct n-grams of each query.

    `steps[i]` holds, ascending, the codes (number of the first i + 1 words' gram) * words + (next word)
    of all grams of i + 2 words in the queries; a gram's number is its place there.
    """

    vocabulary: dict[str, int]
    steps: list[np.ndarray]
    units: Groups
    size: int  # how many distinct n-grams


def _longer(gram, at, size: int, word, text, words: int):
    """Codes of the grams one word longer than those that start `at`, where the text goes on with a known word."""
    end = np.minimum(at + size, len(word) - 1)
    on = (at + size < len(word)) & (text[end] == text[at]) & (word[end] >= 0)
    return gram[on] * words + word[end[on]], at[on]


def read_queries(texts: Sequence[str], n: int = N) -> Queries:
    """Number the n-grams of the queries; a query of fewer than n words has none and finds nothing."""
    if n < 1:
        raise ValueError(f"n is {n}; an n-gram has at least 1 word")
    known = postings.vocabulary(texts)
    word, length = postings.words(texts, known)
    text = np.repeat(np.arange(len(texts)), length)
    gram, at, steps = word.astype(np.int64), np.arange(len(word)), []
    for size in range(1, n):
        code, at = _longer(gram, at, size, word, text, len(known))
        codes, gram = np.unique(code, return_inverse=True)
        steps.append(codes)
    size = len(steps[-1]) if steps else len(known)
    return Queries(known, steps, postings.group(text[at], gram, len(texts), size), size)


def index(texts: Sequence[str], queries: Queries) -> Postings:
    """The postings of one document part for the n-grams of the queries."""
    word, length = postings.words(texts, queries.vocabulary)
    text = np.repeat(np.arange(len(texts)), length)
    at = np.flatnonzero(word >= 0)
    gram = word[at].astype(np.int64)
    for size, codes in enumerate(queries.steps, 1):
        code, at = _longer(gram, at, size, word, text, len(queries.vocabulary))
        gram = np.searchsorted(codes, code)
        found = np.append(codes, -1)[gram] == code
        gram, at = gram[found], at[found]
    return Postings(postings.group(gram, text[at], queries.size, len(texts)), length)


def search(part: Postings, known: Statistics, queries: Queries, k: int, removed=None, row: int = 0, threads: int = 1) -> Hits:
    """The best k of one document part whose first document is corpus row `row`; only documents that share an n-gram.

    `known` holds the statistics of the whole corpus before removal.
    """
    idfs = np.array([round(bm25.idf(known.documents, df) / UNIT) for df in known.df.tolist()], np.int64)
    once = np.ones(len(part.units.member), np.int64)
    return postings.search(part, queries.units, idfs[queries.units.member], once, UNIT, k, removed, row, threads)


def top(texts: Sequence[str], queries: Sequence[str], k: int = 100, removed=None, n: int = N, threads: int = 1) -> Hits:
    """The best k documents of each query by shared word n-grams, each counted once.

    `removed` (bool[documents]) takes documents out of the result, not out of the statistics.
    """
    asked = read_queries(queries, n)
    part = index(texts, asked)
    return search(part, postings.statistics(part), asked, k, removed, threads=threads)
