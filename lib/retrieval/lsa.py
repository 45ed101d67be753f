"""Latent semantic analysis: the dense vectors of the sample (Deerwester et al. 1990), by scikit-learn.

It stands behind the interface of every encoder: a stage that fills `vectors/` by document part and one
that fills `query_vectors/` by query part, with normalised rows. The model is fitted on all documents, in memory: where
they, or its factors, would take more than is free, it is refused before it tries.
"""

from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from lib import contracts, corpus
from lib.engine import Stage
from lib.retrieval import dense, vectors
from lib.text import tokens

TEXT_TIMES = 4  # bytes that the texts and their counts take for each byte of text
FAINT = 1e-6  # a text that keeps less than this of its length 1 counts as one without words


def free() -> int:
    """Bytes of memory that a process may still take; what Linux does not tell counts as enough."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 2**63
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), 2**63)


def _fit(needed: int, documents: int) -> None:
    """ValueError where so many bytes are not free."""
    if needed > (left := free()):
        raise ValueError(
            f"the latent semantic analysis of {documents:,} documents takes some {needed / 2**30:,.1f} GiB of memory and {left / 2**30:,.1f} GiB are free; "
            "give 02-retrieve fewer `dimensions` or another `encoder` (minilm, or a model's folder), which reads document by document"
        )


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
                _fit(3 * 8 * (dimensions + 10) * sum(weights.shape), len(documents))  # three factors of float64, ten columns to spare
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
    files = [pq.read_metadata(Path(run) / "documents" / line["part"]) for line in contracts.parts(Path(run) / "documents")]
    groups = [file.row_group(i) for file in files for i in range(file.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    text = sum(column.total_uncompressed_size for column in columns if column.path_in_schema == "text")
    _fit(TEXT_TIMES * text, sum(file.num_rows for file in files))
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
