"""The stages of the routes: index and search the lexical ones, search dense, fuse; and all of them in one call.

The routes of a run are those that `weights` names; one that was imported (`lib.corpus import run`) is not searched.

BM25 and 5-grams index by document part, and like dense and fusion they search by query part. No list
depends on where the parts are cut. Queries that are not kept are not searched: their rows stay, with empty lists.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np

from lib import contracts, corpus, engine, paths
from lib.contracts import CUT, DEPTH
from lib.corpus import imported
from lib.engine import Stage
from lib.retrieval import bm25_index, dense as dense_search, encode, fusion, hits, ngram_index
from lib.retrieval.parts import folders, ranked


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
    best, backend = hits.heap(len(keep), DEPTH), config.get("dense_backend", "fp32")
    for part in corpus.parts(run, "documents") if len(keep) else []:
        live = np.flatnonzero(~corpus.documents(run, part.shard, ["removed"])["removed"].to_numpy())
        if len(live):
            vectors = _vectors(run, "vectors", part.shard, part.rows)[live]
            known = dense_search.documents(vectors, (part.first + live).astype(np.int32), "live document vectors", zero=False, backend=backend)
            dense_search.add(best, query, known)
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


_by_query = partial(corpus.shards, "queries")
dense = Stage(
    "lib.retrieval.routes:dense", "hits", "hits/dense", ("documents", "queries", "vectors", "query_vectors"), (), _by_query, _dense,
)
fused = Stage(
    "lib.retrieval.routes:fused", "fused", "fused", lambda config: ("queries", *folders(config["weights"])), ("weights", "k"), _by_query, _fused,
)
SEARCHES = {
    "dense": (dense,),  # what its vectors are made by is for `encode`
    "bm25": (bm25_index.index, bm25_index.search),
    "ngram": (ngram_index.index, ngram_index.search),
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
