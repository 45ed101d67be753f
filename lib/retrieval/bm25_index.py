"""The stages of the BM25 route: index each document part once, then search all parts for each query part.

`index/bm25/part-00000.parquet` counts the documents that hold each word (contract `counts`); beside it
`part-00000.blocks` holds the part's blocks, an Arrow file of one row that is memory-mapped. Both hang on the
documents and the words of the queries only, not on the statistics of the other parts. The search of a query part
walks all document parts with its heaps carried: it holds one part and the best 100 of each query.
"""

from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from lib import contracts, corpus
from lib.contracts import DEPTH
from lib.engine import Stage
from lib.retrieval import bm25, hits, index_files
from lib.retrieval.blocks import Blocks
from lib.retrieval.tokenizer import Vocabulary

FOLDER = "index/bm25"
_KINDS = {
    "row": pa.int32(), "length": pa.int64(), "first": pa.int64(), "base": pa.int64(), "word": pa.int32(), "start": pa.int64(),
    "doc": pa.uint16(), "tf": pa.uint8(), "many_at": pa.int64(), "many_tf": pa.int32(),
}
SCHEMA = index_files.schema(_KINDS)


def write(part: Blocks, path: Path) -> str:
    """Write the blocks of a document part whole; the hash of the file."""
    return index_files.write(part, SCHEMA, path)


def read(path: Path, sha256: str) -> Blocks:
    """The blocks of a document part, memory-mapped; ContractError where the file is not the one that was written."""
    return Blocks(*index_files.read(path, sha256))


@lru_cache(maxsize=2)
def _read_once(run: str, manifest: str) -> Vocabulary:
    """A process reads the queries once for all its shards; `manifest` tells one table of queries from the next."""
    return bm25.vocabulary(index_files.texts(corpus.all_queries(run, ["text", "keep"])))


def _vocabulary(run: str) -> Vocabulary:
    return _read_once(run, str(contracts.parts(Path(run) / "queries")))


def _index(shard: str, config: dict) -> dict:
    run = config["run"]
    documents, known = corpus.documents(run, shard, ["text", "removed"]), _vocabulary(run)
    part, counted = bm25.index(documents["text"], known, documents["removed"].to_numpy())
    arrays = write(part, Path(run) / FOLDER / f"{shard}.blocks")
    unit = np.flatnonzero(counted.df)
    return index_files.count(unit, counted._replace(df=counted.df[unit]), Path(run) / FOLDER / f"{shard}.parquet", arrays)


def _search(shard: str, config: dict) -> dict:
    run, known = config["run"], _vocabulary(config["run"])
    lines = contracts.parts(Path(run) / FOLDER)
    total = index_files.total(Path(run) / FOLDER, known.size, str(lines))
    asked = bm25.ask(index_files.texts(corpus.queries(run, shard, ["text", "keep"])), known, total)
    best = hits.heap(len(asked.units.start) - 1, DEPTH)
    for line, (part, first, _) in zip(lines, corpus.parts(run, "documents"), strict=True):
        blocks = read(Path(run) / FOLDER / f"{part}.blocks", line["arrays"])
        bm25.search(best, bm25.ready(blocks, total, asked), asked, first)
    return contracts.write("hits", hits.table(hits.ranked(best)), Path(run) / "hits/bm25" / f"{shard}.parquet")


_HERE, _READ = "lib.retrieval.bm25_index", ("documents", "queries")
index = Stage(f"{_HERE}:index", "counts", FOLDER, _READ, (), partial(corpus.shards, "documents"), _index)
search = Stage(f"{_HERE}:search", "hits", "hits/bm25", (*_READ, FOLDER), (), partial(corpus.shards, "queries"), _search)
