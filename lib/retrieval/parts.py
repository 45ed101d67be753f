"""The parts that the retrieval stages go by: documents or queries, and the lists of a part of queries."""

from pathlib import Path

from lib import contracts, corpus
from lib.corpus import Part
from lib.retrieval import hits
from lib.retrieval.hits import Hits


def shards(table: str, config: dict) -> list[str]:
    """The part names of `documents` or `queries`."""
    return [part.shard for part in corpus.parts(config["run"], table)]


def part_of(table: str, config: dict, shard: str) -> Part:
    """Where a part stands among the rows of `documents` or `queries`."""
    return next(part for part in corpus.parts(config["run"], table) if part.shard == shard)


def folders(routes) -> tuple[str, ...]:
    """The folders of the named routes: what a stage that reads them names as its inputs."""
    return tuple(f"hits/{name}" for name in routes)


def lists(run: str | Path, shard: str, routes) -> dict[str, Hits]:
    """The lists of the named routes for one part of queries, as they are stored: an imported one may repeat a document."""
    return {name: hits.from_table(contracts.read_part("hits", Path(run) / "hits" / name / f"{shard}.parquet")) for name in routes}


def distinct_lists(run: str | Path, shard: str, routes) -> dict[str, Hits]:
    """The same with a repeated document at its best rank only."""
    return {name: hits.first_places(found) for name, found in lists(run, shard, routes).items()}
