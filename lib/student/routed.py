"""The pairs that routing sends to the relevance model, with the tokens that it reads of each.

A stage by query part for each set of intents, v1 and v2. Nothing is tokenised: lengths come from `tokens/`.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from lib import contracts, corpus, engine
from lib.engine import Stage
from lib.packed import pairs
from lib.student import tokens, units

SETS = ("v1", "v2")


def distinct(query: np.ndarray, doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs by query, then document; ValueError for one that stands twice."""
    order = np.lexsort((doc, query))
    query, doc = query[order], doc[order]
    twice = np.flatnonzero((query[1:] == query[:-1]) & (doc[1:] == doc[:-1]))
    if len(twice):
        raise ValueError(f"query {query[twice[0]]} and document {doc[twice[0]]} go to the relevance model twice ({len(twice)} such pairs); route again")
    return query, doc


def _run(name: str, shard: str, config: dict) -> dict:
    run = Path(config["run"])
    intents = contracts.read_part("intents", run / "intents" / name / f"{shard}.parquet", ["query", "doc", "judge"])
    intents = intents.filter(pc.equal(intents["judge"], "student"))
    query, doc = distinct(intents["query"].to_numpy(), intents["doc"].to_numpy())
    template = pairs.template(corpus.tokenizer(run))
    lengths, cuts = tokens.pair_lengths(tokens.load(run), query, doc, template, config["pair_tokens"])
    table = contracts.table("student_pairs", {"query": query, "doc": doc, "tokens": lengths.astype(np.int32)})
    ends = units.bounds(lengths, config["unit_tokens"])
    of_units = [int(lengths[first:last].sum()) for first, last in zip(ends, ends[1:], strict=False)]
    line = contracts.write("student_pairs", table, engine.part(config, STAGES[name], shard))
    return line | {"tokens": int(lengths.sum()), "units": of_units, "cut queries": cuts.queries, "cut documents": cuts.documents}


def _shards(config: dict) -> list[str]:
    return [part.shard for part in corpus.parts(config["run"], "queries")]


def _stage(name: str) -> Stage:
    inputs = ("queries", f"intents/{name}", "tokens/queries", "tokens/documents")
    return Stage(
        f"lib.student.routed:{name}", "student_pairs", f"student_pairs/{name}", inputs, ("pair_tokens", "unit_tokens", "tokenizer"),
        _shards, partial(_run, name),
    )


v1, v2 = map(_stage, SETS)
STAGES = {"v1": v1, "v2": v2}
