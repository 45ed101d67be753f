"""What training leaves of an arm, and how it is found: `<run>/student/<arm>/step-00000100/`.

A checkpoint holds `model/` (a transformers folder of the backbone, and `head.safetensors`), `heldout.parquet` (the held-out
pairs as this checkpoint scores them: the gate's reference), `record.json` (what it was made of) and, in the last one,
`state/` (what training resumes from). It is written under another name and renamed, so one that is there is whole;
`files.json` holds the hash of all but the state, by which damage is told.
Beside them lie `log.csv` (loss by step), `arm.json` (the arm's settings and the key of its inputs) and `timing.csv`, and in
`student/` itself `arms.json` (the arms that were trained last).
"""

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa

from lib import contracts, files, paths

_NAME = re.compile(r"step-(\d{8})")
FILES = "files.json"
LOG = ("step", "loss", "gradient norm", "learning rate", "pairs", "tokens")


def arm_folder(run: str | Path, arm: str) -> Path:
    """Where an arm's checkpoints lie."""
    return Path(run) / "student" / arm


def folder(run: str | Path, arm: str, step: int) -> Path:
    """Where the checkpoint of a step lies, whether it is there or not."""
    return arm_folder(run, arm) / f"step-{step:08d}"


def arms(run: str | Path) -> list[str]:
    """The arms that have a checkpoint, by name: those of the last training, or all there are where no notebook has trained.

    An arm of a former training stays where it is, but is neither compared nor found: it learned from other labels.
    """
    there = sorted(path.name for path in (Path(run) / "student").glob("[!.]*") if path.is_dir() and steps(run, path.name))
    listed = Path(run) / "student" / "arms.json"
    return [name for name in there if name in _json(listed, "run 07-train again")["arms"]] if listed.exists() else there


def remember(run: str | Path, names: list[str]) -> None:
    """Write down which arms the last training was of."""
    files.write_json(Path(run) / "student" / "arms.json", {"arms": sorted(names)})


def steps(run: str | Path, arm: str) -> list[int]:
    """The steps that have a checkpoint, ascending."""
    found = [_NAME.fullmatch(path.name) for path in arm_folder(run, arm).glob("step-*")]
    return sorted(int(match[1]) for match in found if match)


def find(run: str | Path, arm: str, step: int = 0) -> Path:
    """The folder of a checkpoint; step 0 is the last one. ValueError names the steps that there are."""
    known = arms(run)
    there = steps(run, arm) if arm in known else []
    if not there:
        way_out = f"it has {', '.join(known)}" if known else "train it first"
        raise ValueError(f"{paths.shown(run)} has no checkpoint of the arm {arm!r}; {way_out}")
    if step and step not in there:
        raise ValueError(f"the arm {arm!r} of {paths.shown(run)} has no checkpoint at step {step}; it has {', '.join(map(str, there))}, "
                         "and 0 is the last")
    return folder(run, arm, step or there[-1])


def record(checkpoint: str | Path) -> dict:
    """What a checkpoint was made of, as `record.json` holds it."""
    return _json(Path(checkpoint) / "record.json", "label with another checkpoint, or train the arm again")


def _json(path: Path, way_out: str) -> dict:
    try:
        return json.loads(files.read_bytes(path))
    except ValueError as error:
        raise ValueError(f"{paths.shown(path)} is no JSON ({error}); {way_out}") from error


def heldout(checkpoint: str | Path) -> pa.Table:
    """The held-out pairs with label and prediction (contract predictions), by query, then document."""
    return contracts.read_part("predictions", Path(checkpoint) / "heldout.parquet")


def weights_sha256(checkpoint: str | Path) -> str:
    """One hash of the files that scores depend on: those of `model/` and the head."""
    checkpoint = Path(checkpoint)
    found = sorted([*(checkpoint / "model").iterdir(), checkpoint / "head.safetensors"])
    hashes = {path.relative_to(checkpoint).as_posix(): files.sha256(path) for path in found}
    return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()


def hashes(checkpoint: str | Path) -> dict[str, str]:
    """What a checkpoint is known by: the hash of each of its files but the state, and of the arm's log up to its step."""
    checkpoint = Path(checkpoint)
    names = {path: path.relative_to(checkpoint).as_posix() for path in sorted(checkpoint.rglob("*")) if path.is_file()}
    found = {name: files.sha256(path) for path, name in names.items() if name != FILES and not name.startswith("state/")}
    lines = (checkpoint.parent / "log.csv").read_bytes().splitlines(keepends=True)
    return found | {"../log.csv": hashlib.sha256(b"".join(lines[: int(checkpoint.name[-8:]) + 1])).hexdigest()}


def check_whole(run: str | Path, arm: str, wanted: Iterable[int]) -> None:
    """ValueError where, of the steps `wanted` up to the last one there, a checkpoint is missing or is not what training wrote."""
    there = steps(run, arm)
    for step in wanted:
        if there and step <= there[-1] and (fault := _fault(folder(run, arm, step))):
            raise ValueError(f"{fault}; put it back, or remove {paths.shown(arm_folder(run, arm))} and train the arm again from its start")


def _fault(checkpoint: Path) -> str | None:
    try:
        known, found = json.loads((checkpoint / FILES).read_text()), hashes(checkpoint)
        wrong = [name for name in sorted(known.keys() | found.keys()) if known.get(name) != found.get(name)]
    except FileNotFoundError as error:
        return f"{paths.shown(error.filename)} is missing"
    except (ValueError, AttributeError):
        wrong = [FILES]
    return f"{paths.shown(os.path.normpath(checkpoint / wrong[0]))} is not what training wrote" if wrong else None


def log(run: str | Path, arm: str) -> pd.DataFrame:
    """Loss (mean squared error of the step's pairs before its update), gradient norm before clipping and the rest, by step."""
    rows = csv.DictReader(io.StringIO(files.read_bytes(arm_folder(run, arm) / "log.csv").decode()))
    return pd.DataFrame([{name: float(value) if name in LOG[1:4] else int(value) for name, value in row.items()} for row in rows], columns=LOG)


def outputs(run: str | Path, arm: str) -> list[Path]:
    """The files of an arm that later steps of a run read; states and timings are not among them."""
    found = [arm_folder(run, arm) / name for name in ("arm.json", "log.csv")]
    for step in steps(run, arm):
        inside = sorted(folder(run, arm, step).rglob("*"))
        found += [path for path in inside if path.is_file() and "state" not in path.relative_to(arm_folder(run, arm)).parts]
    return found


def training_table(run: str | Path, names: list[str] | None = None) -> pd.DataFrame:
    """One row an arm: how large it is, what it was trained on, and the loss at its end (mean over the last tenth of the steps)."""
    rows = []
    for arm in names or arms(run):
        known, losses = record(find(run, arm)), log(run, arm)["loss"]
        training = known["training"]
        rows.append({
            "arm": arm, "parameters": known["parameters"],
            **{name: training[name] for name in ("training pairs", "held-out pairs", "training queries", "held-out queries")},
            "steps": known["step"], "cut documents": training["cut documents"], "cut queries": training["cut queries"],
            "final loss": losses.tail(max(len(losses) // 10, 1)).mean(),
        })
    return pd.DataFrame(rows)
