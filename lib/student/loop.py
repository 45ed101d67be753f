"""The training loop: mean squared error on the labels 0, 1, 2, over packed rows, on one process or many.

The global batch counts pairs. A process takes its rows of the step's pairs, and its loss is the sum of its squared errors
x processes / pairs of the step: FSDP's mean over the processes is then the gradient of the mean over the pairs, however
unevenly they are dealt. Every process goes through as many rows as the others; an empty row has weight zero.
"""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
import torch.distributed as dist

from lib import contracts, corpus, files, processes
from lib.packed import pairs
from lib.packed.pairs import Ragged, Template
from lib.student import arms, batches, checkpoints, examples, model, score, state, tokens
from lib.student.arms import Options
from lib.student.model import Scorer
from lib.student.progress import Progress


class World(NamedTuple):
    """This process among those that train."""

    rank: int
    size: int
    device: torch.device


class Side(NamedTuple):
    """The pairs of training, or those held out, in the order of `examples/`: int32, int32, float32 and int64 [n]."""

    query: np.ndarray
    doc: np.ndarray
    label: np.ndarray
    lengths: np.ndarray  # tokens, after the cut
    cuts: pairs.Cuts


class Data(NamedTuple):
    """What all arms read."""

    tokens: tokens.Tokens
    template: Template
    training: Side
    held: Side


def run(config: dict) -> None:
    """Train the arms of a configuration: `run` (the run folder), `arms` (name -> settings) and `options` (those of `arms.Options`)."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    folder, options = Path(config["run"]), arms.checked(config["arms"], Options(**config["options"]))
    world = _join()
    with processes.lock(folder) if world.rank == 0 else nullcontext():
        read = data(folder, options.pair_tokens)
        for name, settings in config["arms"].items():
            train(folder, name, settings, options, read, world)
    dist.destroy_process_group()


def _join() -> World:
    local = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
        dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return World(dist.get_rank(), dist.get_world_size(), device)


def data(run: Path, limit: int) -> Data:
    """The tokens and examples of a run."""
    lists, template = tokens.load(run), pairs.template(corpus.tokenizer(run))

    def side(held: bool) -> Side:
        table = examples.read(run, held)
        query, doc = (table[name].to_numpy() for name in ("query", "doc"))
        return Side(query, doc, table["label"].to_numpy().astype(np.float32), *tokens.pair_lengths(lists, query, doc, template, limit))

    return Data(lists, template, side(False), side(True))


def train(run: Path, name: str, settings: dict, options: Options, data: Data, world: World) -> None:
    """Bring one arm to its last step, from its last checkpoint."""
    folder, key = checkpoints.arm_folder(run, name), ""
    if world.rank == 0:
        key = arms.key(run, settings, options)
        arms.begin(run, name, settings, key, options)
    dist.barrier()
    if options.steps in checkpoints.steps(run, name):
        return
    sizes = None if "path" in settings else arms.shape(settings)
    bias = float(data.training.label.mean())
    scorer = model.build(settings, sizes, corpus.tokenizer(run), options.seed, options.pair_tokens, world.device, bias)
    dtype, config, parameters = next(scorer.backbone.parameters()).dtype, model.sizes_of(scorer.backbone), model.parameters(scorer)
    if options.recompute == "on" or (options.recompute == "auto" and world.device.type == "cuda"):
        scorer.backbone.gradient_checkpointing_enable({"use_reentrant": False})
    model.shard(scorer, world.device, world.size)
    optimizer = torch.optim.AdamW(scorer.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay)
    start = state.resume(folder, scorer, optimizer)
    log = checkpoints.log(run, name).head(start).to_dict("records") if start else []
    record = {
        "arm": name, "key": key, "dtype": str(dtype).removeprefix("torch."), "attention": scorer.attention, "packs": scorer.packs,
        "tokenizer_sha256": tokens.tokenizer_sha256(run), "template": list(data.template), "pair_tokens": options.pair_tokens,
        "pair_chars": tokens.pair_chars(run), "libraries": state.libraries(scorer.attention), "config": config, "parameters": parameters,
        "training": {"settings": settings, "options": options._asdict()} | examples.counts(run) | {
            "cut queries": data.training.cuts.queries, "cut documents": data.training.cuts.documents,
            "cut held-out queries": data.held.cuts.queries, "cut held-out documents": data.held.cuts.documents},
    }
    progress = Progress(name, folder, config, options.steps, start, str(world.device), world.size, tells=world.rank == 0)
    for step in range(start, options.steps):
        log.append(_step(scorer, optimizer, data, options, step, world))
        if not np.isfinite([log[-1]["loss"], log[-1]["gradient norm"]]).all():
            raise FloatingPointError(
                f"the arm {name} has the loss {log[-1]['loss']} and the gradient norm {log[-1]['gradient norm']} at step {step + 1}; "
                f"take a learning_rate below {options.learning_rate} or a longer warmup"
            )
        progress.add(log[-1]["loss"], data.training.lengths[_chosen(data.training, options, step)])
        if (step + 1) % options.checkpoint_every == 0 or step + 1 == options.steps:
            predictions = _predictions(name, scorer, data, options, world)
            if world.rank == 0:  # before the checkpoint, which makes it valid
                files.write_text(folder / "log.csv", pd.DataFrame(log, columns=checkpoints.LOG).to_csv(index=False, lineterminator="\n"))
            state.save(folder, step + 1, scorer, optimizer, dtype, predictions, record | {"step": step + 1})
    progress.end(log[-1]["loss"])


def _chosen(side: Side, options: Options, step: int) -> np.ndarray:
    return batches.order(len(side.label), options.batch, options.seed, step)


def _step(scorer: Scorer, optimizer: torch.optim.Optimizer, data: Data, options: Options, step: int, world: World) -> dict:
    """One update; the line of the log. Nothing is updated where the loss or the gradient is not finite."""
    side, rate = data.training, batches.learning_rate(step, options.steps, options.learning_rate, options.warmup, options.schedule)
    chosen = _chosen(side, options, step)
    rows = batches.deal(batches.pack(side.lengths[chosen], options.row_tokens, scorer.packs), side.lengths[chosen], world.size)[world.rank]
    torch.manual_seed(options.seed * 1_000_003 + step)  # of dropout, where a backbone has any
    scorer.train()
    optimizer.zero_grad(set_to_none=True)
    errors = gradients(scorer, data, side, [chosen[row] for row in rows], world.size / len(chosen), options.pair_tokens)
    total = torch.tensor([errors], dtype=torch.float64)
    dist.all_reduce(total)
    norm = torch.nn.utils.clip_grad_norm_(scorer.parameters(), options.clip)
    norm, loss = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm), float(total) / len(chosen)
    if np.isfinite([norm, loss]).all():
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return dict(zip(checkpoints.LOG, (step + 1, loss, norm, rate, len(chosen), int(side.lengths[chosen].sum())), strict=True))


def gradients(scorer: Scorer, data: Data, side: Side, rows: list[np.ndarray], scale: float, limit: int) -> float:
    """Add the gradients of squared errors x scale of some rows of pair numbers; the sum of the squared errors."""
    errors = 0.0
    for row in rows:
        given = _given(data, side, row, limit) if len(row) else score.EMPTY
        scores = model.scores_of(scorer, given)
        wanted = torch.from_numpy(side.label[row]).to(scores.device) if len(row) else scores.detach()
        loss = ((scores - wanted) ** 2).sum()
        (loss * scale).backward()
        errors += float(loss.detach())
    return errors


def _predictions(name: str, scorer: Scorer, data: Data, options: Options, world: World) -> pa.Table:
    """The held-out pairs as this model scores them (contract predictions), each scored by one process."""
    side = data.held
    rows = batches.deal(batches.pack(side.lengths, options.row_tokens, scorer.packs), side.lengths, world.size)[world.rank]
    found = np.zeros(len(side.label), np.float32)
    for row in rows:
        given = _given(data, side, row, options.pair_tokens)
        found[row] = score.score_rows(scorer, given, [np.arange(len(row))])
    total = torch.from_numpy(found)
    dist.all_reduce(total)  # the others hold zeros
    if not torch.isfinite(total).all():
        raise FloatingPointError(f"the arm {name} gives {int((~torch.isfinite(total)).sum())} held-out pairs scores that are not finite; "
                                 f"take a learning_rate below {options.learning_rate}")
    columns = {"query": side.query, "doc": side.doc, "label": side.label.astype(np.int8), "prediction": total.numpy()}
    return contracts.table("predictions", columns)


def _given(data: Data, side: Side, row: np.ndarray, limit: int) -> Ragged:
    return tokens.join(data.tokens, side.query[row], side.doc[row], data.template, limit)[0]
