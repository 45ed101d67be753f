"""Every call to a judge, good or bad: one JSON line each, in files that only grow.

`<run>/attempts/<set>/<part>.jsonl` lies beside the intents of the same set and part. A line holds
the columns of the contract `attempts` in their order; the reply stands in it as it came, the
request does not.
"""

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lib import contracts, files, paths, trace

# the sets of intents, oldest first, and the version of their rows; a reply answers its own version and later ones
SETS = {"probe": "probe", "source_page": "v1", "v1": "v1", "v2_gap": "v2 gap", "v2": "v2"}
VERSIONS = tuple(dict.fromkeys(SETS.values()))
COLUMNS = tuple(contracts.TABLES["attempts"].names)
_SYNC_SECONDS = 1.0


class StoreError(ValueError):
    """A line inside an attempts file is no attempt."""


def path(run: str | Path, intents_set: str, part: str) -> Path:
    """The attempts file of one part of one set of intents."""
    return Path(run) / "attempts" / intents_set / f"{part}.jsonl"


def sets_up_to(version: str) -> list[str]:
    """The sets whose replies may answer an intent of this version, oldest first."""
    last = VERSIONS.index(version)
    return [name for name, of in SETS.items() if VERSIONS.index(of) <= last]


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and the torn tail: bytes after the last line feed, or a last line that is not JSON."""
    lines = data.split(b"\n")
    tail = lines.pop()
    if not tail and lines:
        try:
            json.loads(lines[-1])
        except ValueError:
            tail = lines.pop() + b"\n"
    return lines, tail


def _rows(lines: list[bytes], source: Path) -> Iterator[dict]:
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if tuple(row) != COLUMNS:
                raise ValueError("its fields are not those of an attempt")
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"{paths.shown(source)} line {number} is no attempt ({error}); the replies after it are paid for: mend or delete that line"
            ) from None
        yield row


def read(source: str | Path) -> list[dict]:
    """The attempts of a file in the order they were written; none where there is no file.

    A torn tail is left out, and left alone: only the next writer sets it aside.
    """
    source = Path(source)
    if not source.exists():
        return []
    return list(_rows(_split(files.read_bytes(source))[0], source))


def table(rows: list[dict]) -> pa.Table:
    """Attempts as a table of the contract; a lone surrogate, which has no UTF-8, becomes U+FFFD there."""

    def legal(value):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value

    return contracts.table("attempts", [{name: legal(row[name]) for name in COLUMNS} for row in rows])


def _set_aside(target: Path) -> None:
    data = target.read_bytes()
    lines, tail = _split(data)
    list(_rows(lines, target))
    if not tail:
        return
    number = 1
    while (aside := target.with_name(f"{target.name}.torn-{number}")).exists():
        number += 1
    with files.whole(aside) as temporary:
        temporary.write_bytes(tail)
    os.truncate(target, len(data) - len(tail))


class Writer:
    """Appends attempts to one file: one `os.write` a line, on disk at most a second later and at close.

    Opening sets a torn tail aside in `<file>.torn-<n>`, so that what follows starts a line of its own.
    """

    def __init__(self, target: Path):
        self.target = target
        target.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            _set_aside(target)
        except BaseException:
            os.close(self._fd)
            raise
        trace.record("write", target)
        self._synced = time.monotonic()

    def append(self, row: dict) -> None:
        """Write one attempt; on a full disk the file ends where it ended before."""
        if tuple(row) != COLUMNS:
            raise ValueError(f"an attempt has the fields {', '.join(COLUMNS)}, not {', '.join(row)}")
        line = json.dumps(row, allow_nan=False).encode("ascii") + b"\n"
        end = os.fstat(self._fd).st_size
        try:
            written = os.write(self._fd, line)
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self._fd, end)
            raise OSError(
                error.errno, f"{paths.shown(self.target)} cannot grow ({error.strerror}); make room and run again, what is written is kept"
            ) from error
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self) -> None:
        self.sync()
        os.close(self._fd)
