"""What a finished notebook ran on and what it left, and whether that still holds today.

Inputs are the files that it read and did not write, and those its parameters name; outputs are the
files of its run that it wrote. Attempts, logs, locks, timings, manifests and the judge
server's call counts are neither, because they may differ between two runs that agree.
"""

import functools
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from pathlib import Path

from lib import files, paths, sources, trace
from lib.plan.check import Job

PACKAGES = (
    "numpy pandas pyarrow scikit-learn numba torch transformers tokenizers duckdb aiohttp openai matplotlib papermill ipykernel"
).split()
_CHANGED = "changed while the notebook ran"  # stands for a hash and equals none

UNFINISHED, FAILED = ".unfinished", ".failed"
STATES = ("", UNFINISHED, FAILED)  # of an executed copy


def place(run: Path, name: str) -> Path:
    return run / "manifests" / f"{name}.json"


def load(run: Path, name: str) -> dict | None:
    """The manifest of a notebook that finished, or None; a torn one is none."""
    try:
        return json.loads(place(run, name).read_text())
    except (FileNotFoundError, ValueError):
        return None


def executed(run: Path, name: str, state: str = "") -> Path:
    """The executed copy: `03-probe.ipynb` is finished, `03-probe.failed.ipynb` is not."""
    return run / "notebooks" / f"{name}{state}.ipynb"


def drawn(run: Path) -> dict[Path, tuple[int, int]]:
    """Every file under tables and figures of the run, and of figures/<plan>, with its size and time of change."""
    folders = (run / "tables", run / "figures", paths.figures_folder(run.name))
    found = {path: path.stat() for folder in folders for path in folder.rglob("*") if path.is_file()}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


def drawn_by(known: dict | None, there: dict[Path, tuple[int, int]]) -> list[Path]:
    """Which of the tables and figures that are there a manifest names as outputs; one that another notebook wrote since is not."""
    named = {_find(shown): fingerprint for shown, fingerprint in (known["outputs"] if known else {}).items()}
    return [path for path, left in named.items() if there.get(path) == (left["size"], left["mtime_ns"])]


def _passing(path: Path, run: Path) -> bool:
    """Whether a file is neither input nor output: temporary, a time, or the runner's own."""
    inside = path.relative_to(run).parts if path.is_relative_to(run) else (path.name,)
    if path.name.startswith("timing") or any(name.startswith(".") for name in inside):
        return True
    return inside[0] in ("manifests", "logs", "notebooks", "failed") or (inside[0] == "planted" and path.name.startswith("calls"))


@functools.lru_cache(maxsize=None)
def _sha256(path: Path, size: int, changed: int) -> str:
    return files.sha256(path)


def _fingerprint(path: Path) -> dict:
    """Hash, size and time of change; a file that is gone has the hash '', a folder that of the names in it."""
    if path.is_dir():
        names = sorted(inside.name for inside in path.iterdir() if not inside.name.startswith("."))
        return {"sha256": hashlib.sha256("\n".join(names).encode()).hexdigest(), "size": len(names), "mtime_ns": 0}
    if not path.is_file():
        return {"sha256": "", "size": 0, "mtime_ns": 0}
    stat = path.stat()
    return {"sha256": _sha256(path, stat.st_size, stat.st_mtime_ns), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _same(path: Path, known: dict) -> bool:
    """Whether the file still has the known bytes; one of the same size and time of change is not read again."""
    if path.is_file():
        stat = path.stat()
        if (stat.st_size, stat.st_mtime_ns) == (known["size"], known["mtime_ns"]):
            return True
        if stat.st_size != known["size"]:
            return False
    return _fingerprint(path)["sha256"] == known["sha256"]


def _find(shown: str) -> Path:
    """The file that `lib.paths.shown` printed so."""
    return paths.HOME / shown if (paths.HOME / shown).exists() else paths.ROOT / shown


def _commit() -> dict:
    """The commit of the checkout and whether files differ from it; none where there is no git."""
    git = ["git", "-C", str(paths.ROOT)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(changed.strip())}


def write(job: Job, run: Path, traced: Path, started: int, drew: list[Path], seconds: float, peak: int) -> dict:
    """Write the manifest of a notebook that has just finished.

    `started` is its start in ns since 1970: a module or input changed since then gets no hash, so that the
    notebook runs again. `drew` are the tables and figures that it made, `peak` is in bytes.
    """
    events = trace.events(traced)
    wrote = {Path(path) for path in events["write"]} | set(drew)
    read = {Path(path) for path in events["read"]} | {path.absolute() for path in job.inputs}
    listed = (run / "tables", run / "figures")  # who reads these whole has to read a new one too
    inputs = sorted(path for path in read - wrote if not _passing(path, run) and (path in listed or not path.is_dir()))
    homes, asked = (run, paths.figures_folder(run.name)), run / "attempts"  # answers differ in order from run to run
    outputs = sorted(path for path in wrote if any(map(path.is_relative_to, homes)) and not path.is_relative_to(asked) and not _passing(path, run))
    modules = sources.digests(events["import"])
    known = {
        "parameters": job.parameters,
        **_commit(),
        "versions": {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES},
        "cells": job.cells,
        "modules": {name: _CHANGED if _module_changed(name, started) else digest for name, digest in modules.items()},
        "inputs": {paths.shown(path): _input(path, started) for path in inputs},
        "outputs": {paths.shown(path): _fingerprint(path) for path in outputs},
        "seconds": round(seconds, 1),
        "peak_memory_mb": round(peak / 1e6),
    }
    files.write_json(place(run, job.name), known)
    return known


def _input(path: Path, started: int) -> dict:
    found = _fingerprint(path)
    return {"sha256": _CHANGED, "size": -1, "mtime_ns": 0} if found["mtime_ns"] > started else found


def _module_changed(name: str, started: int) -> bool:
    path = sources.file(name)
    return path is not None and path.stat().st_mtime_ns > started


def stale(job: Job, run: Path, known: dict | None) -> str | None:
    """Why a notebook has to run (again), or None where its manifest still holds."""
    if known is None or not executed(run, job.name).exists():
        return "not run yet"
    if known["cells"] != job.cells:
        return "the notebook changed"
    differing = [name for name in job.parameters if name not in known["parameters"] or known["parameters"][name] != job.parameters[name]]
    if differing or len(known["parameters"]) != len(job.parameters):
        return f"parameters changed: {', '.join(differing) or 'one is gone'}"
    for name, digest in sources.digests(list(known["modules"])).items():
        if digest != known["modules"][name]:
            return f"{name} changed"
    for shown, fingerprint in (known["inputs"] | known["outputs"]).items():
        if not _same(_find(shown), fingerprint):
            return f"{shown} changed"
    return None
