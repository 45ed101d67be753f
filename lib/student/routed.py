"""The pairs that routing sends to the relevance model, with the tokens that it reads of each.

A stage by query part for each set of intents, v1 and v2. Nothing is tokenised: lengths come from `tokens/`.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from lib import contracts, corpus, engine, keys
from lib.engine import Stage
from lib.packed import pairs
from lib.student import tokens, units
from lib.student.scored import SETS


def distinct(query: np.ndarray, doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs by query, then document; ValueError for one that stands twice."""
    found = keys.of_pairs(query, doc)
    if len(twice := keys.repeated(found)):
        query, doc = divmod(int(twice[0]), 1 << 32)
        raise ValueError(f"query {query} and document {doc} go to the relevance model twice ({len(twice)} such pairs); route again")
    order = np.argsort(found)
    return query[order], doc[order]


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


def _stage(name: str) -> Stage:
    inputs = ("queries", f"intents/{name}", "tokens/queries", "tokens/documents")
    return Stage(
        f"lib.student.routed:{name}", "student_pairs", f"student_pairs/{name}", inputs, ("pair_tokens", "unit_tokens", "tokenizer"),
        partial(corpus.shards, "queries"), partial(_run, name),
    )


v1, v2 = map(_stage, SETS)
STAGES = {"v1": v1, "v2": v2}
