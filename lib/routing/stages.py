"""The routing stages, one part of queries at a time."""

from functools import partial
from pathlib import Path

import numpy as np

from lib import contracts, corpus
from lib.engine import Stage, part
from lib.retrieval.parts import distinct_lists, folders, part_of, shards
from lib.routing.coverage import check_coverage
from lib.routing.probe import probe_queries, route_probe
from lib.routing.v1 import route_source_pages, route_v1


def _queries(config: dict, shard: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers, source pages (-1 for none) and the keep mask of one part."""
    found = part_of("queries", config, shard)
    table = corpus.queries(config["run"], shard, ["source_doc", "keep"])
    rows = np.arange(found.first, found.first + found.rows, dtype=np.int32)
    return rows, table["source_doc"].fill_null(-1).to_numpy(), table["keep"].to_numpy()


def _long(config: dict) -> np.ndarray:
    """bool[documents]: more tokens than the threshold."""
    return corpus.all_documents(config["run"], ["n_tokens"])["n_tokens"].to_numpy() > config["long_tokens"]


def _source_pages(shard: str, config: dict) -> dict:
    rows, source, _ = _queries(config, shard)
    return contracts.write("intents", route_source_pages(rows, source, config["short_chars"]), part(config, source_pages, shard))


def _probe(shard: str, config: dict) -> dict:
    rows, source, _ = _queries(config, shard)
    keep = corpus.all_queries(config["run"], ["keep"])["keep"].to_numpy()
    here = np.isin(rows, probe_queries(keep, config["probe_queries"], config["seed"]))
    routes = {name: found.doc[here] for name, found in distinct_lists(config["run"], shard, config["routes"]).items()}
    routed = route_probe(rows[here], routes, _long(config), source[here], short_chars=config["short_chars"], long_chars=config["long_chars"])
    return contracts.write("intents", routed, part(config, probe, shard)) | {"probed": rows[here].tolist()}


def _rerank_scores(config: dict, shard: str, query: np.ndarray, dense: np.ndarray) -> np.ndarray:
    """float64[n, 20]: the reranker's score of each pair, NaN where it has none."""
    table = contracts.read_part("rerank", Path(config["run"]) / "rerank" / f"{shard}.parquet")
    known = (table["query"].to_numpy().astype(np.int64) << 32) | table["doc"].to_numpy()
    order = np.argsort(known)
    wanted = (query[:, None].astype(np.int64) << 32) | np.maximum(dense, 0)
    place = np.minimum(np.searchsorted(known[order], wanted), max(len(known) - 1, 0))
    scores = np.full(dense.shape, np.nan)
    if len(known):
        hit = (known[order][place] == wanted) & (dense >= 0)
        scores[hit] = table["score"].to_numpy()[order][place[hit]]
    return scores


def _v1(shard: str, config: dict) -> dict:
    rows, source, keep = _queries(config, shard)
    dense = np.where(keep[:, None], distinct_lists(config["run"], shard, ["dense"])["dense"].doc[:, : contracts.CUT], -1)
    long = _long(config)[np.maximum(dense, 0)]
    routed = route_v1(
        rows, dense, long, _rerank_scores(config, shard, rows, dense), source,
        **{name: config[name] for name in ("picks", "pick_rounds", "student_on_long", "seed", "short_chars", "long_chars")},
    )
    check_coverage(rows, dense, routed)
    return contracts.write("intents", routed, part(config, v1, shard))


_by_query = partial(shards, "queries")
source_pages = Stage("lib.routing.stages:source_pages", "intents", "intents/source_page", ("queries",), ("short_chars",), _by_query, _source_pages)
probe = Stage(
    "lib.routing.stages:probe", "intents", "intents/probe", lambda config: ("documents", "queries", *folders(config["routes"])),
    ("routes", "probe_queries", "long_tokens", "short_chars", "long_chars", "seed"), _by_query, _probe,
)
v1 = Stage(
    "lib.routing.stages:v1", "intents", "intents/v1", ("documents", "queries", "hits/dense", "rerank"),
    ("long_tokens", "picks", "pick_rounds", "student_on_long", "short_chars", "long_chars", "seed"), _by_query, _v1,
)
