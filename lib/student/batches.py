"""Which pairs a training step reads, and how its rows are dealt to the processes: pure functions of seed and step."""

from functools import lru_cache

import numpy as np

from lib.draw import unit_hash
from lib.packed import rows as packing


def order(pairs: int, batch: int, seed: int, step: int) -> np.ndarray:
    """The pair numbers of a step (from 0), int64[batch]: the next `batch` places of an endless row of shuffles.

    Every pair comes once in an epoch, each epoch is shuffled anew, and a step may hold the end of one and the start of the next.
    """
    epoch, place = np.divmod(np.arange(step * batch, (step + 1) * batch), pairs)
    return np.concatenate([_shuffled(pairs, seed, int(e))[place[epoch == e]] for e in np.unique(epoch)])


@lru_cache(maxsize=2)
def _shuffled(pairs: int, seed: int, epoch: int) -> np.ndarray:
    return np.argsort(unit_hash(seed, np.int64(epoch), np.arange(pairs)), kind="stable")


def pack(lengths: np.ndarray, row_tokens: int, packs: bool) -> list[np.ndarray]:
    """Rows of pair numbers; one pair a row where the model cannot read several (`packs` false)."""
    return packing.pack(lengths, row_tokens) if packs else list(np.arange(len(lengths))[:, None])


def deal(rows: list[np.ndarray], lengths: np.ndarray, processes: int) -> list[list[np.ndarray]]:
    """The rows of each process, as many for each: where they do not come out even, the last ones get an empty row.

    Rows are dealt by tokens, most first, so that rows that run beside each other are about as long.
    """
    ranked = [rows[i] for i in np.argsort([-lengths[row].sum() for row in rows], kind="stable")]
    ranked += [np.empty(0, np.int64)] * (-len(rows) % processes)
    return [ranked[rank::processes] for rank in range(processes)]


def learning_rate(step: int, steps: int, peak: float, warmup: int, schedule: str) -> float:
    """The rate of a step (from 0): linear to `peak` over `warmup` steps, then constant, or half a cosine down to a tenth."""
    if step < warmup:
        return peak * (step + 1) / warmup
    if schedule == "constant":
        return peak
    return peak * (0.55 + 0.45 * float(np.cos(np.pi * (step - warmup) / max(steps - warmup, 1))))
