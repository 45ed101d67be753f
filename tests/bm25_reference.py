"""BM25 without an index: every query against every document, the float64 loop of DESIGN section 4 and nothing else."""

import math
from collections import Counter

import numpy as np

from lib.retrieval.hits import Hits
from lib.text import tokens


def top(texts: list[str], queries: list[str], k: int = 100, removed=None) -> Hits:
    """What lib.retrieval.bm25.top gives, to the byte."""
    documents = [Counter(tokens(text)) for text in texts]
    length = np.array([document.total() for document in documents], np.int64)
    average = int(length.sum()) / max(len(texts), 1) or 1.0
    holding: dict[str, list[tuple[int, int]]] = {}
    for row, document in enumerate(documents):
        for word, tf in document.items():
            holding.setdefault(word, []).append((row, tf))
    held = {word: np.array(rows).T for word, rows in holding.items()}
    live = np.ones(len(texts), bool) if removed is None else ~np.asarray(removed, bool)
    found = Hits(np.full((len(queries), k), -1, np.int32), np.zeros((len(queries), k), np.float32))
    for i, query in enumerate(queries):
        score = np.zeros(len(texts))
        for word, count in sorted(Counter(tokens(query)).items()):
            if word in held:
                row, tf = held[word]
                idf = math.log(1.0 + (len(texts) - len(row) + 0.5) / (len(row) + 0.5))
                score[row] += (count * idf) * (tf / (tf + 1.2 * (1 - 0.75 + 0.75 * length[row] / average)))
        key = score.astype(np.float32)
        best = np.lexsort((np.arange(len(texts)), -key))
        best = best[(key[best] > 0) & live[best]][:k]
        found.doc[i, : len(best)], found.score[i, : len(best)] = best, key[best]
    return found
