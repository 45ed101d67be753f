"""The self-test behind the gate: held-out pairs scored as the labelling run will score, and once with a fault on purpose."""

from collections.abc import Callable, Sequence

import numpy as np

from lib.draw import unit_hash
from lib.packed import pairs
from lib.packed import rows as packing
from lib.packed.pairs import Ragged
from lib.student import gate

ScoreRows = Callable[[Ragged, Sequence[np.ndarray]], np.ndarray]  # as lib.student.score.score_rows, of one model


def draw(query: np.ndarray, doc: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Places of `n` pairs, drawn by the hash of seed, query and document, ascending; ValueError where there are fewer."""
    if not 1 <= n <= len(query):
        raise ValueError(f"gate_pairs is {n} and the checkpoint has {len(query):,} held-out pairs; ask for at least 1 and at most as many, or hold out more")
    return np.sort(np.argsort(unit_hash(seed, query, doc), kind="stable")[:n])


def rows_of(lengths: np.ndarray, row_tokens: int) -> list[np.ndarray]:
    """Rows of pair numbers by the run's packer, at most min(row_tokens, an eighth of all tokens) long, so at least 8.

    A pair longer than that has a row of its own; the gate allows one such.
    """
    lengths = np.asarray(lengths, np.int64)
    limit = min(row_tokens, int(lengths.sum()) // gate.ROWS)
    fit = np.flatnonzero(lengths <= limit)
    return [fit[row] for row in packing.pack(lengths[fit], limit)] + list(np.flatnonzero(lengths > limit)[:, None])


def full_row(lengths: np.ndarray, row_tokens: int) -> np.ndarray:
    """Pair numbers, in order and repeated, that fill a row: none of the pairs fits into what is left."""
    found, room = [], row_tokens
    while room >= np.min(lengths):
        for pair, length in enumerate(lengths):
            if length <= room:
                found.append(pair)
                room -= int(length)
    return np.array(found, np.int64)


def contaminated(given: Ragged, rows: Sequence[np.ndarray]) -> Ragged:
    """Each pair with the one before it (in packed order, the first after the last) in front of it, in one segment.

    It is what a pair's last token sees where the border to its neighbour is lost. Where both are longer than the longest
    pair, each gives up its start, the pair not more than half: no list is longer than a pair the model knows.
    """
    order, most = np.concatenate(rows), max(int(given.lengths.max()), 2)
    merged: list[np.ndarray] = [np.empty(0, np.int32)] * len(order)
    for before, pair in zip(np.roll(order, 1), order, strict=True):
        own = given.list(pair)
        own = own[-max(most // 2, most - len(given.list(before))) :]
        merged[pair] = np.concatenate([given.list(before)[-(most - len(own)) :], own])
    return pairs.ragged(merged)


def run(score_rows: ScoreRows, given: Ragged, reference: np.ndarray, row_tokens: int) -> dict:
    """The report of an open gate, or `gate.GateFailed`.

    given: the token ids of held-out pairs, each cut as in training; reference float32[n], what training predicted for them.
    Three parts: `pairs` (at least 8 rows), `full row` (one row of `row_tokens`, filled by repeating pairs) and `control`
    (every pair sees its neighbour: must fail the same measures). The control is chosen so that any model that attends to its
    context fails it: an untrained one-layer model reaches a Pearson of 0.995, a trained one 0.7 to 0.9.
    """
    rows = rows_of(given.lengths, row_tokens)
    report = gate.check(reference, score_rows(given, rows), [len(row) for row in rows])
    repeated = full_row(given.lengths, row_tokens)
    full = gate.check_row(reference[repeated], score_rows(given.take(repeated), [np.arange(len(repeated))]))
    crossed = contaminated(given, rows)
    control = gate.check_control(reference, score_rows(crossed, packing.pack(crossed.lengths, max(row_tokens, int(crossed.lengths.max())))))
    return {
        "pairs": report._asdict(),
        "full row": {"pairs": len(repeated), "tokens": int(given.lengths[repeated].sum()), "max_difference": full},
        "control": {name: _plain(getattr(control, name)) for name in ("pearson", "max_difference", "slope", "changed", "changed_away")},
    }


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value
