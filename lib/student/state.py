"""Write a checkpoint whole, and go on from the last one.

Every process writes its part of `state/` (torch.distributed.checkpoint: model and optimizer), the first one all else.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pyarrow as pa
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict

from lib import contracts, files, paths
from lib.student import checkpoints
from lib.student.model import Scorer


def libraries(attention: str) -> dict[str, str]:
    """The versions that scores depend on."""
    names = ["torch", "transformers", "tokenizers"] + (["flash-attn"] if attention == "packed_fa2" else [])
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def save(arm: Path, step: int, scorer: Scorer, optimizer: torch.optim.Optimizer, dtype: torch.dtype, predictions: pa.Table,
         record: dict) -> None:
    """Write the checkpoint of a step under a temporary name and rename it; then the states of the older ones go.

    Weights are stored in `dtype`, the one that scores are computed in, the head in float32; `state/` holds float32 masters.
    `record` gets the hash of the weights. Needs the arm's log up to this step.
    """
    run = arm.parents[1]
    target, temporary = checkpoints.folder(run, arm.name, step), arm / f".step-{step:08d}"
    first = dist.get_rank() == 0
    if first:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
    dist.barrier()
    model, optimized = get_state_dict(scorer, optimizer)
    with _one_sentence(temporary / "state", "was not written", "make room and run again"):
        dcp.save({"model": model, "optimizer": optimized}, checkpoint_id=temporary / "state")
    weights = get_model_state_dict(scorer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if first:
        _write_weights(temporary, scorer, weights, dtype)
        contracts.write("predictions", predictions, temporary / "heldout.parquet")
        files.write_json(temporary / "record.json", record | {"weights_sha256": checkpoints.weights_sha256(temporary)})
        files.write_json(temporary / checkpoints.FILES, checkpoints.hashes(temporary))
        _sync(temporary)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(temporary, target)
        for older in checkpoints.steps(run, arm.name):
            if older < step:
                shutil.rmtree(checkpoints.folder(run, arm.name, older) / "state", ignore_errors=True)
    dist.barrier()


@contextmanager
def _one_sentence(folder: Path, fault: str, way_out: str) -> Iterator[None]:
    """A failed checkpoint as an OSError: torch's own is no Exception, and its message is a traceback of every process."""
    try:
        yield
    except CheckpointException as error:
        first, _ = next(iter(error.failures.values()))
        raise OSError(f"{paths.shown(folder)} {fault} ({type(first).__name__}: {first}); {way_out}") from error


def _write_weights(folder: Path, scorer: Scorer, weights: dict[str, torch.Tensor], dtype: torch.dtype) -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
    of_backbone = {name.removeprefix("backbone."): value.to(dtype) for name, value in weights.items() if name.startswith("backbone.")}
    scorer.backbone.save_pretrained(folder / "model", state_dict=of_backbone)
    of_head = {name.removeprefix("head."): value.float().contiguous() for name, value in weights.items() if name.startswith("head.")}
    save_file(of_head, folder / "head.safetensors")
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)  # they are made for the owner's eyes only


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as handle:
                os.fsync(handle.fileno())


def resume(arm: Path, scorer: Scorer, optimizer: torch.optim.Optimizer) -> int:
    """Load the last checkpoint that has a state, and give its step; 0 where there is none."""
    states = {step: checkpoints.folder(arm.parents[1], arm.name, step) / "state" for step in checkpoints.steps(arm.parents[1], arm.name)}
    there = [step for step, folder in states.items() if folder.is_dir()]
    if not there:
        return 0
    model, optimized = get_state_dict(scorer, optimizer)
    found = {"model": model, "optimizer": optimized}
    way_out = f"remove {paths.shown(arm)} and train the arm again from its start"
    with _one_sentence(states[there[-1]], "cannot be read", way_out):
        dcp.load(found, checkpoint_id=states[there[-1]])
    set_state_dict(scorer, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
    return there[-1]
