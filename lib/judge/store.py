"""Every call to a judge, good or bad: one JSON line each, in files that only grow.

`<run>/attempts/<set>/<part>.jsonl` lies beside the intents of the same set and part. A line holds
the columns of the contract `attempts` in their order; the reply stands in it as it came, the
request does not. Lines of a closed file move into `<part>.parquet` beside it (lib.judge.compact);
whoever reads a part reads both, and names it by its JSONL file, whether or not that is there.

A file has the name of the query part that was asked. `<run>/attempts/<set>/queries.json` remembers every
partition of the queries under which the set was asked, so that calls are found after another one.
"""

import errno
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lib import contracts, files, paths, trace

# the sets of intents, oldest first, and the version of their rows; a reply answers its own version and later ones
SETS = {
    "one": "one", "probe": "probe", "source_page": "v1", "v1": "v1", "v2_gap": "v2 gap", "v2": "v2", "second": "second judge", "arbiter": "arbiter",
    "canary": "canary", "canary_v2": "canary v2",
}  # fmt: skip
# other judges, and attacked documents: their replies answer, and are answered by, their own version only
APART = ("second judge", "arbiter", "canary", "canary v2")
COLUMNS = tuple(contracts.TABLES["attempts"].names)
ABSORBED = b"absorbed"  # the metadata of a Parquet file: bytes and sha256 of the JSONL file that it took in last
_SYNC_SECONDS = 1.0
_BATCH = 8_192  # attempts in memory as Python objects


class StoreError(ValueError):
    """A line inside an attempts file is no attempt, or a file is damaged."""


def path(run: str | Path, intents_set: str, part: str) -> Path:
    """The attempts file of one part of one set of intents."""
    return Path(run) / "attempts" / intents_set / f"{part}.jsonl"


def _partition(run: str | Path) -> list[str]:
    return [line["sha256"] for line in contracts.parts(Path(run) / "queries")]


def _remembered(folder: Path) -> list[list[str]]:
    """The partitions that a set was asked under; where there are files and no memory, one that nobody knows."""
    memory = folder / "queries.json"
    if not memory.exists():
        return [[]] if _parts(folder) else []
    try:
        known = json.loads(files.read_bytes(memory))["partitions"]
        if all(isinstance(partition, list) for partition in known):
            return known
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise StoreError(f"{paths.shown(memory)} is no list of partitions; delete it, then every attempts file beside it is searched")


def remember(run: str | Path, intents_set: str) -> None:
    """Before the first call of a set: write down under which partition of the queries it is asked.

    The tables of answers that its calls may change are not finished from here on; lib.judge.one knows of its pair which those are.
    """
    folder, today = Path(run) / "attempts" / intents_set, _partition(run)
    for name, version in SETS.items():
        if intents_set in sets_up_to(version) and intents_set != "one":
            (Path(run) / "answers" / name / "manifest.json").unlink(missing_ok=True)
    known = _remembered(folder)
    if today not in known:
        files.write_json(folder / "queries.json", {"partitions": [*known, today]})


def compacted(source: Path) -> Path:
    """The Parquet file beside a JSONL file."""
    return source.with_suffix(".parquet")


def files_of(source: Path) -> list[Path]:
    """What there is of a part: its Parquet file, its JSONL file."""
    return [path for path in (compacted(source), source) if path.exists()]


def _parts(folder: Path) -> list[Path]:
    return sorted({path.with_suffix(".jsonl") for suffix in ("jsonl", "parquet") for path in folder.glob(f"part-*.{suffix}")})


def every(run: str | Path, intents_set: str) -> list[Path]:
    """All parts with attempts of a set, by their JSONL files."""
    return _parts(Path(run) / "attempts" / intents_set)


def as_partitioned(run: str | Path, intents_set: str) -> bool:
    """Whether the set was only ever asked under today's partition of the queries: then all calls of a part lie in its own file."""
    return _remembered(Path(run) / "attempts" / intents_set) in ([], [_partition(run)])


def sources(run: str | Path, intents_set: str, part: str) -> list[Path]:
    """The attempts files that may hold calls for queries of a part: its own, or all of the set."""
    own = path(run, intents_set, part)
    if as_partitioned(run, intents_set):
        return [own] if files_of(own) else []
    return every(run, intents_set)


def sets_up_to(version: str) -> list[str]:
    """The sets whose replies may answer an intent of this version, oldest first."""
    if version in APART:
        return [name for name, of in SETS.items() if of == version]
    line = [name for name, of in SETS.items() if of not in APART]
    return line[: max(at for at, name in enumerate(line) if SETS[name] == version) + 1]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):  # the latter of a line that is nested too deeply
        return False
    return True


def _is_attempt(line: bytes) -> bool:
    try:
        return tuple(json.loads(line)) == COLUMNS
    except (ValueError, TypeError, RecursionError):
        return False


def _lines(source: Path, start: int = 0) -> Iterator[tuple[bytes, dict | None]]:
    """Each line from byte `start` on with its attempt, and last the torn tail with None where there is one.

    That is a piece after the last line feed, or a last line that is not JSON. A whole attempt that lacks
    only its line feed is a line: it was paid for.
    """
    number = 1
    with open(source, "rb") as handle:
        while handle.tell() < start:
            number += bool(handle.readline())
        following = handle.readline()
        while line := following:
            following = handle.readline()
            if not following and not (_is_json(line) if line.endswith(b"\n") else _is_attempt(line)):
                yield line, None
                return
            try:
                row = json.loads(line)
                if tuple(row) != COLUMNS:
                    raise ValueError("its fields are not those of an attempt")
            except (ValueError, TypeError, RecursionError) as error:
                raise StoreError(
                    f"{paths.shown(source)} line {number} is no attempt ({error}); the replies after it are paid for: mend or delete that line"
                ) from None
            yield line, row
            number += 1


def taken_in(source: Path) -> int:
    """How many of the first bytes of a JSONL file stand in the Parquet file beside it: it was killed before it removed them."""
    if not compacted(source).exists():
        return 0
    size, sha256 = json.loads(_parquet(compacted(source)).metadata.metadata[ABSORBED])
    if not 0 < size <= source.stat().st_size:
        return 0
    digest = hashlib.sha256()
    with open(source, "rb") as handle:
        for start in range(0, size, 1 << 20):
            digest.update(handle.read(min(1 << 20, size - start)))
    return size if digest.hexdigest() == sha256 else 0


def _parquet(path: Path) -> pq.ParquetFile:
    try:
        found = pq.ParquetFile(path)
        if found.schema_arrow.equals(contracts.TABLES["attempts"]) and ABSORBED in (found.metadata.metadata or {}):
            return found
        error = "it has other columns"
    except (OSError, pa.ArrowException) as fault:
        error = str(fault)
    raise StoreError(f"{paths.shown(path)} is no file of attempts ({error}); its replies are paid for: bring it back from a copy")


def lines(source: Path) -> Iterator[dict]:
    """The attempts that stand in the JSONL file alone, in its order; a torn tail is left out, and left alone."""
    if source.exists():
        trace.record("read", source)
        yield from (row for _, row in _lines(source, taken_in(source)) if row is not None)


def read(source: str | Path) -> list[dict]:
    """The attempts of a part in the order they were written; none where there is no file.

    A torn tail is left out, and left alone: only the next writer sets it aside.
    """
    found = [batch.to_pylist() for batch in _batches(Path(source), COLUMNS)]
    return [*chain.from_iterable(found), *lines(Path(source))]


def _batches(source: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    path = compacted(source)
    if path.exists():
        trace.record("read", path)
        try:
            for batch in _parquet(path).iter_batches(65_536, columns=list(columns), use_threads=False):
                yield pa.Table.from_batches([batch]).select(list(columns))
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{paths.shown(path)} is damaged ({error}); its replies are paid for: bring it back from a copy") from error


def table(rows: list[dict], columns: Sequence[str] = COLUMNS) -> pa.Table:
    """Attempts as columns of the contract; a lone surrogate, which has no UTF-8, becomes U+FFFD there."""

    def legal(value):
        if isinstance(value, str) and not value.isascii():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return [legal(one) for one in value] if isinstance(value, list) else value

    schema = pa.schema([contracts.TABLES["attempts"].field(name) for name in columns])
    return pa.Table.from_pydict({name: [legal(row[name]) for row in rows] for name in columns}, schema=schema)


def tables(source: Path, columns: Sequence[str] = COLUMNS) -> Iterator[pa.Table]:
    """The attempts of a part in the order they were written, a few thousand at a time; only the columns named are made."""
    yield from _batches(source, columns)
    rest = lines(source)
    while rows := [{name: row[name] for name in columns} for row in islice(rest, _BATCH)]:
        try:
            yield table(rows, columns)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise StoreError(f"{paths.shown(source)} holds a value that no attempt has ({error}); mend or delete its line") from error


def scan(run: str | Path, intents_set: str, columns: Sequence[str] = COLUMNS) -> Iterator[pa.Table]:
    """All attempts of a set, Parquet and JSONL alike, part by part in the order they were written, in tables of a few thousand rows."""
    for source in every(run, intents_set):
        yield from tables(source, columns)


def _set_aside(target: Path) -> bool:
    """Move a torn tail into a file of its own; True where the last line is whole and lacks its line feed."""
    size, last, tail = 0, b"\n", b""
    for line, row in _lines(target):
        if row is None:
            tail = line
        else:
            size, last = size + len(line), line
    if not tail:
        return not last.endswith(b"\n")
    number = 1
    while (aside := target.with_name(f"{target.name}.torn-{number}")).exists():
        number += 1
    with files.whole(aside) as temporary:
        temporary.write_bytes(tail)
    os.truncate(target, size)
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
