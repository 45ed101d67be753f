"""The student's own planted set through the real plan: the larger arm compares numbers, the smaller one cannot."""

import csv
from concurrent.futures import ThreadPoolExecutor

import pytest
import whole_run

pytestmark = pytest.mark.slow
SEEDS = (0, 1, 2)


def within_query_r2(home, seed: int) -> dict[str, float]:
    """Arm -> within-query R2 on the held-out queries, by the plan `student` with one seed for texts, weights and order."""
    sets = (f"01-corpus.seed={seed}", f"07-train.seed={seed}", f"08-evaluate.seed={seed}")
    whole_run.finish(whole_run.start("student", home, *(word for one in sets for word in ("--set", one))), seconds=900)
    with open(home / "runs" / "student" / "tables" / "arms.csv", encoding="utf-8", newline="") as handle:
        rows = {row["arm"]: row for row in csv.DictReader(handle)}
    assert rows["larger"]["queries"] == rows["smaller"]["queries"] == "150"
    return {arm: float(rows[arm]["within-query R2"]) for arm in ("larger", "smaller")}


def test_the_larger_arm_learns_what_the_smaller_cannot_in_two_of_three_seeds(tmp_path):
    with ThreadPoolExecutor(2) as two:
        found = list(two.map(lambda seed: within_query_r2(tmp_path / str(seed), seed), SEEDS))
    good = [r2 for r2 in found if r2["larger"] >= 0.40 and r2["smaller"] <= 0.25 and r2["larger"] - r2["smaller"] >= 0.15]
    assert len(good) >= 2, found
