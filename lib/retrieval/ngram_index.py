"""The stages of the 5-gram route: index each document part once, then search all parts for each query part.

An index holds the postings of the n-grams that some query holds, without the removed documents, which its counts count.
The search of a query part walks all document parts with its heaps carried.
"""

from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib import contracts, corpus
from lib.contracts import DEPTH
from lib.engine import Stage
from lib.retrieval import hits, index_files, ngram, postings
from lib.retrieval.ngram import Queries
from lib.retrieval.postings import Groups, Postings

FOLDER = "index/ngram"
SCHEMA = index_files.schema({"unit": pa.int32(), "start": pa.int64(), "doc": pa.int32()})


class Held(NamedTuple):
    """The postings of one document part: n-gram unit[i] stands in the documents doc[start[i]:start[i + 1]], rows of the part."""

    unit: np.ndarray  # int32, ascending
    start: np.ndarray  # int64[units + 1]
    doc: np.ndarray  # int32


def held(part: Postings, removed: np.ndarray) -> Held:
    """What stands in a document that is not removed."""
    kept = ~removed[part.units.member]
    unit, size = np.unique(np.repeat(np.arange(len(part.units.start) - 1, dtype=np.int32), np.diff(part.units.start))[kept], return_counts=True)
    return Held(unit, np.concatenate([np.zeros(1, np.int64), np.cumsum(size)]), part.units.member[kept])


def asked(queries: Groups, part: Held) -> Groups:
    """The n-grams of each query that stand in the part, as places there."""
    place = np.searchsorted(part.unit, queries.member)
    there = np.append(part.unit, np.int32(-1))[place] == queries.member
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(there)])[queries.start]
    return Groups(start, place[there].astype(np.int32))


@lru_cache(maxsize=2)
def _read_once(run: str, manifest: str) -> Queries:
    """A process reads the queries once for all its shards; `manifest` tells one table of queries from the next."""
    return ngram.read_queries(index_files.texts(corpus.all_queries(run, ["text", "keep"])))


def _queries(run: str) -> Queries:
    return _read_once(run, str(contracts.parts(Path(run) / "queries")))


def _index(shard: str, config: dict) -> dict:
    run = config["run"]
    documents, folder = corpus.documents(run, shard, ["text", "removed"]), Path(run) / FOLDER
    part = ngram.index(documents["text"], _queries(run))
    arrays = index_files.write(held(part, documents["removed"].to_numpy()), SCHEMA, folder / f"{shard}.postings")
    return index_files.count(postings.statistics(part), folder / f"{shard}.parquet", arrays)


def _search(shard: str, config: dict) -> dict:
    run, folder, queries = config["run"], Path(config["run"]) / FOLDER, _queries(config["run"])
    lines, (_, row, rows) = contracts.parts(folder), corpus.part_of("queries", config, shard)
    start = queries.units.start[row : row + rows + 1]
    here = Groups(start - start[0], queries.units.member[start[0] : start[-1]])
    idf = ngram.idfs(index_files.total(folder, queries.size, str(lines)))
    best = hits.heap(rows, DEPTH)
    for line, (part, first, documents) in zip(lines, corpus.parts(run, "documents"), strict=True):
        found = Held(*index_files.read(folder / f"{part}.postings", line["arrays"]))
        postings.add(best, Groups(found.start, found.doc), idf[found.unit], asked(here, found), ngram.UNIT, np.zeros(documents, bool), first)
    return contracts.write("hits", hits.table(hits.ranked(best)), Path(run) / "hits/ngram" / f"{shard}.parquet")


_HERE, _READ = "lib.retrieval.ngram_index", ("documents", "queries")
index = Stage(f"{_HERE}:index", "counts", FOLDER, _READ, (), partial(corpus.shards, "documents"), _index)
search = Stage(f"{_HERE}:search", "hits", "hits/ngram", (*_READ, FOLDER), (), partial(corpus.shards, "queries"), _search)
