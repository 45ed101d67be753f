"""The label that a score of the relevance model stands for.

The cut value goes up: 0.5 is a 1 and 1.5 is a 2 (bf16 scores land on coarse steps, so hits on a cut are common).
Labels, tables and the gate all cut here.
"""

import numpy as np

CUTS = (0.5, 1.5)


def label_of(score: np.ndarray) -> np.ndarray:
    """int8, 0, 1 or 2, of the shape of `score`: s < 0.5 -> 0; 0.5 <= s < 1.5 -> 1; s >= 1.5 -> 2.

    ValueError with the first score that is not finite: it has no label. Source: spec, "The 8B relevance model".
    """
    score = np.asarray(score)
    bad = np.flatnonzero(~np.isfinite(score))
    if len(bad):
        more = f"{len(bad)} of {score.size} scores are not finite"
        raise ValueError(f"the score at {bad[0]} is {score.flat[bad[0]]} and has no label ({more}); score the pair again")
    return np.searchsorted(CUTS, score, side="right").astype(np.int8)


def distance(score: np.ndarray) -> np.ndarray:
    """float64, how far a finite score lies from the nearer cut."""
    return np.abs(np.asarray(score, np.float64)[..., None] - CUTS).min(axis=-1)
