"""The lists that the routes leave of a part of queries."""

from pathlib import Path

import numpy as np

from lib import contracts
from lib.retrieval import hits
from lib.retrieval.hits import Hits


def folders(routes) -> tuple[str, ...]:
    """The folders of the named routes: what a stage that reads them names as its inputs."""
    return tuple(f"hits/{name}" for name in routes)


def lists(run: str | Path, shard: str, routes) -> dict[str, Hits]:
    """The lists of the named routes for one part of queries, as they are stored: an imported one may repeat a document."""
    return {name: hits.from_table(contracts.read_part("hits", Path(run) / "hits" / name / f"{shard}.parquet")) for name in routes}


def ranked(run: str | Path, shard: str, routes) -> dict[str, Hits]:
    """The same without their scores, which are float32[queries, 0]: what a fusion reads."""
    found = {name: contracts.read_part("hits", Path(run) / "hits" / name / f"{shard}.parquet", ["doc"])["doc"] for name in routes}
    return {name: Hits(doc := contracts.places(column), np.empty((len(doc), 0), np.float32)) for name, column in found.items()}


def top(run: str | Path, shard: str, route: str, places: int) -> np.ndarray:
    """int32[queries, places]: the first places of a route's lists, -1 where a document stands again; their other columns are not read."""
    doc = np.ascontiguousarray(ranked(run, shard, [route])[route].doc[:, :places])
    return hits.first_places(Hits(doc, np.zeros(doc.shape, np.float32))).doc


def distinct_lists(run: str | Path, shard: str, routes) -> dict[str, Hits]:
    """The same with a repeated document at its best rank only."""
    return {name: hits.first_places(found) for name, found in lists(run, shard, routes).items()}
