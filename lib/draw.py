"""Deterministic draws: who belongs to a sample follows from a seed and row numbers, on every machine alike."""

import numpy as np


def unit_hash(seed: int, *numbers: np.ndarray) -> np.ndarray:
    """A uniform number in [0, 1) for each row of integers, the same on every machine (splitmix64)."""
    if not 0 <= seed < 2**64:
        raise ValueError(f"the seed is {seed}; take a whole number from 0 to 2**64 - 1")
    state = np.full(np.broadcast(*numbers).shape, np.uint64(seed))
    with np.errstate(over="ignore"):
        for number in numbers:
            state = (state ^ number.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)) / np.float64(2**53)


def first_by_hash(rows: np.ndarray, n: int, seed: int) -> np.ndarray:
    """`n` of the rows (all, if there are fewer), ascending; the draw of a smaller n is a part of that of a larger one."""
    return np.sort(rows[np.argsort(unit_hash(seed, rows), kind="stable")[:n]])
