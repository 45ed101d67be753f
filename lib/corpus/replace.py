"""Make a folder beside the finished one, and put it in its place when it is whole."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lib import contracts, trace


FORMER = "manifest.former.json"  # what is left of the manifest of an import whose documents or queries changed


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(f".{folder.name}.{ending}")


@contextmanager
def staged(run: Path, name: str) -> Iterator[Path]:
    """An empty folder to fill; whatever is not swapped in is removed at the end."""
    folder = _beside(run / name, "tmp")
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed import
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def swap(run: Path, names: list[str]) -> None:
    """Put the staged folders in the place of those of a former import, one after the other."""
    for name in names:
        folder, old = run / name, _beside(run / name, "old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        os.rename(_beside(folder, "tmp"), folder)
        shutil.rmtree(old, ignore_errors=True)
        for path in [*sorted(folder.glob("part-*")), folder / "manifest.json"]:
            trace.record("write", path)


def corpus_hash(run: Path) -> str:
    """What imported routes and qrels belong to: the documents and queries of the run, by hash."""
    lines = [contracts.parts(run / name) for name in ("documents", "queries")]
    return hashlib.sha256(json.dumps(lines, sort_keys=True).encode()).hexdigest()


def unfinish_imports(run: Path) -> int:
    """Unfinish imported routes and qrels whose rows point into former documents or queries; how many."""
    today, stale = corpus_hash(run), 0
    for manifest in [*run.glob("hits/*/manifest.json"), *run.glob("qrels/*/manifest.json")]:
        # not by contracts.parts, whose trace would make later tables an input of the documents
        if any(line.get("corpus", today) != today for line in json.loads(manifest.read_text())["parts"]):
            manifest.replace(manifest.with_name(FORMER))
            stale += 1
    return stale
