"""Train the arms of a run, from a notebook or a script: the trainer runs under torchrun, as a child process.

An arm is a model of its own on the same pairs, in the same order: `{"larger": {"layers": 2, "hidden": 64, "heads": 4}}` is a
small Qwen3 from scratch, `{"8b": {"path": "models/Qwen3-Reranker-8B"}}` the causal backbone of a folder with a new head.
"""

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lib import contracts, files, paths, processes, sources, trace
from lib.packed import pairs
from lib.student import checkpoints, tokens

MODULE = "lib.student.train"
STARTED_BY = "QRELBOOK_TRAINER_OF"  # the pid of the process that started torchrun, whose children the trainers are
SIZES = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate")  # of a model from scratch; the first three are needed
CHOICES = {"schedule": ("cosine", "constant"), "recompute": ("auto", "on", "off")}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KILLED = re.compile(r"Signal \d+ \((\w+)\) received by PID")


class Options(NamedTuple):
    """How all arms are trained. Steps count from 1 in logs and folder names."""

    steps: int
    batch: int  # pairs a step, over all processes
    learning_rate: float  # at its highest
    warmup: int = 0  # steps
    checkpoint_every: int = 1000  # steps; the last step always has one
    row_tokens: int = 65536  # tokens of a packed row
    pair_tokens: int = pairs.PAIR_TOKENS
    processes: int = 1  # one a GPU
    seed: int = 0
    schedule: str = "cosine"  # to a tenth of the rate, or "constant"
    weight_decay: float = 0.01
    clip: float = 1.0  # of the gradient norm
    recompute: str = "auto"  # activations in the backward pass: "on", "off", or on where there is a GPU

    @property
    def checkpoints(self) -> list[int]:
        """The steps that leave a checkpoint, ascending."""
        return sorted({*range(self.checkpoint_every, self.steps + 1, self.checkpoint_every), self.steps})


class TrainingStopped(RuntimeError):
    """The trainer ended before its last step; finished checkpoints are kept."""


def train(run: str | Path, arms: Mapping[str, Mapping], **options) -> None:
    """Bring the arms of `student/` up to date, one after the other; `options` are those of `Options`.

    Needs `tokens/` and `examples/`. A finished arm whose settings, options, inputs and modules are today's is not trained
    again; an unfinished one goes on from its last checkpoint; one of other settings starts afresh. The number of processes
    is not among them. TrainingStopped says in one sentence why the trainer ended early, ValueError which file of an arm that
    is there is not as training left it: nothing of it is trained anew unasked.
    """
    sources.stand_on(MODULE)
    run, made = Path(run), checked(arms, Options(**options))
    with processes.lock(run):
        left = {name: dict(settings) for name, settings in arms.items() if not finished(run, name, key(run, settings, made), made)}
        if left:
            _run_child({"run": str(run), "arms": left, "options": made._asdict()})
        checkpoints.remember(run, list(arms))
        for name in arms:
            for path in checkpoints.outputs(run, name):
                trace.record("write", path)


def checked(arms: Mapping[str, Mapping], options: Options) -> Options:
    """The options, or ValueError with the first that cannot be, in one sentence."""
    if not arms:
        raise ValueError('there is no arm to train; name one, such as {"larger": {"layers": 2, "hidden": 64, "heads": 4}}')
    for name, settings in arms.items():
        _check_arm(name, settings)
    for name in ("steps", "batch", "checkpoint_every", "row_tokens", "pair_tokens", "processes"):
        if getattr(options, name) < 1:
            raise ValueError(f"{name} is {getattr(options, name)}; it is at least 1")
    for name in ("learning_rate", "clip"):
        if not (math.isfinite(getattr(options, name)) and getattr(options, name) > 0):
            raise ValueError(f"{name} is {getattr(options, name)}; it is a finite number above 0")
    if not (math.isfinite(options.weight_decay) and options.weight_decay >= 0):
        raise ValueError(f"weight_decay is {options.weight_decay}; it is a finite number of at least 0")
    if not 0 <= options.warmup <= options.steps:
        raise ValueError(f"warmup is {options.warmup} steps of {options.steps}; it lies between 0 and all of them")
    if options.row_tokens < options.pair_tokens:
        raise ValueError(f"row_tokens is {options.row_tokens} and a pair may have {options.pair_tokens} tokens (pair_tokens); "
                         "take rows at least as long")
    for name, values in CHOICES.items():
        if getattr(options, name) not in values:
            raise ValueError(f"{name} is {getattr(options, name)!r}; it is one of {', '.join(values)}")
    return options


def _check_arm(name: str, settings: Mapping) -> None:
    if not isinstance(settings, Mapping):
        raise ValueError(f"the arm {name} is {settings!r}; it takes a mapping of {', '.join(SIZES)}, or the path of a model's folder")
    if not _NAME.fullmatch(name):
        raise ValueError(f"the arm {name!r} cannot name a folder; use letters, digits, point, - and _")
    if "path" in settings:
        if len(settings) > 1:
            more = ", ".join(k for k in settings if k != "path")
            raise ValueError(f"the arm {name} names a folder and {more}; a model of a folder has its sizes already")
        if not isinstance(settings["path"], str) or not (paths.source(settings["path"]) / "config.json").is_file():
            raise ValueError(f"the arm {name} names {settings['path']}, where there is no config.json; name the folder of a transformers model")
        return
    unknown, missing = [k for k in settings if k not in SIZES], [k for k in SIZES[:3] if k not in settings]
    if unknown or missing:
        fault = f"has no size {unknown[0]!r}" if unknown else f"lacks {', '.join(missing)}"
        raise ValueError(f"the arm {name} {fault}; it takes {', '.join(SIZES)}, or the path of a model's folder")
    for size, value in settings.items():
        if type(value) is not int or value < 1:
            raise ValueError(f"the arm {name} has {size} {value!r}; it is a whole number of at least 1")
    sizes = shape(settings)
    if sizes["heads"] % sizes["kv_heads"] or sizes["head_dim"] % 2 or not sizes["head_dim"]:
        raise ValueError(f"the arm {name} has {sizes['heads']} heads, {sizes['kv_heads']} kv_heads and a head_dim of {sizes['head_dim']}; "
                         "kv_heads divides heads, and head_dim (hidden / heads where it is not given) is even and not 0")


def shape(settings: Mapping[str, int]) -> dict[str, int]:
    """All sizes of a model from scratch: head_dim is hidden / heads, kv_heads heads and intermediate 3 x hidden where not given."""
    given = {"kv_heads": settings["heads"], "head_dim": settings["hidden"] // settings["heads"], "intermediate": 3 * settings["hidden"]}
    return given | dict(settings)


def key(run: str | Path, settings: Mapping, options: Options) -> str:
    """The hash that a finished arm must carry: settings, options, training data, tokenizer, the model's folder, the modules' sources."""
    run = Path(run)
    of_folder = {}
    if "path" in settings:
        found = paths.source(settings["path"])
        of_folder = {path.name: files.sha256(path) for path in sorted(found.iterdir()) if path.suffix in (".json", ".safetensors", ".bin")}
    inputs = ("tokens/documents", "tokens/queries", "examples")
    known = {
        "settings": dict(settings), "model": of_folder, "options": {k: v for k, v in options._asdict().items() if k != "processes"},
        "inputs": {name: [line["sha256"] for line in contracts.parts(run / name)] for name in inputs},
        "tokenizer": tokens.tokenizer_sha256(run), "modules": sources.hashes(MODULE),
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def belongs(run: str | Path, arm: str, wanted: str) -> bool:
    """Whether what lies in an arm's folder was made under this key."""
    try:
        return json.loads((checkpoints.arm_folder(run, arm) / "arm.json").read_text())["key"] == wanted
    except (OSError, ValueError, KeyError, TypeError):
        return False


def finished(run: str | Path, arm: str, wanted: str, options: Options) -> bool:
    """Whether an arm was trained to its last step under this key; ValueError where a checkpoint is not as training left it."""
    if not belongs(run, arm, wanted):
        return False
    checkpoints.check_whole(run, arm, options.checkpoints)
    return options.steps in checkpoints.steps(run, arm)


def begin(run: str | Path, arm: str, settings: Mapping, wanted: str, options: Options) -> None:
    """Make an arm's folder ready: what was made under another key is removed, and so is what a killed trainer left half written.

    ValueError where a checkpoint is not as training left it.
    """
    folder = checkpoints.arm_folder(run, arm)
    if not belongs(run, arm, wanted):
        shutil.rmtree(folder, ignore_errors=True)
        files.write_json(folder / "arm.json", {"arm": arm, "settings": dict(settings), "key": wanted})
    checkpoints.check_whole(run, arm, options.checkpoints)
    for left in folder.glob(".step-*"):
        shutil.rmtree(left)


def _run_child(config: dict) -> None:
    with tempfile.TemporaryDirectory(prefix="qrelbook-train-") as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        count = str(config["options"]["processes"])
        child = processes.child("torch.distributed.run", "--standalone", "--nproc-per-node", count, "-m", MODULE, str(path),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {STARTED_BY: str(os.getpid())})
        own, killed, last = "", "", ""
        with processes.attended(child):
            for line in child.stdout:
                last = line.strip() or last
                own = own or (line.strip().removeprefix(f"{MODULE}: ") if line.startswith(f"{MODULE}: ") else "")
                if not own:  # what torchrun says after the trainer's own words is noise
                    print(line, end="", file=sys.stderr, flush=True)
                if match := _KILLED.search(line):
                    killed = f"a process was killed by {match[1]} (was memory short?)"
            code = child.wait()
    if code != 0:
        reason = f"{own};" if own else f"{killed or last or 'it said nothing'}; run again to go on,"  # its own words end in a way out
        raise TrainingStopped(f"the trainer ended with {code}: {reason} finished checkpoints are kept")
