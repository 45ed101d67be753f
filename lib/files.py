"""Write a file whole or not at all, and know a file by its hash."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lib import paths, trace


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is synced and renamed to `path`.

    On any error nothing is left and `path` stays what it was; an `OSError` (full disk,
    no permission) says which file could not be written.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        own = error.errno and error.filename in (None, str(temporary))
        reason = os.strerror(error.errno) if own else str(error)
        place = "QRELBOOK_HOME" if path.absolute().is_relative_to(paths.HOME) else "folder"
        raise OSError(f"{paths.shown(path)} was not written ({reason}); make room or choose another {place} and run again") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    trace.record("write", path)


def remove_leftovers(folder: str | Path) -> None:
    """Remove the temporary files that killed processes left in a folder; that of a process which is alive on this machine stays.

    For who holds the lock of the folder alone: the number of a process says nothing of another machine.
    """
    for left in Path(folder).glob(".*.tmp-*"):
        number = left.name.rpartition("-")[2]
        if number.isdecimal() and not _runs(int(number)):
            left.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # signal 0 asks only
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"  # a zombie writes no more
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        return True


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text with the line ends as they are."""
    with whole(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def write_json(path: str | Path, value) -> None:
    """Write strict JSON (no NaN), keys in the order given."""
    write_text(path, json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def read_bytes(path: str | Path) -> bytes:
    """Read a file whole and record that it was read."""
    trace.record("read", path)
    return Path(path).read_bytes()


def sha256(path: str | Path) -> str:
    """The hash of a file's bytes, in hex."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
