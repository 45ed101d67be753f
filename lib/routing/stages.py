"""The routing stages, one part of queries at a time.

Those after `v1` read answers: the folder `answers/<set>` that a judging notebook leaves.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from lib import contracts, corpus, keys
from lib.draw import unit_hash
from lib.engine import Stage, part
from lib.retrieval.parts import distinct_lists, folders, top
from lib.routing.agreement import route_arbiter, route_second, training_candidates
from lib.routing.coverage import check_coverage
from lib.routing.gaps import Asked, asked, route_gaps
from lib.routing.intents import RoutingError
from lib.routing.probe import probe_queries, route_probe
from lib.routing.v1 import route_source_pages, route_v1
from lib.routing.v2 import route_v2, trial_queries

JUDGED_BY = {"source_page": "06-judge", "v1": "06-judge", "second": "11-agreement"}  # the notebook that asks for a set


def _queries(config: dict, shard: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers, source pages (-1 for none) and the keep mask of one part."""
    found = corpus.part_of("queries", config, shard)
    table = corpus.queries(config["run"], shard, ["source_doc", "keep"])
    rows = np.arange(found.first, found.first + found.rows, dtype=np.int32)
    return rows, table["source_doc"].fill_null(-1).to_numpy(), table["keep"].to_numpy()


@lru_cache(maxsize=4)
def _column(run: str, table: str, name: str, contents: str) -> np.ndarray:
    """A column of all documents or queries, read once a process; `contents` tells one import from the next."""
    return contracts.read(table, Path(run) / table, [name])[name].to_numpy()


def _all(config: dict, table: str, name: str) -> np.ndarray:
    return _column(config["run"], table, name, contracts.contents(Path(config["run"]) / table))


def _long(config: dict) -> np.ndarray:
    """bool[documents]: more tokens than the threshold."""
    return _all(config, "documents", "n_tokens") > config["long_tokens"]


def _drawn(config: dict, draw: Callable, rows: np.ndarray, n: int, seed: int) -> np.ndarray:
    """bool: which of the rows are among the `n` kept queries of the run that are drawn, once a process."""
    return np.isin(rows, _draw(config["run"], draw, n, seed, contracts.contents(Path(config["run"]) / "queries")))


@lru_cache(maxsize=2)
def _draw(run: str, draw: Callable, n: int, seed: int, contents: str) -> np.ndarray:
    return draw(_column(run, "queries", "keep", contents), n, seed)


def _source_pages(shard: str, config: dict) -> dict:
    rows, source, _ = _queries(config, shard)
    return contracts.write("intents", route_source_pages(rows, source, config["short_chars"]), part(config, source_pages, shard))


def _probe(shard: str, config: dict) -> dict:
    rows, source, _ = _queries(config, shard)
    here = _drawn(config, probe_queries, rows, config["probe_queries"], config["seed"])
    routes = {name: found.doc[here] for name, found in distinct_lists(config["run"], shard, config["routes"]).items()}
    routed = route_probe(rows[here], routes, _long(config), source[here], short_chars=config["short_chars"], long_chars=config["long_chars"])
    return contracts.write("intents", routed, part(config, probe, shard)) | {"probed": rows[here].tolist()}


def _rerank_scores(config: dict, shard: str, query: np.ndarray, dense: np.ndarray) -> np.ndarray:
    """float64[n, 20]: the reranker's score of each pair, NaN where it has none."""
    table = contracts.read_part("rerank", Path(config["run"]) / "rerank" / f"{shard}.parquet")
    known = keys.of(table)
    order = np.argsort(known)
    known, wanted, scores = known[order], keys.of_pairs(query[:, None], np.maximum(dense, 0)), np.full(dense.shape, np.nan)
    if len(known):
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        there = (known[place] == wanted) & (dense >= 0)
        scores[there] = table["score"].to_numpy()[order[place[there]]]
    return scores


def _top(config: dict, shard: str, keep: np.ndarray) -> np.ndarray:
    """int32[n, 20]: the dense top 20; a query that is not kept has no candidates, an imported run may list some."""
    return np.where(keep[:, None], top(config["run"], shard, "dense", contracts.CUT), -1)


def _v1(shard: str, config: dict) -> dict:
    rows, source, keep = _queries(config, shard)
    dense = _top(config, shard, keep)
    long = _long(config)[np.maximum(dense, 0)]
    routed = route_v1(
        rows, dense, long, _rerank_scores(config, shard, rows, dense), source,
        **{name: config[name] for name in ("picks", "pick_rounds", "student_on_long", "seed", "short_chars", "long_chars")},
    )
    check_coverage(rows, dense, routed)
    return contracts.write("intents", routed, part(config, v1, shard))


def _fused(config: dict, shard: str, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The fused top 20 of one part, and the rank of each document in the dense list, 0 outside."""
    table = contracts.read_part("fused", Path(config["run"]) / "fused" / f"{shard}.parquet", ["doc", "dense_rank"])
    return np.where(keep[:, None], contracts.places(table["doc"]), -1), contracts.places(table["dense_rank"])


def _told(config: dict, intents_set: str, shard: str) -> pa.Table:
    return contracts.read_part("answers", Path(config["run"]) / "answers" / intents_set / f"{shard}.parquet")


def _asked(config: dict, intents_set: str, shard: str) -> Asked:
    sent = contracts.read_part("intents", Path(config["run"]) / "intents" / intents_set / f"{shard}.parquet")
    return asked(sent, _told(config, intents_set, shard))


def _v2_gap(shard: str, config: dict) -> dict:
    rows, _, keep = _queries(config, shard)
    v1_asked, pages = (_asked(config, name, shard) for name in ("v1", "source_page"))
    routed = route_gaps(v1_asked, pages, rows, _top(config, shard, keep), _fused(config, shard, keep)[0])
    return contracts.write("intents", routed, part(config, v2_gap, shard))


def _v2(shard: str, config: dict) -> dict:
    rows, source, keep = _queries(config, shard)
    fused, dense_rank = _fused(config, shard, keep)
    trial = _drawn(config, trial_queries, rows, config["trial_queries"], config["seed"] + 2)
    routed = route_v2(
        rows, fused, _top(config, shard, keep), dense_rank, _long(config)[np.maximum(fused, 0)], source, trial, long_chars=config["long_chars"]
    )
    return contracts.write("intents", routed, part(config, v2, shard)) | {"trial_queries": int(trial.sum())}


@lru_cache(maxsize=2)
def _sample(run: str, n: int, seed: int, contents: str) -> tuple[np.ndarray, dict[str, int]]:
    """The drawn training candidates of a run as ascending places in all answers to v1, and where each part begins; once a process."""
    starts, at, places, draws = {}, 0, [np.zeros(0, np.int64)], [np.zeros(0)]
    for line in contracts.parts(Path(run) / "answers" / "v1"):
        told = contracts.read_part("answers", Path(run) / "answers" / "v1" / line["part"], ["query", "doc", "stage", "answer"])
        wanted = np.flatnonzero(training_candidates(told))
        starts[Path(line["part"]).stem] = at
        places.append(at + wanted)
        draws.append(unit_hash(seed, *(told[name].to_numpy()[wanted] for name in ("query", "doc"))))
        at += told.num_rows
    order = np.argsort(np.concatenate(draws), kind="stable")
    return np.sort(np.concatenate(places)[order[: n or None]]), starts


def _second(shard: str, config: dict) -> dict:
    if config["second_pairs"] < 0:
        raise RoutingError(f"second_pairs is {config['second_pairs']}; it is at least 0, and 0 sends all training candidates")
    v1_asked = _asked(config, "v1", shard)
    drawn, starts = _sample(config["run"], config["second_pairs"], config["seed"] + 3, contracts.contents(Path(config["run"]) / "answers/v1"))
    chosen = np.zeros(v1_asked.told.num_rows, bool)
    first, end = np.searchsorted(drawn, [starts[shard], starts[shard] + len(chosen)])
    chosen[drawn[first:end] - starts[shard]] = True
    return contracts.write("intents", route_second(v1_asked, chosen), part(config, second, shard))


def _arbiter(shard: str, config: dict) -> dict:
    routed = route_arbiter(_asked(config, "v1", shard), _told(config, "second", shard))
    return contracts.write("intents", routed, part(config, arbiter, shard))


def _judged(*sets: str, beside: tuple[str, ...] = ()) -> Callable[[dict], tuple[str, ...]]:
    """The inputs of a stage that reads the answers to some sets; RoutingError names the notebook where one is missing."""

    def inputs(config: dict) -> tuple[str, ...]:
        for name in sets:
            try:
                contracts.parts(Path(config["run"]) / "answers" / name)
            except contracts.ContractError as error:
                raise RoutingError(f"the answers to {name} are missing: {error}, which is {JUDGED_BY[name]}") from error
        return (*beside, *(f"{kind}/{name}" for name in sets for kind in ("intents", "answers")))

    return inputs


_by_query = partial(corpus.shards, "queries")
source_pages = Stage("lib.routing.stages:source_pages", "intents", "intents/source_page", ("queries",), ("short_chars",), _by_query, _source_pages)
probe = Stage(
    "lib.routing.stages:probe", "intents", "intents/probe", lambda config: ("documents", "queries", *folders(config["routes"])),
    ("routes", "probe_queries", "long_tokens", "short_chars", "long_chars", "seed"), _by_query, _probe,
)
v1 = Stage(
    "lib.routing.stages:v1", "intents", "intents/v1", ("documents", "queries", "hits/dense", "rerank"),
    ("long_tokens", "picks", "pick_rounds", "student_on_long", "short_chars", "long_chars", "seed"), _by_query, _v1,
)
v2_gap = Stage(
    "lib.routing.stages:v2_gap", "intents", "intents/v2_gap", _judged("v1", "source_page", beside=("queries", "hits/dense", "fused")), (),
    _by_query, _v2_gap,
)
v2 = Stage(
    "lib.routing.stages:v2", "intents", "intents/v2", ("documents", "queries", "hits/dense", "fused"),
    ("long_tokens", "long_chars", "trial_queries", "seed"), _by_query, _v2,
)
second = Stage(
    "lib.routing.stages:second", "intents", "intents/second", _judged("v1", beside=("queries",)), ("second_pairs", "seed"), _by_query, _second,
)
arbiter = Stage(
    "lib.routing.stages:arbiter", "intents", "intents/arbiter", _judged("v1", "second", beside=("queries",)), (), _by_query, _arbiter,
)
