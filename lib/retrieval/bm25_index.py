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

from lib import contracts, corpus, files, paths, trace
from lib.contracts import DEPTH
from lib.engine import Stage
from lib.retrieval import bm25, hits
from lib.retrieval.blocks import Blocks
from lib.retrieval.postings import Statistics
from lib.retrieval.tokenizer import Vocabulary

FOLDER = "index/bm25"
_KINDS = {
    "row": pa.int32(), "length": pa.int64(), "first": pa.int64(), "base": pa.int64(), "word": pa.int32(), "start": pa.int64(),
    "doc": pa.uint16(), "tf": pa.uint8(), "many_at": pa.int64(), "many_tf": pa.int32(),
}
SCHEMA = pa.schema([pa.field(name, pa.large_list(pa.field("item", kind, nullable=False)), nullable=False) for name, kind in _KINDS.items()])


def write(part: Blocks, path: Path) -> int:
    """Write the blocks of a document part whole; how many bytes."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), pa.array(values, kind), type=pa.large_list(pa.field("item", kind, nullable=False)))
        for values, kind in zip(part, _KINDS.values(), strict=True)
    ]
    with files.whole(path) as temporary:
        with pa.ipc.new_file(str(temporary), SCHEMA) as file:
            file.write_batch(pa.record_batch(columns, schema=SCHEMA))
        return temporary.stat().st_size


def read(path: Path, size: int) -> Blocks:
    """The blocks of a document part, memory-mapped; ContractError where the file is not the `size` bytes that were written."""
    trace.record("read", path)
    try:
        found = path.stat().st_size
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0) if found == size else None
    except (OSError, pa.ArrowInvalid):
        batch = None
    if batch is None or batch.schema != SCHEMA:
        raise contracts.ContractError(f"{paths.shown(path)} is not the index of {size:,} bytes that was written; remove {path.stem}.json beside it and run again")
    return Blocks(*(column.flatten().to_numpy() for column in batch.columns))


def _texts(table: pa.Table) -> list[str]:
    """The texts of queries; '' finds nothing: a query that does not go on."""
    return [text if keep else "" for text, keep in zip(table["text"].to_pylist(), table["keep"].to_pylist(), strict=True)]


@lru_cache(maxsize=2)
def _read_once(run: str, manifest: str) -> Vocabulary:
    """A process reads the queries once for all its shards; `manifest` tells one table of queries from the next."""
    return bm25.vocabulary(_texts(corpus.all_queries(run, ["text", "keep"])))


def _vocabulary(run: str) -> Vocabulary:
    return _read_once(run, str(contracts.parts(Path(run) / "queries")))


def _index(shard: str, config: dict) -> dict:
    run = config["run"]
    documents, known = corpus.documents(run, shard, ["text", "removed"]), _vocabulary(run)
    part, counted = bm25.index(documents["text"], known, documents["removed"].to_numpy())
    size = write(part, Path(run) / FOLDER / f"{shard}.blocks")
    unit = np.flatnonzero(counted.df).astype(np.int32)
    table = contracts.table("counts", {"unit": unit, "df": counted.df[unit].astype(np.int64)})
    line = contracts.write("counts", table, Path(run) / FOLDER / f"{shard}.parquet")
    return line | {"documents": counted.documents, "words": counted.words, "bytes": size}


@lru_cache(maxsize=2)
def _total(run: str, words: int, manifest: str) -> Statistics:
    """The counts of all document parts, summed once a process."""
    lines, df = contracts.parts(Path(run) / FOLDER), np.zeros(words, np.int64)
    for line in lines:
        counts = contracts.read_part("counts", Path(run) / FOLDER / line["part"])
        df[counts["unit"].to_numpy()] += counts["df"].to_numpy()
    return Statistics(sum(line["documents"] for line in lines), sum(line["words"] for line in lines), df)


def _search(shard: str, config: dict) -> dict:
    run, known = config["run"], _vocabulary(config["run"])
    lines = contracts.parts(Path(run) / FOLDER)
    asked = bm25.ask(_texts(corpus.queries(run, shard, ["text", "keep"])), known, _total(run, known.size, str(lines)))
    best = hits.heap(len(asked.units.start) - 1, DEPTH)
    for line, (part, first, _) in zip(lines, corpus.parts(run, "documents"), strict=True):
        blocks = read(Path(run) / FOLDER / f"{part}.blocks", line["bytes"])
        bm25.search(best, bm25.ready(blocks, _total(run, known.size, str(lines)), asked), asked, first)
    return contracts.write("hits", hits.table(hits.ranked(best)), Path(run) / "hits/bm25" / f"{shard}.parquet")


_HERE, _READ = "lib.retrieval.bm25_index", ("documents", "queries")
index = Stage(f"{_HERE}:index", "counts", FOLDER, _READ, (), partial(corpus.shards, "documents"), _index)
search = Stage(f"{_HERE}:search", "hits", "hits/bm25", (*_READ, FOLDER), (), partial(corpus.shards, "queries"), _search)
