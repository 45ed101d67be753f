"""What fusing ranked lists takes: drawn lists, the same fusion by data frames and SQL, and the stage in a fresh process.

`python -m lib.retrieval.fusion_measure CONFIG WORKERS` fuses the run folder of a configuration by the stage and prints its JSON.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib import contracts, engine, processes
from lib.contracts import DEPTH
from lib.retrieval import hits
from lib.retrieval.hits import Hits

SCALE = 2**40  # of the peers' whole-number scores; a sum of rounded parts misses the exact order where it is nearer than that


def draw(queries: int, routes: list[str], documents: int, pool: int, seed: list[int]) -> dict[str, Hits]:
    """Lists of DEPTH places: each query's routes order `pool` documents of its own at random, so that two share DEPTH²/pool of them."""
    rng = np.random.default_rng(seed)
    pools = rng.integers(0, documents, (queries, pool), dtype=np.int32)
    orders = np.argsort(rng.random((1024, pool)), axis=1)[:, :DEPTH]
    score = np.broadcast_to(np.linspace(1, 0.5, DEPTH, dtype=np.float32), (queries, DEPTH))
    return {name: Hits(np.take_along_axis(pools, orders[rng.integers(0, len(orders), queries)], 1), score) for name in routes}


def write(run: Path, queries: int, part: int, routes: list[str], documents: int, pool: int, seed: int) -> None:
    """Fill `queries/` and the `hits/` of the routes, `part` queries a file; the same lists whatever the folder held before."""
    lines = {name: [] for name in ("queries", *(f"hits/{name}" for name in routes))}
    for at in range(0, queries, part):
        count, file = min(part, queries - at), f"part-{at // part:05}.parquet"
        given = {"qid": [f"q{at + i}" for i in range(count)], "text": ["?"] * count, "source_docid": [None] * count, "source_doc": [None] * count, "keep": [True] * count}
        lines["queries"].append(contracts.write("queries", contracts.table("queries", given), run / "queries" / file))
        for name, found in draw(count, routes, documents, pool, [seed, at]).items():
            lines[f"hits/{name}"].append(contracts.write("hits", hits.table(found), run / "hits" / name / file))
    for folder, told in lines.items():
        contracts.finish(run / folder, told)


def listed(routes: Mapping[str, Hits]) -> dict[str, pa.Table]:
    """The lists as a peer takes them: query int32, and its documents in a fixed-size list."""
    return {name: pa.table({"query": np.arange(len(found.doc), dtype=np.int32), "doc": contracts.as_places(found.doc)}) for name, found in routes.items()}


def by_duckdb(tables: dict[str, pa.Table], weights: Mapping[str, int], k: int, depth: int) -> Callable:
    """One SQL query; one thread."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register(name, table)
    each = " UNION ALL ".join(f"SELECT query, unnest(doc) AS doc, unnest(range(1, {DEPTH + 1})) AS rank, {weights[name]} AS weight FROM {name}" for name in tables)
    query = f"""
        WITH scores AS (
            SELECT query, doc, sum(weight * {SCALE} // ({k} + rank)) AS score, min(rank) AS best
            FROM ({each}) WHERE doc >= 0 GROUP BY query, doc)
        SELECT query, doc FROM scores
        QUALIFY row_number() OVER (PARTITION BY query ORDER BY score DESC, best, doc) <= {depth}
        ORDER BY query, score DESC, best, doc"""
    return lambda: connection.sql(query).to_arrow_table()


def by_polars(tables: dict[str, pa.Table], weights: Mapping[str, int], k: int, depth: int) -> Callable:
    """A lazy frame; one thread where POLARS_MAX_THREADS is 1 before polars is imported."""
    import polars
    from polars import col

    frames = {name: polars.from_arrow(table).lazy() for name, table in tables.items()}
    rank = polars.int_range(polars.len()) % DEPTH + 1
    each = [frame.explode("doc").with_columns(rank=rank, weight=polars.lit(weights[name], polars.Int64)) for name, frame in frames.items()]
    scores = polars.concat(each).filter(col("doc") >= 0).with_columns(score=col("weight") * SCALE // (k + col("rank")))
    scores = scores.group_by("query", "doc").agg(col("score").sum(), best=col("rank").min())
    ordered = scores.sort("query", "score", "best", "doc", descending=[False, True, False, False])
    return ordered.group_by("query", maintain_order=True).head(depth).select("query", "doc").collect


def by_pandas(tables: dict[str, pa.Table], weights: Mapping[str, int], k: int, depth: int) -> Callable:
    """Group, sort, head."""
    import pandas

    columns = {name: (table["query"].to_numpy(), contracts.places(table["doc"])) for name, table in tables.items()}

    def fused():
        each = [pandas.DataFrame({
            "query": np.repeat(query, DEPTH), "doc": doc.ravel(), "best": np.tile(np.arange(1, DEPTH + 1), len(doc)),
            "score": np.tile(weights[name] * SCALE // (k + np.arange(1, DEPTH + 1)), len(doc)),
        }) for name, (query, doc) in columns.items()]
        together = pandas.concat(each)
        scores = together[together["doc"] >= 0].groupby(["query", "doc"], sort=False).agg({"score": "sum", "best": "min"}).reset_index()
        return scores.sort_values(["query", "score", "best", "doc"], ascending=[True, False, True, True]).groupby("query", sort=False).head(depth)

    return fused


def by_fractions(routes: Mapping[str, Hits], weights: Mapping[str, int], k: int, depth: int) -> np.ndarray:
    """int32[queries, depth]: the definition, in dictionaries and fractions."""
    fused = np.full((len(next(iter(routes.values())).doc), depth), -1, np.int32)
    for query, order in enumerate(fused):
        ranks: dict[int, dict[str, int]] = {}
        for name, found in routes.items():
            for rank, doc in enumerate(found.doc[query].tolist(), 1):
                if doc >= 0:
                    ranks.setdefault(doc, {}).setdefault(name, rank)
        score = {doc: sum(Fraction(weights[name], k + rank) for name, rank in of.items()) for doc, of in ranks.items()}
        best = sorted(ranks, key=lambda doc: (-score[doc], min(ranks[doc].values()), doc))[:depth]
        order[: len(best)] = best
    return fused


PEERS = {"duckdb": by_duckdb, "polars": by_polars, "pandas": by_pandas}


def places(found, queries: int, depth: int) -> np.ndarray:
    """int32[queries, depth] of a peer's rows, which stand by query and best first; -1 after the last."""
    query, doc = (np.asarray(found[column]) for column in ("query", "doc"))
    filled = np.full((queries, depth), -1, np.int32)
    filled[query, np.arange(len(query)) - np.searchsorted(query, query)] = doc
    return filled


def race(ways: Mapping[str, Callable], rounds: int, clock: Callable[[], float] = time.process_time) -> dict[str, tuple]:
    """(result, least processor seconds) of each way: once to warm up, then `rounds` times in turn, so that a busy spell hits all."""
    found = {name: (call(), float("inf")) for name, call in ways.items()}
    for name in [name for _ in range(rounds) for name in ways]:
        begun = clock()
        ways[name]()
        found[name] = (found[name][0], min(found[name][1], clock() - begun))
    return found


class Measured(NamedTuple):
    """The stage in a fresh process: its wall and processor seconds, those of the fusion itself, the process's peak, and what it wrote."""

    seconds: float
    cpu_seconds: float
    fusing: float  # processor seconds
    mib: float
    queries: int
    repeats: dict[str, int]


def child(run: Path, weights: Mapping[str, int], k: int, workers: int = 1) -> Measured:
    """Fuse the run in a fresh process; RuntimeError with the last line that it printed where it fails."""
    config = json.dumps({"run": str(run), "weights": dict(weights), "k": k})
    return Measured(**json.loads(processes.answer("the fusion", "lib.retrieval.fusion_measure", config, str(workers))))


def measured(config: dict, workers: int) -> Measured:
    """Fuse in this process, after a first small fusion, so that nothing is compiled on the clock."""
    from lib.retrieval import fusion, routes

    warm = draw(2, list(config["weights"]), 1000, 200, [0])
    fusion.rank_in(warm["dense"].doc, fusion.weighted_rrf(warm, config["weights"], config["k"]).doc)
    begun, cpu = time.perf_counter(), time.process_time()
    lines = engine.map(routes.fused, config, workers)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
    repeats = {name: sum(line["repeats"][name] for line in lines) for name in config["weights"]}
    return Measured(seconds, cpu_seconds, sum(line["timing"]["fusing"] for line in lines), processes.memory(), sum(line["rows"] for line in lines), repeats)


if __name__ == "__main__":
    print(json.dumps(measured(json.loads(sys.argv[1]), int(sys.argv[2]))._asdict()))
