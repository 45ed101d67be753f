"""The labelling run: the relevance model's score of every pair that routing sends to it, behind the gate.

A stage by unit (a slice of a query part, about `unit_tokens` tokens) for each set of intents, v1 and v2. A worker
opens the gate before its first unit; a unit is written whole, with its pairs, tokens, seconds, share of peak and the gate's hash.
Source: spec, "The labeling run".
"""

import time
from functools import partial
from pathlib import Path

import numpy as np

from lib import contracts, engine
from lib.engine import Stage
from lib.packed import flops
from lib.student import opening, tokens, units
from lib.student.scored import SETS

OPTIONS = ("arm", "step", "checkpoint", "row_tokens", "gate_pairs", "unit_tokens", "pair_tokens", "seed")


def loads(config: dict, name: str) -> dict[str, int]:
    """The tokens of every unit of a set, in order; needs the finished `student_pairs/<name>`."""
    found = {}
    for line in contracts.parts(Path(config["run"]) / "student_pairs" / name):
        found |= zip(units.names(Path(line["part"]).stem, len(line["units"])), line["units"], strict=True)
    return found


def _run(name: str, shard: str, config: dict) -> dict:
    part, unit = units.split(shard)
    pairs = contracts.read_part("student_pairs", Path(config["run"]) / "student_pairs" / name / f"{part}.parquet")
    lengths = pairs["tokens"].to_numpy()
    first, last = units.bounds(lengths, config["unit_tokens"])[unit : unit + 2]
    query, doc, lengths = pairs["query"].to_numpy()[first:last], pairs["doc"].to_numpy()[first:last], lengths[first:last].astype(np.int64)
    told = {"pairs": len(query), "tokens": int(lengths.sum()), "gate": None, "timing": {"seconds": 0.0, "flop": 0.0, "share_of_peak": None}}
    scores, gate = np.empty(0, np.float32), ""
    if len(query):  # a set without pairs needs no model
        opened = opening.open_gate(config, engine.key(STAGES[name], config))
        scores, gate = _score(opened, config["run"], query, doc, lengths, config["row_tokens"], told), opened.sha256
    columns = {"query": query, "doc": doc, "score": scores}
    constant = {"checkpoint": f"{config['arm']}/{config['step']}", "gate": gate}
    table = contracts.table("scores", columns | {column: [value] * len(query) for column, value in constant.items()})
    return contracts.write("scores", table, engine.part(config, STAGES[name], shard)) | told


def _score(opened: opening.Opened, run: str, query: np.ndarray, doc: np.ndarray, lengths: np.ndarray, row_tokens: int, told: dict) -> np.ndarray:
    """float32[n], all finite; fills in what the manifest tells."""
    from lib.student import score

    student = opened.student
    given, _ = tokens.join(tokens.load(run), query, doc, student.template, student.pair_tokens)
    if not np.array_equal(given.lengths, lengths):
        raise ValueError("the pairs have other lengths than student_pairs states; label again, so that it is made anew")
    began = time.perf_counter()
    scores = score.score(student, given, row_tokens)
    seconds = time.perf_counter() - began
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise ValueError(f"the score of query {query[bad[0]]} and document {doc[bad[0]]} is {scores[bad[0]]} ({len(bad)} such pairs in the unit); "
                         "a score that is not finite has no label, so nothing is written")
    told["gate"] = opened.sha256
    told["timing"] = {"seconds": round(seconds, 3)} | _work(student.record["config"], lengths, seconds, str(student.scorer.device))
    return scores


def _work(config: dict, lengths: np.ndarray, seconds: float, device: str) -> dict:
    """Floating-point operations and their share of the device's peak; None where a model's products cannot be counted."""
    try:
        flop = float(flops.flop(config, lengths).sum())
    except (ValueError, KeyError):
        return {"flop": None, "share_of_peak": None}
    return {"flop": flop, "share_of_peak": round(flop / seconds / flops.peak(device), 4)}


def _stage(name: str) -> Stage:
    inputs = (f"student_pairs/{name}", "tokens/queries", "tokens/documents")
    return Stage(f"lib.student.scores:{name}", "scores", f"scores/{name}", inputs, OPTIONS, lambda config: list(loads(config, name)), partial(_run, name))


v1, v2 = map(_stage, SETS)
STAGES = {"v1": v1, "v2": v2}
