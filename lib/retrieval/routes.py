"""The stages of the routes: count, search and merge the lexical ones, search dense, fuse; and all of them in one call.

The routes of a run are those that `weights` names; one that was imported (`lib.corpus import run`) is not searched.

The 5-gram route goes by document part (count, then search with the counts of all parts) and is merged
by query part; BM25 indexes by document part, and like dense and fusion it searches by query part. No list
depends on where the parts are cut. Queries that are not kept are not searched: their rows stay, with empty lists.
"""

import time
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lib import contracts, corpus, engine, paths, trace
from lib.contracts import CUT, DEPTH
from lib.corpus import imported
from lib.engine import Stage
from lib.retrieval import bm25_index, dense as dense_search, encode, fusion, hits, ngram
from lib.retrieval.parts import folders, ranked
from lib.retrieval.postings import Statistics, statistics


@lru_cache(maxsize=2)
def _read_once(route: ModuleType, run: str, manifest: str):
    """A process reads the queries once for all its document shards; `manifest` tells one table of queries from the next."""
    table = corpus.all_queries(run, ["text", "keep"])
    # '' finds nothing: a query that does not go on
    return route.read_queries([text if keep else "" for text, keep in zip(table["text"].to_pylist(), table["keep"].to_pylist(), strict=True)])


def _queries(route: ModuleType, run: str):
    return _read_once(route, run, str(contracts.parts(Path(run) / "queries")))


def _count(route: ModuleType, out: str, shard: str, config: dict) -> dict:
    texts = corpus.documents(config["run"], shard, ["text"])["text"].to_pylist()
    counted = statistics(route.index(texts, _queries(route, config["run"])))
    unit = np.flatnonzero(counted.df).astype(np.int32)
    table = contracts.table("counts", {"unit": unit, "df": counted.df[unit].astype(np.int64)})
    line = contracts.write("counts", table, Path(config["run"]) / out / f"{shard}.parquet")
    return line | {"documents": counted.documents, "words": counted.words}


@lru_cache(maxsize=2)
def _total(run: str, folder: str, units: int, manifest: str) -> Statistics:
    """The counts of all document parts, summed once a process."""
    lines, df = contracts.parts(Path(run) / folder), np.zeros(units, np.int64)
    for line in lines:
        counts = contracts.read_part("counts", Path(run) / folder / line["part"])
        df[counts["unit"].to_numpy()] += counts["df"].to_numpy()
    return Statistics(sum(line["documents"] for line in lines), sum(line["words"] for line in lines), df)


def _search(route: ModuleType, counts: str, out: str, shard: str, config: dict) -> dict:
    run = config["run"]
    documents = corpus.documents(run, shard, ["text", "removed"])
    queries = _queries(route, run)
    part = route.index(documents["text"].to_pylist(), queries)
    known = _total(run, counts, queries.size, str(contracts.parts(Path(run) / counts)))
    found = route.search(part, known, queries, DEPTH, documents["removed"].to_numpy(), corpus.part_of("documents", config, shard).first)
    query, place = np.nonzero(found.doc >= 0)
    rows = {"query": query.astype(np.int32), "doc": found.doc[query, place], "score": found.score[query, place]}
    return contracts.write("partial_hits", contracts.table("partial_hits", rows), Path(run) / out / f"{shard}.parquet")


def _of_queries(path: Path, first: int, rows: int) -> pa.Table:
    """The rows of a part of partial hits that belong to some queries; other row groups are not read."""
    trace.record("read", path)
    file = pq.ParquetFile(path, memory_map=True)
    ranges = [file.metadata.row_group(group).column(0).statistics for group in range(file.num_row_groups)]
    wanted = [g for g, found in enumerate(ranges) if found is None or (found.max >= first and found.min < first + rows)]
    table = contracts.check("partial_hits", file.read_row_groups(wanted, use_threads=False))
    start, end = np.searchsorted(table["query"].to_numpy(), [first, first + rows])
    return table.slice(start, end - start)


def _merge(partials: str, out: str, shard: str, config: dict) -> dict:
    run, (_, first, rows) = Path(config["run"]), corpus.part_of("queries", config, shard)
    best = hits.none(rows, DEPTH)
    for line in contracts.parts(run / partials):
        table = _of_queries(run / partials / line["part"], first, rows)
        query = table["query"].to_numpy() - first
        place = np.arange(len(query)) - np.searchsorted(query, query)
        found = hits.none(rows, DEPTH)
        found.doc[query, place], found.score[query, place] = table["doc"].to_numpy(), table["score"].to_numpy()
        best = hits.merge(best, found, DEPTH)
    return contracts.write("hits", hits.table(best), run / out / f"{shard}.parquet")


def _vectors(run: Path, folder: str, shard: str, rows: int) -> np.ndarray:
    """float32[rows, d] of one part; ContractError where the rows differ in length or number."""
    path = run / folder / f"{shard}.parquet"
    column = contracts.read_part("vectors", path)["vector"].combine_chunks()
    lengths = np.diff(column.offsets.to_numpy())
    if len(column) != rows or (lengths != lengths[:1]).any():
        raise contracts.ContractError(f"{paths.shown(path)} is not {rows} vectors of one length; encode again")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(rows, lengths[0] if rows else 0)


def _dense(shard: str, config: dict) -> dict:
    run, (_, first, rows) = Path(config["run"]), corpus.part_of("queries", config, shard)
    keep = np.flatnonzero(corpus.queries(run, shard, ["keep"])["keep"].to_numpy())
    query = dense_search.checked(_vectors(run, "query_vectors", shard, rows)[keep], "query vectors", first + keep, zero=False)
    best = hits.heap(len(keep), DEPTH)
    for part in corpus.parts(run, "documents") if len(keep) else []:
        live = np.flatnonzero(~corpus.documents(run, part.shard, ["removed"])["removed"].to_numpy())
        if len(live):
            vectors = _vectors(run, "vectors", part.shard, part.rows)[live]
            known = dense_search.documents(vectors, (part.first + live).astype(np.int32), "live document vectors", zero=False)
            dense_search.add(best, query, known, backend=config.get("dense_backend", "fp32"))
    found = hits.none(rows, DEPTH)
    found.doc[keep], found.score[keep] = hits.ranked(best)
    return contracts.write("hits", hits.table(found), run / "hits/dense" / f"{shard}.parquet")


def _fused(shard: str, config: dict) -> dict:
    run = Path(config["run"])
    routes, started = ranked(run, shard, config["weights"]), time.process_time()
    fused = fusion.weighted_rrf(routes, config["weights"], config["k"], CUT)
    timing = {"fusing": round(time.process_time() - started, 6)}
    columns = {
        "doc": fused.doc, "score": fused.score, "best_rank": fused.best_rank.astype(np.int16),
        "dense_rank": fusion.rank_in(routes["dense"].doc, fused.doc),
    }
    table = contracts.table("fused", {name: contracts.as_places(values) for name, values in columns.items()})
    return contracts.write("fused", table, run / "fused" / f"{shard}.parquet") | {"repeats": fusion.repeats(routes), "timing": timing}


_by_document, _by_query = partial(corpus.shards, "documents"), partial(corpus.shards, "queries")


def _lexical(name: str, route: ModuleType) -> tuple[Stage, Stage, Stage]:
    counts, partials, merged = f"counts/{name}", f"partial/{name}", f"hits/{name}"
    here, read = f"lib.retrieval.routes:{name}", ("documents", "queries")
    return (
        Stage(f"{here}_count", "counts", counts, read, (), _by_document, partial(_count, route, counts)),
        Stage(f"{here}_search", "partial_hits", partials, (*read, counts), (), _by_document, partial(_search, route, counts, partials)),
        Stage(f"{here}_merge", "hits", merged, ("queries", partials), (), _by_query, partial(_merge, partials, merged)),
    )


ngram_count, ngram_search, ngram_merge = _lexical("ngram", ngram)
dense = Stage(
    "lib.retrieval.routes:dense", "hits", "hits/dense", ("documents", "queries", "vectors", "query_vectors"), (), _by_query, _dense,
)
fused = Stage(
    "lib.retrieval.routes:fused", "fused", "fused", lambda config: ("queries", *folders(config["weights"])), ("weights", "k"), _by_query, _fused,
)
SEARCHES = {
    "dense": (dense,),  # what its vectors are made by is for `encode`
    "bm25": (bm25_index.index, bm25_index.search),
    "ngram": (ngram_count, ngram_search, ngram_merge),
}


def search(config: dict, workers: int | str = 1) -> dict[str, int]:
    """Encode, search the routes and fuse them: bring every stage of a run up to date.

    Options: `encoder` and what it takes (`lib.retrieval.encode.write`), `weights` and `k` of the fusion;
    `dense_backend` (`lib.retrieval.dense.BACKENDS`), on which nothing depends but time. The dense route is always
    among the routes, since routing goes by its ranks. Gives the repeated places of each route, as fusion counted them.
    """
    if "dense" not in config["weights"]:
        raise ValueError(f"the weights name {', '.join(config['weights']) or 'no route'}; dense must be one of them, its ranks decide who judges (weight 0 keeps it out of the fusion)")
    for name in config["weights"]:
        if not imported.is_route(config["run"], name):
            if name not in SEARCHES:
                raise ValueError(f"there is no route {name!r}: {', '.join(SEARCHES)} are searched, others come by python -m lib.corpus import run FILE --route {name}")
            if name == "dense":
                encode.write(config, workers)
            for stage in SEARCHES[name]:
                engine.map(stage, config, workers)
    counted = [line["repeats"] for line in engine.map(fused, config, workers)]
    return {name: sum(line[name] for line in counted) for name in config["weights"]}
