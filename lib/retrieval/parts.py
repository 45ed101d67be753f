"""The parts that the retrieval stages go by: documents or queries."""

from lib import corpus
from lib.corpus import Part


def shards(table: str, config: dict) -> list[str]:
    """The part names of `documents` or `queries`."""
    return [part.shard for part in corpus.parts(config["run"], table)]


def part_of(table: str, config: dict, shard: str) -> Part:
    """Where a part stands among the rows of `documents` or `queries`."""
    return next(part for part in corpus.parts(config["run"], table) if part.shard == shard)
