"""Folders held by one process, and children that die with their parent."""

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lib import paths

_HELD = "QRELBOOK_LOCK"  # the folder that a parent holds for its children
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded here, not between fork and exec


class Locked(RuntimeError):
    """Another process holds the folder."""


@contextmanager
def lock(path: Path, shared: bool = False) -> Iterator[None]:
    """Hold a run folder, or the lock file of one part, for this process and the children it starts meanwhile.

    The kernel drops the lock when the process dies, however it dies. A second process is
    refused with the holder's pid. Inside a process whose parent holds it, nothing is done.
    Elements of a job array hold the run folder `shared`: beside each other, but not beside a run of notebooks.
    """
    path = Path(path).resolve()
    held = os.environ.get(_HELD)
    if held and path.is_relative_to(held):
        yield
        return
    target = path.with_name(f".{path.name}.lock") if path.suffix == ".parquet" else path / ".lock"
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "a+") as handle:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise Locked(f"{paths.shown(path)} is in use by process {holder}; wait for it to end, or stop it with kill {holder}") from None
        try:
            os.ftruncate(handle.fileno(), 0)
            os.write(handle.fileno(), str(os.getpid()).encode())
        except OSError as error:  # a full disk; the kernel does not say of which file
            error.filename = str(target)
            raise
        if shared:  # what lies inside is still locked part by part
            yield
            return
        os.environ[_HELD] = str(path)
        try:
            yield
        finally:
            handle.truncate(0)
            if held is None:
                del os.environ[_HELD]
            else:
                os.environ[_HELD] = held


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the one that started it dies."""
    parent = os.getppid()
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died in between
        os._exit(1)


def child(module: str, *arguments: str, **options) -> subprocess.Popen:
    """Start `python -m module arguments` in a process group of its own that dies with this process.

    It is asked for before Python starts in the child, so that a parent killed meanwhile leaves none behind.
    The kernel counts the thread that calls this as the parent.
    """
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, start_new_session=True, preexec_fn=die_with_parent, **options)


@contextmanager
def attended(started: subprocess.Popen) -> Iterator[None]:
    """Where the block is left by an error or an interrupt, the child is told to end and waited for."""
    try:
        yield
    except BaseException:
        started.terminate()
        started.wait()
        raise


def answer(what: str, module: str, *arguments: str, **options) -> str:
    """What `python -m module arguments` prints; RuntimeError with its last line of stderr where `what` it does fails."""
    started = child(module, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    with attended(started):
        told, error = started.communicate()
    if started.returncode:
        raise RuntimeError(f"{what} ended with {started.returncode}: {(error.strip().splitlines() or ['nothing printed'])[-1]}")
    return told


def memory(most: bool = True) -> float:
    """The memory that this process holds, or the most that it has held, in MiB. Not by getrusage, whose peak outlives exec."""
    wanted, status = "VmHWM:" if most else "VmRSS:", Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(wanted)) / 1024


@contextmanager
def one_sentence(module: str) -> Iterator[None]:
    """In a child: an error ends it with exit code 1 and one sentence on stderr, which begins with the module's name.

    One of another kind than ValueError, OSError, ArithmeticError and Locked is a fault of the code: its traceback stands before.
    """
    try:
        yield
    except (ValueError, OSError, ArithmeticError, Locked) as error:
        sys.exit(f"{module}: {' '.join(str(error).split())}")
    except Exception as error:
        traceback.print_exc()
        sys.exit(f"{module}: {type(error).__name__}: {' '.join(str(error).split())}")
