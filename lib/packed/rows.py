"""Pack pairs of different lengths into rows of at most so many tokens."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np


def pack(lengths: Sequence[int] | np.ndarray, row_tokens: int) -> list[np.ndarray]:
    """Rows of pair numbers, int64 each; every pair is in one row and no row holds more than `row_tokens` tokens.

    First-fit decreasing, row by row: a row takes the longest pair that still fits until none does; of equal lengths the
    lower number goes first. The rows depend on the lengths and the limit only. ValueError for a pair without a token or
    longer than a row.
    """
    lengths = np.asarray(lengths, np.int64)
    if bad := np.flatnonzero((lengths < 1) | (lengths > row_tokens)).tolist():
        raise ValueError(f"pair {bad[0]} has {lengths[bad[0]]} tokens ({len(bad)} such pairs), a row holds 1 to {row_tokens}; "
                         "give an empty pair a special token, or take longer rows or a lower limit for a pair")
    order = np.argsort(lengths, kind="stable")
    sizes, first, left = (array.tolist() for array in np.unique(lengths[order], return_index=True, return_counts=True))
    rows, found = [], []
    while sizes:
        room, at = row_tokens, len(sizes)
        while at := bisect_right(sizes, room, 0, at):  # the longest that fits stands at `at - 1`
            size = sizes[at - 1]
            count = min(room // size, left[at - 1])
            found.append((first[at - 1], count))
            room -= count * size
            first[at - 1] += count
            left[at - 1] -= count
            if not left[at - 1]:
                del sizes[at - 1], first[at - 1], left[at - 1]
                at -= 1
        rows.append(np.concatenate([order[start : start + count] for start, count in found]))
        found.clear()
    return rows
