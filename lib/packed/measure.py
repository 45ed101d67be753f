"""The same pairs forwarded packed and in padded batches, and the time that each takes."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from lib.packed import forward, rows
from lib.packed.pairs import Ragged


def lognormal(draw: np.random.Generator, n: int, mean: float, spread: float, most: int) -> np.ndarray:
    """Lognormal lengths of 1 to `most` tokens, int64[n], whose mean after the cut is `mean`; `spread` is that of their logarithms."""
    if not 1 <= mean < most:
        raise ValueError(f"lengths of at most {most} tokens cannot have a mean of {mean}; take a mean below the most")
    shape, scale = draw.lognormal(0, spread, n), mean
    for _ in range(50):
        lengths = np.clip(shape * scale, 1, most)
        scale *= mean / lengths.mean()
    return lengths.round().astype(np.int64)


def packed(ready: forward.Packed, pairs: Ragged, row_tokens: int) -> torch.Tensor:
    """The last hidden state of each pair by packed rows of at most `row_tokens`, [n, hidden]."""
    found = None
    for numbers in rows.pack(pairs.lengths, row_tokens):
        one = pairs.take(numbers)
        hidden = forward.last_hidden(ready.backbone, _on(ready.backbone, one.ids), one.lengths.tolist(), ready.packs)
        found = hidden.new_empty(len(pairs.lengths), hidden.shape[1]) if found is None else found
        found[numbers] = hidden
    return found


def padded(backbone: torch.nn.Module, pairs: Ragged, order: np.ndarray, batch: int, side: str = "right") -> torch.Tensor:
    """The same by batches as transformers pads them, in the order given; the backbone keeps its own attention."""
    found = None
    for start in range(0, len(order), batch):
        numbers = order[start : start + batch]
        lengths = pairs.lengths[numbers]
        mask = np.arange(lengths.max()) < lengths[:, None]
        mask = mask[:, ::-1].copy() if side == "left" else mask
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = pairs.take(numbers).ids
        ids, mask = _on(backbone, ids), _on(backbone, mask)
        hidden = backbone(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        found = hidden.new_empty(len(order), hidden.shape[2]) if found is None else found
        found[numbers] = hidden[torch.arange(len(numbers), device=hidden.device), forward.last_index(mask)]
    return found


def padded_tokens(lengths: np.ndarray, order: np.ndarray, batch: int) -> int:
    """The tokens, padding counted, of padded batches in an order."""
    chunks = [lengths[order[start : start + batch]] for start in range(0, len(order), batch)]
    return int(sum(len(chunk) * chunk.max() for chunk in chunks))


def _on(backbone: torch.nn.Module, array: np.ndarray) -> torch.Tensor:
    """int64 on the device of the backbone."""
    return torch.from_numpy(array.astype(np.int64)).to(next(backbone.parameters()).device)


class Lap(NamedTuple):
    """What one way gave: its result, the least seconds of its rounds, and the most bytes held on the GPU (NaN without one)."""

    result: Any
    seconds: float
    memory: float


@torch.no_grad()
def race(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Lap]:
    """Call each way once for its result and to warm up, then `rounds` times in turn, so that a busy spell hits all of them.

    Seconds are those of the processor, which a busy machine does not lengthen much, and of the clock where there is CUDA.
    """
    cuda = torch.cuda.is_available()
    clock = time.perf_counter if cuda else time.process_time
    found = {name: Lap(call(), float("inf"), float("nan")) for name, call in ways.items()}
    for name in [name for _ in range(rounds) for name in ways]:
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        begun = clock()
        ways[name]()
        if cuda:
            torch.cuda.synchronize()
        memory = float(torch.cuda.max_memory_allocated()) if cuda else float("nan")
        found[name] = Lap(found[name].result, min(found[name].seconds, clock() - begun), memory)
    return found
