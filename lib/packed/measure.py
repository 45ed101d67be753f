"""The same pairs forwarded packed and in padded batches, and the time that each takes."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lib.packed import forward, rows
from lib.packed.pairs import Ragged


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


def _on(backbone: torch.nn.Module, array: np.ndarray) -> torch.Tensor:
    """int64 on the device of the backbone."""
    return torch.from_numpy(array.astype(np.int64)).to(next(backbone.parameters()).device)


def best_of(times: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds, result) of the fastest of some calls without gradients: processor time, or the clock where there is CUDA."""
    cuda, best, result = torch.cuda.is_available(), float("inf"), None
    clock = time.perf_counter if cuda else time.process_time
    for _ in range(times):
        begun = clock()
        with torch.no_grad():
            result = call()
        if cuda:
            torch.cuda.synchronize()
        best = min(best, clock() - begun)
    return best, result
