"""Every call to a judge, good or bad: one JSON line each, in files that only grow.

`<run>/attempts/<set>/<part>.jsonl` lies beside the intents of the same set and part. A line holds
the columns of the contract `attempts` in their order; the reply stands in it as it came, the
request does not.

A file has the name of the query part that was asked. `<run>/attempts/<set>/queries.json` remembers every
partition of the queries under which the set was asked, so that calls are found after another one.
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
SETS = {"probe": "probe", "source_page": "v1", "v1": "v1", "v2_gap": "v2 gap", "v2": "v2", "second": "second judge", "arbiter": "arbiter"}
APART = ("second judge", "arbiter")  # other judges: their replies answer, and are answered by, their own version only
COLUMNS = tuple(contracts.TABLES["attempts"].names)
_SYNC_SECONDS = 1.0


class StoreError(ValueError):
    """A line inside an attempts file is no attempt."""


def path(run: str | Path, intents_set: str, part: str) -> Path:
    """The attempts file of one part of one set of intents."""
    return Path(run) / "attempts" / intents_set / f"{part}.jsonl"


def _partition(run: str | Path) -> list[str]:
    return [line["sha256"] for line in contracts.parts(Path(run) / "queries")]


def _remembered(folder: Path) -> list[list[str]]:
    """The partitions that a set was asked under; where there are files and no memory, one that nobody knows."""
    memory = folder / "queries.json"
    if not memory.exists():
        return [[]] if any(folder.glob("part-*.jsonl")) else []
    try:
        known = json.loads(files.read_bytes(memory))["partitions"]
        if all(isinstance(partition, list) for partition in known):
            return known
    except (ValueError, KeyError, TypeError):
        pass
    raise StoreError(f"{paths.shown(memory)} is no list of partitions; delete it, then every attempts file beside it is searched")


def remember(run: str | Path, intents_set: str) -> None:
    """Before the first call of a set: write down under which partition of the queries it is asked.

    The tables of answers that its calls may change are not finished from here on.
    """
    folder, today = Path(run) / "attempts" / intents_set, _partition(run)
    for name, version in SETS.items():
        if intents_set in sets_up_to(version):
            (Path(run) / "answers" / name / "manifest.json").unlink(missing_ok=True)
    known = _remembered(folder)
    if today not in known:
        files.write_json(folder / "queries.json", {"partitions": [*known, today]})


def every(run: str | Path, intents_set: str) -> list[Path]:
    """All attempts files of a set."""
    return sorted((Path(run) / "attempts" / intents_set).glob("part-*.jsonl"))


def as_partitioned(run: str | Path, intents_set: str) -> bool:
    """Whether the set was only ever asked under today's partition of the queries: then all calls of a part lie in its own file."""
    return _remembered(Path(run) / "attempts" / intents_set) in ([], [_partition(run)])


def sources(run: str | Path, intents_set: str, part: str) -> list[Path]:
    """The attempts files that may hold calls for queries of a part: its own, or all of the set."""
    own = path(run, intents_set, part)
    if as_partitioned(run, intents_set):
        return [own] if own.exists() else []
    return every(run, intents_set)


def sets_up_to(version: str) -> list[str]:
    """The sets whose replies may answer an intent of this version, oldest first."""
    if version in APART:
        return [name for name, of in SETS.items() if of == version]
    line = [name for name, of in SETS.items() if of not in APART]
    return line[: max(at for at, name in enumerate(line) if SETS[name] == version) + 1]


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and the torn tail: a piece after the last line feed, or a last line that is not JSON.

    A whole attempt that lacks only its line feed is a line: it was paid for.
    """
    lines = data.split(b"\n")
    tail = lines.pop()
    if tail and _is_attempt(tail):
        return [*lines, tail], b""
    if not tail and lines:
        try:
            json.loads(lines[-1])
        except ValueError:
            tail = lines.pop() + b"\n"
    return lines, tail


def _is_attempt(line: bytes) -> bool:
    try:
        return tuple(json.loads(line)) == COLUMNS
    except (ValueError, TypeError):
        return False


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


def _set_aside(target: Path) -> bool:
    """Move a torn tail into a file of its own; True where the last line is whole and lacks its line feed."""
    data = target.read_bytes()
    lines, tail = _split(data)
    list(_rows(lines, target))
    if not tail:
        return data != b"" and not data.endswith(b"\n")
    number = 1
    while (aside := target.with_name(f"{target.name}.torn-{number}")).exists():
        number += 1
    with files.whole(aside) as temporary:
        temporary.write_bytes(tail)
    os.truncate(target, len(data) - len(tail))
    return False


class Writer:
    """Appends attempts to one file: one `os.write` a line, on disk at most a second later and at close.

    Opening ends a last line that lacks its line feed, and sets a torn tail aside in `<file>.torn-<n>`,
    so that what follows starts a line of its own.
    """

    def __init__(self, target: Path):
        self.target = target
        target.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if _set_aside(target):
                self._write(b"\n")
        except BaseException:
            os.close(self._fd)
            raise
        trace.record("write", target)
        self._synced = time.monotonic()

    def append(self, row: dict) -> None:
        """Write one attempt; on a full disk the file ends where it ended before."""
        if tuple(row) != COLUMNS:
            raise ValueError(f"an attempt has the fields {', '.join(COLUMNS)}, not {', '.join(row)}")
        self._write(json.dumps(row, allow_nan=False).encode("ascii") + b"\n")
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self.sync()

    def _write(self, line: bytes) -> None:
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

    def sync(self) -> None:
        os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self) -> None:
        self.sync()
        os.close(self._fd)
