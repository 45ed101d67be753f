"""A released folder, whole under its name or not there: it is filled under another name and renamed."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lib import paths, processes, trace
from lib.exports.rows import ExportError

MANIFEST = "manifest.json"


class Written(NamedTuple):
    """A file of a release, by its path in the folder; rows leave a header out, and are None where lines are no rows."""

    file: str
    rows: int | None
    bytes: int
    sha256: str


class Output:
    """A file of a release while it is written: rows, bytes and hash are taken as the text passes."""

    def __init__(self, folder: Path, name: str, head: str = ""):
        self._name, self._rows, self._bytes, self._digest = name, 0, 0, hashlib.sha256()
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        self._handle = open(folder / name, "wb")
        self.add(head, 0)

    def add(self, text: str, rows: int = 1) -> None:
        """Append text of so many rows."""
        data = text.encode("utf-8")
        self._handle.write(data)
        self._digest.update(data)
        self._rows, self._bytes = self._rows + rows, self._bytes + len(data)

    def written(self) -> Written:
        return Written(self._name, self._rows, self._bytes, self._digest.hexdigest())

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *error) -> None:
        self._handle.close()


@contextmanager
def whole(outdir: Path) -> Iterator[Path]:
    """Yield an empty folder beside `outdir`; on success it is brought to disk and takes the place of `outdir`.

    A folder that is there is replaced only where it is empty or an earlier release (its manifest names each of its files):
    ExportError names what else lies in it. Killed at any point, `outdir` is the earlier release, the new one, or absent.
    """
    outdir = Path(outdir).resolve()
    _replaceable(outdir)
    made, old = (outdir.with_name(f".{outdir.name}.{what}") for what in ("unfinished", "replaced"))
    try:
        made.mkdir(parents=True, exist_ok=True)
        with processes.lock(made):
            if old.exists() and not outdir.exists():  # killed between the two renames
                os.rename(old, outdir)
            for left in (*(found for found in made.iterdir() if found.name != ".lock"), old):
                _remove(left)
            try:
                yield made
                (made / ".lock").unlink(missing_ok=True)
                _sync(made)
                if outdir.exists():
                    _replaceable(outdir)
                    os.rename(outdir, old)
                os.rename(made, outdir)
            except BaseException:
                _remove(made)
                raise
            _remove(old)
    except OSError as error:
        if error.filename is None or str(error.filename).startswith((str(made), str(outdir))):  # not a file that was read meanwhile
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(f"{paths.shown(outdir)} was not written ({reason}); make room or choose another --outdir and run again") from error
        raise
    for path in sorted(outdir.rglob("*")):
        if path.is_file():
            trace.record("write", path)


def write_text(folder: Path, name: str, text: str) -> Written:
    """Write a file whose lines are no rows."""
    with Output(folder, name) as output:
        output.add(text)
    return output.written()._replace(rows=None)


def write_manifest(folder: Path, files: list[Written], facts: dict) -> None:
    """Write the manifest: each file with rows, bytes and sha256, then the facts."""
    content = {"files": [found._asdict() for found in sorted(files)]} | facts
    write_text(folder, MANIFEST, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def _replaceable(outdir: Path) -> None:
    if not outdir.exists():
        return
    if not outdir.is_dir():
        raise ExportError(f"{paths.shown(outdir)} is a file; name a folder with --outdir")
    try:
        released = {MANIFEST} | {line["file"] for line in json.loads((outdir / MANIFEST).read_text(encoding="utf-8"))["files"]}
        found = (str(path.relative_to(outdir)) for path in outdir.rglob("*") if not path.is_dir())
    except (OSError, ValueError, LookupError, TypeError):
        released, found = set(), (path.name for path in outdir.iterdir())
    if strangers := sorted(set(found) - released):
        raise ExportError(f"{paths.shown(outdir)} holds {strangers[0]}, which no release wrote there; choose another --outdir, or move it away")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
