"""Open the gate in a worker, before it scores anything: the checkpoint is the one meant, and scores as training did.

The record of an open gate (facts and report) is kept with the scores, in `scores/<set>/gates/`, and its hash stands in
every row. A worker whose facts differ from a record there is refused, so that one set never holds scores of two kinds.
Source: spec, "Self-test gate".
"""

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib import corpus, files, paths
from lib.packed import pairs
from lib.student import checkpoints, selftest, tokens


class Refused(ValueError):
    """The model, the tokens or this machine's libraries are not those that a record names."""


class Opened(NamedTuple):
    """A model behind an open gate: a `lib.student.score.Student`, the device's name, and the hash of the gate's record."""

    student: object
    device: str
    sha256: str


def open_gate(config: dict, key: str) -> Opened:
    """The model of a configuration (`lib.student.label.prepare`) once its gate is open; the work is done once a process.

    key: that of the scores' stage. Records of another key belong to scores that are made again.
    Refused or `gate.GateFailed` say in one sentence why not; then nothing is written.
    """
    return _open(json.dumps(config, sort_keys=True), key)


@functools.lru_cache(maxsize=1)
def _open(config: str, key: str) -> Opened:
    import torch

    from lib.student import score

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))  # as in training
    config = json.loads(config)
    run, checkpoint = Path(config["run"]), checkpoints.find(config["run"], config["arm"], config["step"])
    known = checkpoint_facts(run, checkpoint, config)
    student = score.load(checkpoint)
    scorer = student.scorer
    facts = known | machine_facts(scorer) | {"row_tokens": config["row_tokens"]}
    folder = records_folder(run, config["set"])
    compare(folder, facts, key)
    held = checkpoints.heldout(checkpoint)
    query, doc = held["query"].to_numpy(), held["doc"].to_numpy()
    drawn = selftest.draw(query, doc, config["gate_pairs"], config["seed"])
    given, _ = tokens.join(tokens.load(run), query[drawn], doc[drawn], student.template, student.pair_tokens)
    report = selftest.run(functools.partial(score.score_rows, scorer), given, held["prediction"].to_numpy()[drawn], config["row_tokens"])
    sha256 = _sha256(facts, report)
    device = torch.cuda.get_device_name(scorer.device) if scorer.device.type == "cuda" else "cpu"
    files.write_json(folder / f"{sha256[:16]}.json", {"key": key, "sha256": sha256, "device": device, "facts": facts, "report": report})
    compare(folder, facts, key)  # another worker may have opened its own meanwhile
    return Opened(student, device, sha256)


def records_folder(run: str | Path, name: str) -> Path:
    """Where the records of the gates behind `scores/<name>` lie."""
    return Path(run) / "scores" / name / "gates"


def records(run: str | Path, name: str) -> list[dict]:
    """The records of the gates behind `scores/<name>`, by hash: one, or one a worker where a device does not repeat itself.

    Refused where one is not as it was written.
    """
    found = {path: _read(path) for path in sorted(records_folder(run, name).glob("*.json"))}
    for path, record in found.items():
        if record["sha256"] != _sha256(record["facts"], record["report"]):
            raise _not_a_record(path)
    return list(found.values())


def keep_records(run: str | Path, name: str, gates: Iterable[str]) -> None:
    """Keep the records of the gates (hashes) that the finished `scores/<name>` name, and remove all others; Refused where one is not there.

    Not before: labelling that breaks off under another configuration leaves scores that count again under their own.
    """
    folder, wanted = records_folder(run, name), set(gates)
    missing = wanted - {record["sha256"] for record in records(run, name)}
    if missing:
        raise Refused(f"{paths.shown(folder)} lacks the record {min(missing)[:16]} of the gate behind its scores; put it back, "
                      f"or remove {paths.shown(folder.parent)} and label all again")
    for path in folder.glob("*.json"):
        if _read(path)["sha256"] not in wanted:
            path.unlink()


def _read(path: Path) -> dict:
    try:
        record = json.loads(files.read_bytes(path))
        if {"key", "sha256", "facts", "report"} <= record.keys():
            return record
    except (ValueError, AttributeError):
        pass
    raise _not_a_record(path)


def _not_a_record(path: Path) -> Refused:
    return Refused(f"{paths.shown(path)} is not the record of a gate as it was written; put it back, or remove {paths.shown(path.parents[1])} "
                   "and label all again")


def _sha256(facts: dict, report: dict) -> str:
    return hashlib.sha256(json.dumps({"facts": facts, "report": report}, sort_keys=True).encode()).hexdigest()


def table(run: str | Path, name: str) -> pd.DataFrame:
    """One row a record: what the gate compared, what it measured, the full row, and the control that has to fail."""
    rows = []
    for record in records(run, name):
        compared, full, control = (record["report"][part] for part in ("pairs", "full row", "control"))
        rows.append({
            "device": record["device"], "attention": record["facts"]["attention"], "dtype": record["facts"]["dtype"],
            "pairs": compared["n"], "rows": compared["rows"], "Pearson": compared["pearson"], "max difference": compared["max_difference"],
            "slope": compared["slope"], "labels changed": compared["changed"], "away from a cut": compared["changed_away"],
            "pairs in the full row": full["pairs"], "max difference there": full["max_difference"], "Pearson of the control": control["pearson"],
        })
    return pd.DataFrame(rows)


def checkpoint_facts(run: Path, checkpoint: Path, config: dict) -> dict:
    """What the scores depend on besides the machine, measured and equal to the checkpoint's record; Refused names what is not."""
    if (found := files.sha256(checkpoint / "record.json")) != config["checkpoint"]:
        raise Refused(f"{paths.shown(checkpoint)}: record.json has the hash {found[:12]}, the labelling was prepared for "
                      f"{config['checkpoint'][:12]}; prepare it again")
    record = checkpoints.record(checkpoint)
    facts = {
        "weights_sha256": checkpoints.weights_sha256(checkpoint),
        "tokenizer_sha256": tokens.tokenizer_sha256(run),
        "template": [list(part) for part in pairs.template(corpus.tokenizer(run))],
        "pair_tokens": config["pair_tokens"],
        "pair_chars": tokens.pair_chars(run),
    }
    for name, value in facts.items():
        if record[name] != value:
            raise Refused(f"{paths.shown(checkpoint)} was trained with {name} {record[name]} and finds {value}; "
                          "label with the run, tokenizer and weights that it was trained with, or train the arm again")
    return facts


def machine_facts(scorer) -> dict:
    """How a `lib.student.model.Scorer` computes here: dtype, attention, whether it packs, kind of device, libraries."""
    from lib.student import state

    return {
        "dtype": str(next(scorer.backbone.parameters()).dtype).removeprefix("torch."),
        "attention": scorer.attention, "packs": scorer.packs, "device": scorer.device.type,
    } | state.libraries(scorer.attention)


def compare(folder: Path, facts: dict, key: str) -> None:
    """Refused where a record of this key has other facts."""
    for record in map(_read, sorted(folder.glob("*.json"))):
        if record["key"] != key:
            continue
        for name in sorted(facts.keys() | record["facts"].keys()):
            before, now = record["facts"].get(name), facts.get(name)
            if before != now:
                raise Refused(f"the scores in {paths.shown(folder.parent)} were made with {name} {before}, this worker has {now}; "
                              "label with what they were made with, or remove that folder and label all again")
