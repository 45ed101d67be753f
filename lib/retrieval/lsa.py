"""Latent semantic analysis: the dense vectors of the sample (Deerwester et al. 1990), by scikit-learn.

It stands behind the interface of every encoder: a stage that fills `vectors/` by document part and one
that fills `query_vectors/` by query part, with normalised rows. The model is fitted on all documents, in memory.
"""

from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from lib import contracts, corpus
from lib.engine import Stage
from lib.retrieval import dense, vectors
from lib.text import tokens

FAINT = 1e-6  # a text that keeps less than this of its length 1 counts as one without words


class Lsa:
    """Fitted on documents, it turns texts into float32[n, d + 1] of length 1.

    The last dimension is for texts without a known word, or whose words all fall outside the kept
    dimensions: they are (0, ... 0, 1), alike among themselves and orthogonal to every other text.
    d is `dimensions`, or less where the documents have fewer words. One thread and a fixed seed: the
    same documents give the same bytes on the same machine.
    """

    def __init__(self, documents: list[str], dimensions: int, seed: int):
        # scikit-learn takes seconds to import: only who encodes waits for it
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd

        self._words = self._axes = None
        if any(tokens(document) for document in documents):
            self._words = TfidfVectorizer(analyzer=tokens, sublinear_tf=True)
            with threadpool_limits(1):
                weights = self._words.fit_transform(documents)
                _, _, axes = randomized_svd(weights, min(dimensions, *weights.shape), n_iter=5, random_state=seed)
            self._axes = axes.T

    def vectors(self, texts: list[str]) -> np.ndarray:
        kept = np.zeros((len(texts), 0))
        if self._words is not None:
            kept = self._words.transform(texts) @ self._axes if texts else np.zeros((0, self._axes.shape[1]))
        faint = np.sqrt((kept * kept).sum(axis=1)) < FAINT
        kept[faint] = 0
        return dense.normalise(np.column_stack([kept, faint]), range(len(texts)))


@lru_cache(maxsize=1)
def _fitted(run: str, manifest: str, dimensions: int, seed: int) -> Lsa:
    """One fit a process for all its shards; `manifest` tells one corpus in the folder from the next."""
    return Lsa(corpus.all_documents(run, ["text"])["text"].to_pylist(), dimensions, seed)


def _encode(table: str, out: str, shard: str, config: dict) -> dict:
    run = Path(config["run"])
    model = _fitted(str(run), str(contracts.parts(run / "documents")), config["dimensions"], config["seed"])
    read = corpus.documents if table == "documents" else corpus.queries
    found = model.vectors(read(run, shard, ["text"])["text"].to_pylist())
    return vectors.write(found, run / out / f"{shard}.parquet")


document_vectors = Stage(
    "lib.retrieval.lsa:document_vectors", "vectors", "vectors", ("documents",), ("dimensions", "seed"),
    partial(corpus.shards, "documents"), partial(_encode, "documents", "vectors"),
)
query_vectors = Stage(
    "lib.retrieval.lsa:query_vectors", "vectors", "query_vectors", ("documents", "queries"), ("dimensions", "seed"),
    partial(corpus.shards, "queries"), partial(_encode, "queries", "query_vectors"),
)
