"""Label a set of pairs by a checkpoint of the relevance model, from a notebook or a script.

A cluster prepares once and runs the units as a job array instead; the notebook run afterwards finds them done:
    label.prepare("runs/paper", "v1")                                                writes scores/v1/config.json
    python -m lib.engine lib.student.scores:v1 runs/paper/scores/v1/config.json --shard 3/100
"""

from pathlib import Path

import pandas as pd

from lib import engine, files, processes, sources
from lib.student import checkpoints, opening, routed, scores, tokens
from lib.student.workers import run as run_workers


def prepare(run: str | Path, name: str, arm: str = "larger", step: int = 0, *, row_tokens: int = 65_536, gate_pairs: int = 256,
            unit_tokens: int = 8_000_000, seed: int = 0) -> dict:
    """Bring `student_pairs/<name>` up to date and give the configuration of the scores' stage, kept in `scores/<name>/config.json`.

    name: the set, v1 or v2. step: of the checkpoint, 0 is the arm's last. row_tokens: of a packed row. gate_pairs: held-out
    pairs that the gate compares, drawn with `seed`. How a pair is cut follows from the checkpoint's record.
    """
    if name not in routed.STAGES:
        raise ValueError(f"there is no set {name!r} to label; take one of {', '.join(routed.STAGES)}")
    checkpoint = checkpoints.find(run, arm, step)
    record = checkpoints.record(checkpoint)
    if row_tokens < record["pair_tokens"]:
        raise ValueError(f"row_tokens is {row_tokens} and a pair of the arm {arm} has up to {record['pair_tokens']} tokens; take rows at least as long")
    config = {
        "run": str(run), "set": name, "arm": arm, "step": record["step"], "checkpoint": files.sha256(checkpoint / "record.json"),
        "row_tokens": row_tokens, "gate_pairs": gate_pairs, "unit_tokens": unit_tokens, "pair_tokens": record["pair_tokens"],
        "tokenizer": tokens.tokenizer_sha256(run), "seed": seed,
    }
    engine.map(routed.STAGES[name], config)
    files.write_json(Path(run) / "scores" / name / "config.json", config)
    return config


def label(run: str | Path, name: str, arm: str = "larger", step: int = 0, *, workers: int = 1, **options) -> list[dict]:
    """Bring `scores/<name>` up to date, and give the manifest lines of its units in order; `options` are those of `prepare`.

    `workers` children, one a device, each open the gate and score their share of the units that are not done. Where all are,
    none is started. `lib.student.workers.LabellingStopped` says in one sentence why one ended early; run again to go on.
    """
    sources.stand_on("lib.student.worker")
    with processes.lock(Path(run)):
        config = prepare(run, name, arm, step, **options)
        stage = scores.STAGES[name]
        key, loads = engine.key(stage, config), scores.loads(config, name)
        left = {unit: load for unit, load in loads.items() if engine.done(engine.part(config, stage, unit), key) is None}
        if left:
            run_workers(stage.name, config, key, left, workers)
        lines = engine.map(stage, config)
        opening.keep_records(run, name, {line["gate"] for line in lines if line["gate"]})
        return lines


def timing(lines: list[dict]) -> pd.DataFrame:
    """One row a unit from what `label` gives, and one for all: pairs, tokens, seconds of scoring, and the share of the device's peak.

    A share is missing where nothing was scored or the model's operations cannot be counted.
    """
    rows = [{"unit": Path(line["part"]).stem, "pairs": line["pairs"], "tokens": line["tokens"]} | line["timing"] for line in lines]
    found = pd.DataFrame(rows).astype({"flop": float, "share_of_peak": float})
    weighted = (found["share_of_peak"] * found["seconds"]).sum() / found["seconds"].sum() if found["share_of_peak"].notna().any() else None
    found.loc[len(found)] = {"unit": "all"} | {name: found[name].sum() for name in ("pairs", "tokens", "seconds", "flop")} | {"share_of_peak": weighted}
    busy = found["seconds"].where(found["seconds"] > 0)
    found.insert(4, "pairs a second", found["pairs"] / busy)
    found.insert(5, "tokens a second", found["tokens"] / busy)
    return found.rename(columns={"share_of_peak": "share of peak"})
