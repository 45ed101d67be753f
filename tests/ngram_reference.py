"""The 5-gram route step by step: pairs of words are numbered, then triples, and so on; exact, nothing is hashed."""

from typing import NamedTuple

import numpy as np

from lib import text
from lib.retrieval import bm25
from lib.retrieval.hits import Hits
from lib.retrieval.postings import Groups, Postings

UNIT = 2.0**-32


class Queries(NamedTuple):
    """`steps[i]` holds, ascending, the codes (number of the first i + 1 words' gram) * words + (next word) of all grams of i + 2 words."""

    vocabulary: dict[str, int]
    steps: list[np.ndarray]
    units: Groups
    size: int


def group(key, member, keys, members) -> Groups:
    pairs = np.unique(np.asarray(key, np.int64) * max(members, 1) + member)
    start = np.searchsorted(pairs, np.arange(keys + 1, dtype=np.int64) * max(members, 1))
    return Groups(start, (pairs % max(members, 1)).astype(np.int32))


def words(texts, known):
    read = [text.tokens(one) for one in texts]
    length = np.array([len(found) for found in read], np.int64)
    return np.array([known.get(word, -1) for found in read for word in found], np.int64), length


def _longer(gram, at, size, word, of, count):
    """Codes of the grams one word longer than those that start `at`, where the text goes on with a known word."""
    end = np.minimum(at + size, len(word) - 1)
    on = (at + size < len(word)) & (of[end] == of[at]) & (word[end] >= 0)
    return gram[on] * count + word[end[on]], at[on]


def read_queries(texts, n=5) -> Queries:
    known = {word: number for number, word in enumerate(sorted({word for one in texts for word in text.tokens(one)}))}
    word, length = words(texts, known)
    of = np.repeat(np.arange(len(texts)), length)
    gram, at, steps = word, np.arange(len(word)), []
    for size in range(1, n):
        code, at = _longer(gram, at, size, word, of, len(known))
        codes, gram = np.unique(code, return_inverse=True)
        steps.append(codes)
    size = len(steps[-1]) if steps else len(known)
    return Queries(known, steps, group(of[at], gram, len(texts), size), size)


def index(texts, queries: Queries) -> Postings:
    word, length = words(texts, queries.vocabulary)
    of = np.repeat(np.arange(len(texts)), length)
    at = np.flatnonzero(word >= 0)
    gram = word[at]
    for size, codes in enumerate(queries.steps, 1):
        code, at = _longer(gram, at, size, word, of, len(queries.vocabulary))
        gram = np.searchsorted(codes, code)
        found = np.append(codes, -1)[gram] == code
        gram, at = gram[found], at[found]
    return Postings(group(gram, of[at], queries.size, len(texts)), length)


def top(texts, queries, k=100, removed=None, n=5) -> Hits:
    """The sums of integers query by query, rounded once to float32, sorted by score and row."""
    asked = read_queries(queries, n)
    units = index(texts, asked).units
    idf = [round(bm25.idf(len(texts), int(df)) / UNIT) for df in np.diff(units.start)]
    found = Hits(np.full((len(queries), k), -1, np.int32), np.zeros((len(queries), k), np.float32))
    for q in range(len(queries)):
        sums: dict[int, int] = {}
        for unit in asked.units.member[asked.units.start[q] : asked.units.start[q + 1]]:
            for doc in units.member[units.start[unit] : units.start[unit + 1]].tolist():
                sums[doc] = sums.get(doc, 0) + idf[unit]
        kept = [(-np.float32(total) * np.float32(UNIT), doc) for doc, total in sums.items() if removed is None or not removed[doc]]
        for place, (score, doc) in enumerate(sorted(kept)[:k]):
            found.doc[q, place], found.score[q, place] = doc, -score
    return found
