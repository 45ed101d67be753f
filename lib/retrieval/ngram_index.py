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
from lib.retrieval.ngram import Found, Queries
from lib.retrieval.postings import Groups, Statistics

FOLDER = "index/ngram"
SCHEMA = index_files.schema({"unit": pa.int32(), "start": pa.int64(), "doc": pa.int32()})


class Held(NamedTuple):
    """The postings of one document part: n-gram unit[i] stands in the documents doc[start[i]:start[i + 1]], rows of the part."""

    unit: np.ndarray  # int32, ascending
    start: np.ndarray  # int64[units + 1]
    doc: np.ndarray  # int32


def held(found: Found) -> Held:
    """What was found in a part, by n-gram; what it takes hangs on the part, not on how many n-grams the queries have."""
    both = found.unit.astype(np.int64) << 32 | found.doc
    both.sort()
    unit, start = np.unique((both >> 32).astype(np.int32), return_index=True)
    return Held(unit, np.append(start, len(both)), both.astype(np.int32))


def kept(whole: Held, removed: np.ndarray) -> Held:
    """What stands in a document that is not removed."""
    stays = ~removed[whole.doc]
    size = np.diff(np.concatenate([np.zeros(1, np.int64), np.cumsum(stays)])[whole.start])
    return Held(whole.unit[size > 0], np.concatenate([np.zeros(1, np.int64), np.cumsum(size[size > 0])]), whole.doc[stays])


def asked(queries: Groups, units: np.ndarray, idf: np.ndarray, part: Held) -> tuple[Groups, np.ndarray]:
    """The n-grams of each query that stand in the part, as places there, and the weight of each place that is asked for.

    `queries.member` counts the queries' `units`, which ascend and whose idf stands beside them.
    """
    place = np.searchsorted(part.unit, units)
    there = np.append(part.unit, np.int32(-1))[place] == units
    weight = np.zeros(len(part.unit), np.int64)
    weight[place[there]] = idf[there]
    stands = there[queries.member]
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(stands)])[queries.start]
    return Groups(start, place[queries.member[stands]].astype(np.int32)), weight


@lru_cache(maxsize=2)
def _read_once(run: str, manifest: str) -> Queries:
    """A process reads the queries once for all its shards; `manifest` tells one table of queries from the next."""
    return ngram.read_queries(index_files.texts(corpus.all_queries(run, ["text", "keep"])))


def _queries(run: str) -> Queries:
    return _read_once(run, str(contracts.parts(Path(run) / "queries")))


def _index(shard: str, config: dict) -> dict:
    run = config["run"]
    documents, folder = corpus.documents(run, shard, ["text", "removed"]), Path(run) / FOLDER
    found = ngram.find(documents["text"], _queries(run))
    whole = held(found)
    arrays = index_files.write(kept(whole, documents["removed"].to_numpy()), SCHEMA, folder / f"{shard}.postings")
    counted = Statistics(len(found.length), int(found.length.sum()), np.diff(whole.start))
    return index_files.count(whole.unit, counted, folder / f"{shard}.parquet", arrays)


def _search(shard: str, config: dict) -> dict:
    run, folder, queries = config["run"], Path(config["run"]) / FOLDER, _queries(config["run"])
    lines, (_, row, rows) = contracts.parts(folder), corpus.part_of("queries", config, shard)
    start = queries.units.start[row : row + rows + 1]
    units, member = np.unique(queries.units.member[start[0] : start[-1]], return_inverse=True)
    here, total = Groups(start - start[0], member), index_files.total(folder, queries.size, str(lines))
    idf = ngram.idfs(total._replace(df=total.df[units]))
    best = hits.heap(rows, DEPTH)
    for line, (part, first, documents) in zip(lines, corpus.parts(run, "documents"), strict=True):
        found = Held(*index_files.read(folder / f"{part}.postings", line["arrays"]))
        some, weight = asked(here, units, idf, found)
        postings.add(best, Groups(found.start, found.doc), weight, some, ngram.UNIT, np.zeros(documents, bool), first)
    return contracts.write("hits", hits.table(hits.ranked(best)), Path(run) / "hits/ngram" / f"{shard}.parquet")


_HERE, _READ = "lib.retrieval.ngram_index", ("documents", "queries")
index = Stage(f"{_HERE}:index", "counts", FOLDER, _READ, (), partial(corpus.shards, "documents"), _index)
search = Stage(f"{_HERE}:search", "hits", "hits/ngram", (*_READ, FOLDER), (), partial(corpus.shards, "queries"), _search)
