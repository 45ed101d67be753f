"""What training leaves of an arm, and how it is found: `<run>/student/<arm>/step-00000100/`.

A checkpoint holds `model/` (a transformers folder of the backbone, and `head.safetensors`), `heldout.parquet` (the held-out
pairs as this checkpoint scores them: the gate's reference), `record.json` (what it was made of) and, in the last one,
`state/` (what training resumes from). It is written under another name and renamed, so one that is there is whole.
Beside them lie `log.csv` (loss by step), `arm.json` (the arm's settings and the key of its inputs) and `timing.csv`, and in
`student/` itself `arms.json` (the arms that were trained last).
"""

import csv
import hashlib
import io
import json
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa

from lib import contracts, files, paths

_NAME = re.compile(r"step-(\d{8})")
LOG = ("step", "loss", "gradient norm", "learning rate", "pairs", "tokens")


def arm_folder(run: str | Path, arm: str) -> Path:
    """Where an arm's checkpoints lie."""
    return Path(run) / "student" / arm


def folder(run: str | Path, arm: str, step: int) -> Path:
    """Where the checkpoint of a step lies, whether it is there or not."""
    return arm_folder(run, arm) / f"step-{step:08d}"


def arms(run: str | Path) -> list[str]:
    """The arms that have a checkpoint, by name: those of the last training, or all there are where no notebook has trained.

    An arm of a former training stays where it is, and labels where it is named, but is compared with none.
    """
    there = sorted(path.name for path in (Path(run) / "student").glob("[!.]*") if path.is_dir() and steps(run, path.name))
    listed = Path(run) / "student" / "arms.json"
    return [name for name in there if name in json.loads(files.read_bytes(listed))["arms"]] if listed.exists() else there


def remember(run: str | Path, names: list[str]) -> None:
    """Write down which arms the last training was of."""
    files.write_json(Path(run) / "student" / "arms.json", {"arms": sorted(names)})


def steps(run: str | Path, arm: str) -> list[int]:
    """The steps that have a checkpoint, ascending."""
    found = [_NAME.fullmatch(path.name) for path in arm_folder(run, arm).glob("step-*")]
    return sorted(int(match[1]) for match in found if match)


def find(run: str | Path, arm: str, step: int = 0) -> Path:
    """The folder of a checkpoint; step 0 is the last one. ValueError names the steps that there are."""
    there = steps(run, arm)
    if not there:
        known = arms(run)
        way_out = f"it has {', '.join(known)}" if known else "train it first"
        raise ValueError(f"{paths.shown(run)} has no checkpoint of the arm {arm!r}; {way_out}")
    if step and step not in there:
        raise ValueError(f"the arm {arm!r} of {paths.shown(run)} has no checkpoint at step {step}; it has {', '.join(map(str, there))}, "
                         "and 0 is the last")
    return folder(run, arm, step or there[-1])


def record(checkpoint: str | Path) -> dict:
    """What a checkpoint was made of, as `record.json` holds it."""
    return json.loads(files.read_bytes(Path(checkpoint) / "record.json"))


def heldout(checkpoint: str | Path) -> pa.Table:
    """The held-out pairs with label and prediction (contract predictions), by query, then document."""
    return contracts.read_part("predictions", Path(checkpoint) / "heldout.parquet")


def weights_sha256(checkpoint: str | Path) -> str:
    """One hash of the files that scores depend on: those of `model/` and the head."""
    checkpoint = Path(checkpoint)
    found = sorted([*(checkpoint / "model").iterdir(), checkpoint / "head.safetensors"])
    hashes = {path.relative_to(checkpoint).as_posix(): files.sha256(path) for path in found}
    return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()


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
