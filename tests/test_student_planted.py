"""The student's own planted set, trained through its plan: the larger arm learns to compare, the smaller one does not."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
import whole_run

SEEDS = (0, 1, 2)


def trained(seed: int, home) -> tuple[pd.DataFrame, float]:
    """The arms of one seed as its evaluation tells them, and the CPU seconds of its plan, children included."""
    sets = [part for name in ("01-corpus", "07-train") for part in ("--set", f"{name}.seed={seed}")]
    with open(home / "printed.txt", "w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "lib.plan", "runs/student.yaml", *sets], cwd=whole_run.ROOT, stdout=out, stderr=subprocess.STDOUT,
            env=os.environ | {"QRELBOOK_HOME": str(home), "PYTHONPATH": str(whole_run.ROOT)},
        )
        _, status, used = os.wait4(process.pid, 0)
    assert status == 0, (home / "printed.txt").read_text()
    return pd.read_csv(home / "runs" / "student" / "tables" / "arms.csv").set_index("arm"), used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_only_the_larger_arm_learns_to_compare_query_and_page(tmp_path):
    homes = [tmp_path / str(seed) for seed in SEEDS]
    for home in homes:
        home.mkdir()
    with ThreadPoolExecutor(2) as two:
        found = list(two.map(trained, SEEDS, homes))
    for seed, (arms, seconds) in zip(SEEDS, found, strict=True):
        print(f"seed {seed}: {arms['within-query R2'].round(3).to_dict()}, {seconds:.0f} CPU seconds")
    larger, smaller = ([arms.loc[name, "within-query R2"] for arms, _ in found] for name in ("larger", "smaller"))
    reached = [a >= 0.40 and b <= 0.25 and a - b >= 0.15 for a, b in zip(larger, smaller, strict=True)]
    assert sum(reached) >= 2, (larger, smaller)
    assert max(seconds for _, seconds in found) <= 4 * 60
    facts = pd.read_csv(homes[0] / "runs" / "student" / "tables" / "training.csv")
    assert facts["training queries"].tolist() == [4000, 4000] and facts["training pairs"].tolist() == [32000, 32000]
    assert facts["held-out queries"].tolist() == [150, 150] and facts["held-out pairs"].tolist() == [1200, 1200]
