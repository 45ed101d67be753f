"""Runs of whole plans as a user starts them: a process, a home of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def start(plan: str, home: Path, *arguments: str, root: Path = ROOT, **options) -> subprocess.Popen:
    """Start `python -m lib.plan runs/<plan>.yaml` of the checkout `root` with its output under `home`."""
    return subprocess.Popen(
        [sys.executable, "-m", "lib.plan", f"runs/{plan}.yaml", *arguments], cwd=root,
        env=os.environ | {"QRELBOOK_HOME": str(home), "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options,
    )


def finish(process: subprocess.Popen, seconds: int = 300) -> str:
    """What the plan printed; it must have ended well."""
    printed, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, printed
    return printed


def results(home: Path, plan: str = "tiny") -> dict[str, bytes]:
    """The bytes of every label, qrels, table and figure of a run, and of what the paper notebook collected; times are none of them."""
    run = home / "runs" / plan
    found = [*run.glob("labels/*.parquet"), *run.glob("qrels/*/*.jsonl"), *run.glob("tables/*"), *run.glob("figures/*"), *(home / "figures" / plan).glob("*")]
    return {str(path.relative_to(home)): path.read_bytes() for path in found if path.is_file() and not path.name.startswith("timing")}
