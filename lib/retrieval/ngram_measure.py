"""What the 5-gram route takes beside dictionaries of tuples: texts with planted phrases, the peers, and a fresh process over shards.

`python -m lib.retrieval.ngram_measure CONFIG` draws the texts of a configuration (`Drawn` as JSON), reads its documents
shard by shard and prints its JSON.
"""

import gc
import hashlib
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import processes, text
from lib.retrieval import bm25, hits, ngram
from lib.retrieval.hits import Hits
from lib.retrieval.postings import statistics

_DRAWS = 1 << 22  # equally likely outcomes of a draw of a word
PHRASE = 12  # words


class Drawn(NamedTuple):
    """What is drawn: texts of words by Zipf's law, lengths lognormal, a share of the words in phrases of a pool that documents and queries share."""

    documents: int
    queries: int
    document_tokens: int  # mean
    query_tokens: int  # mean
    words: int = 500_000
    phrases: int = 100_000
    planted: tuple[float, float] = (0.05, 0.7)  # share of documents, of queries
    shard: int = 4_000  # documents
    seed: int = 0


class Language(NamedTuple):
    names: pa.Array
    outcome: np.ndarray  # int32[_DRAWS], the word of each outcome
    phrases: np.ndarray  # int32[phrases, PHRASE]


class Measured(NamedTuple):
    """Of a process that read all shards: what it read, seconds of its processor and of the clock without the drawing, its peak in MiB, its lists."""

    tokens: int
    query_tokens: int
    grams: int
    postings: int
    read: float  # processor seconds: the queries
    passed: float  # the documents
    search: float
    clock: list[float]  # read, passed, search by the clock
    mib: float
    sha256: str
    checked: list[list[list]]  # (document, score) of the first queries


def _name(number: int) -> str:
    """Distinct words of letters: every seventh is a long one."""
    left, letters = 9_973 * number + 1_000, ""
    while left:
        left, letter = divmod(left - 1, 26)
        letters += chr(97 + letter)
    return letters + "theorem" if number % 7 == 3 else letters


def language(drawn: Drawn) -> Language:
    """Word r of 1 ... words with a probability like 1/r."""
    sums = np.cumsum(1 / np.arange(1, drawn.words + 1.0))
    outcome = np.searchsorted(sums / sums[-1], (np.arange(_DRAWS) + 0.5) / _DRAWS).astype(np.int32)
    rng = np.random.default_rng([drawn.seed, 0])
    return Language(pa.array(map(_name, range(drawn.words)), pa.string()), outcome, outcome[rng.integers(0, _DRAWS, (drawn.phrases, PHRASE))])


def numbers(spoken: Language, count: int, mean: int, planted: float, seed: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The word numbers of `count` texts end to end, and the length of each."""
    rng = np.random.default_rng(seed)
    length = np.maximum(1, rng.lognormal(math.log(mean) - 0.125, 0.5, count)).astype(np.int64)
    word = spoken.outcome[rng.integers(0, _DRAWS, length.sum())]
    at = rng.integers(0, max(1, len(word) - PHRASE), rng.binomial(len(word), planted / PHRASE))
    word[np.minimum(at[:, None] + np.arange(PHRASE), len(word) - 1)] = spoken.phrases[rng.integers(0, len(spoken.phrases), len(at))]
    return word, length


def _texts(spoken: Language, word: np.ndarray, length: np.ndarray) -> pa.Array:
    ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(length, dtype=np.int32)])
    return pc.binary_join(pa.ListArray.from_arrays(ends, spoken.names.take(pa.array(word))), " ")


def _shards(drawn: Drawn, spoken: Language) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for first in range(0, drawn.documents, drawn.shard):
        yield numbers(spoken, min(drawn.shard, drawn.documents - first), drawn.document_tokens, drawn.planted[0], [drawn.seed, 1, first])


def documents(drawn: Drawn, spoken: Language) -> Iterator[pa.Array]:
    """The documents, shard by shard."""
    return (_texts(spoken, *shard) for shard in _shards(drawn, spoken))


def queries(drawn: Drawn, spoken: Language) -> pa.Array:
    return _texts(spoken, *numbers(spoken, drawn.queries, drawn.query_tokens, drawn.planted[1], [drawn.seed, 2]))


def _idf(documents: int, df: int) -> int:
    return round(bm25.idf(documents, df) / ngram.UNIT)


def _ranked(found: Mapping[tuple, Sequence[int]], asked: Iterable[Iterable[tuple]], documents: int, k: int) -> Hits:
    """The best k of each query from the documents of each n-gram."""
    rows = []
    for grams in asked:
        sums: dict[int, int] = defaultdict(int)
        for gram in grams:
            if here := found.get(gram):
                idf = _idf(documents, len(here))
                for document in here:
                    sums[document] += idf
        scored = ((np.float32(total) * np.float32(ngram.UNIT), document) for document, total in sums.items())
        rows.append(sorted(scored, key=lambda one: (-one[0], one[1]))[:k])
    best = hits.none(len(rows), k)
    for row, places in enumerate(rows):
        for place, (score, document) in enumerate(places):
            best.doc[row, place], best.score[row, place] = document, score
    return best


def by_dictionary(texts: Iterable[str], asked: Iterable[str], k: int = 100, n: int = ngram.N) -> Hits:
    """The peer: an inverted index of all n-grams of the documents, a dictionary whose keys are tuples of words."""
    found, count = defaultdict(list), 0
    for row, one in enumerate(texts):
        words, count = text.tokens(one), row + 1
        for gram in set(zip(*(words[i:] for i in range(n)), strict=False)):
            found[gram].append(row)
    return _ranked(found, (text.grams(text.tokens(query), n) for query in asked), count, k)


def by_known(texts: Iterable[str], asked: Iterable[str], k: int = 100, n: int = ngram.N) -> Hits:
    """The same dictionary with our order of work: the queries first, and of a document only the n-grams that one of them holds."""
    grams, count = [text.grams(text.tokens(query), n) for query in asked], 0
    found: dict[tuple, list[int]] = {gram: [] for query in grams for gram in query}
    known = set(found)
    for row, one in enumerate(texts):
        words, count = text.tokens(one), row + 1
        for gram in known.intersection(zip(*(words[i:] for i in range(n)), strict=False)):
            found[gram].append(row)
    return _ranked(found, grams, count, k)


def brute_force(drawn: Drawn, count: int, k: int = 100, n: int = ngram.N) -> list[list[list]]:
    """(document, score) of the first queries from the numbers that were drawn: no text is read and nothing is hashed.

    Every place of every document is compared with the queries' n-grams by its first two words, and where these stand, by all.
    """
    spoken = language(drawn)
    word, length = numbers(spoken, drawn.queries, drawn.query_tokens, drawn.planted[1], [drawn.seed, 2])
    asked = [{tuple(word[i : i + n].tolist()) for i in range(a, b - n + 1)} for a, b in pairwise(np.concatenate([[0], np.cumsum(length)])[: count + 1].tolist())]
    found: dict[tuple, list[int]] = {gram: [] for query in asked for gram in query}
    begins = np.unique([gram[0] * drawn.words + gram[min(1, n - 1)] for gram in found])
    first = 0
    for word, length in _shards(drawn, spoken):
        of, code = np.repeat(np.arange(len(length)), length), word.astype(np.int64) * drawn.words
        code[: len(code) - (n > 1)] += word[(n > 1) :]
        code = code[: len(word) - n + 1]
        place = np.searchsorted(begins, code)
        for i in np.flatnonzero(np.append(begins, -1)[place] == code).tolist():
            here = found.get(tuple(word[i : i + n].tolist()))
            if here is not None and of[i] == of[i + n - 1] and (not here or here[-1] != first + of[i]):
                here.append(int(first + of[i]))
        first += len(length)
    return _pairs(_ranked(found, asked, first, k), count)


def _pairs(found: Hits, count: int) -> list[list[list]]:
    return [[[doc, score] for doc, score in zip(docs, scores, strict=True) if doc >= 0]
            for docs, scores in zip(found.doc[:count].tolist(), found.score[:count].tolist(), strict=True)]


def uncollected(way: Callable) -> Callable:
    """The same without Python's garbage collection, which else walks over every tuple of a growing dictionary."""

    def without():
        gc.disable()
        try:
            return way()
        finally:
            gc.enable()

    return without


def race(ways: Mapping[str, Callable], rounds: int) -> dict[str, tuple[float, Hits]]:
    """The least processor seconds of each way over the rounds, one after the other in each, and its lists."""
    least: dict[str, tuple[float, Hits]] = {}
    for _ in range(rounds):
        for name, way in ways.items():
            gc.collect()
            found, _, taken = _timed(way)
            least[name] = min(least.get(name, (math.inf, found)), (taken, found), key=lambda one: one[0])
    return least


def _timed(work: Callable):
    clock, processor = time.perf_counter(), time.process_time()
    made = work()
    return made, time.perf_counter() - clock, time.process_time() - processor


def stream(drawn: Drawn, threads: int, checked: int, k: int = 100) -> Measured:
    """Read the queries, then the documents shard by shard, then search all queries; drawing the texts is not counted."""
    small = pa.array(["a b c d e f"])
    ngram.top(small, small, threads=threads)  # what is compiled is read from numba's cache
    spoken = language(drawn)
    texts = queries(drawn, spoken)
    asked, *read = _timed(lambda: ngram.read_queries(texts, threads=threads))
    parts, passed = [], np.zeros(2)
    for shard in documents(drawn, spoken):
        found, *taken = _timed(lambda shard=shard: ngram.find(shard, asked, threads))
        parts.append(found)
        passed += taken
    part, *grouped = _timed(lambda: ngram.grouped(parts, asked, threads))
    passed += grouped
    found, *search = _timed(lambda: ngram.search(part, statistics(part), asked, k, threads=threads))
    return Measured(
        int(part.length.sum()), len(asked.word), asked.size, len(part.units.member), read[1], passed[1], search[1],
        [read[0], passed[0], search[0]], processes.memory(),
        hashlib.sha256(found.doc.tobytes() + found.score.tobytes()).hexdigest(), _pairs(found, checked),
    )


def apart(drawn: Drawn, threads: int = 1, checked: int = 0) -> Measured:
    """`stream` in a process of its own, whose peak of memory is its own."""
    config = json.dumps({"drawn": drawn._asdict(), "threads": threads, "checked": checked})
    return Measured(**json.loads(processes.answer(f"measuring {drawn.documents:,} documents", "lib.retrieval.ngram_measure", config)))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(stream(Drawn(**given["drawn"]), given["threads"], given["checked"])._asdict()))
