"""Where everything lies: one root for what is read, one home for what is written.

The root is the checkout that holds `lib/`. Runs and figures go under the home,
which is the root unless `QRELBOOK_HOME` names another folder.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = Path(os.environ.get("QRELBOOK_HOME") or ROOT).resolve()
PROMPTS = ROOT / "prompts"
NOTEBOOKS = ROOT / "notebooks"


def run_folder(plan: str) -> Path:
    """The folder of a plan's run, `runs/<plan>`; ValueError where the name is no plain folder name."""
    if not plan or plan.startswith(".") or "/" in plan or "\\" in plan:
        raise ValueError(f"the run {plan!r} is no name of a folder; take a plain name such as sample, it lies under {HOME / 'runs'}")
    return HOME / "runs" / plan


def figures_folder(plan: str) -> Path:
    """Where the paper notebook leaves its figures and tables, `figures/<plan>`."""
    return HOME / "figures" / plan


def source(path: str | Path) -> Path:
    """An input path as the user wrote it: absolute, or relative to the root, never to the caller's folder."""
    return ROOT / Path(path).expanduser()


def shown(path: str | Path) -> str:
    """A path as messages print it: relative to the home or the root where it lies under one."""
    path = Path(path).absolute()
    for base in (HOME, ROOT):
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return str(path)
