"""Ask a command for one document: no shell, a process group of its own, a time limit, and nothing that is half an answer."""

import contextlib
import errno
import os
import selectors
import shlex
import signal
import subprocess
import threading
import time

from lib import processes
from lib.qrels.refusals import Refused

LIMIT = 64 << 20  # bytes of an answer
_PASSING = (errno.E2BIG, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY)  # says nothing of the program
_TAIL = 16 << 10  # bytes of stderr that are kept
_SHOWN = 200  # characters of its last line in a reason
_TICK, _SHORT_TICK = 0.1, 0.005  # seconds between two looks at what makes no noise: the child's end, once its output is closed, and `stop`


class NoAnswer(Exception):
    """The command gave no document this time; the text is the reason."""


class Stopped(Exception):
    """Asked to stop; the command was killed."""


def words(command: str) -> list[str]:
    """The command line split as a shell would, nothing expanded; Refused where it is blank or a quote is left open."""
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise Refused(f"the document command {command!r} cannot be split into words ({error}); close the quote") from None
    if not found or "\0" in command:
        raise Refused(f"the document command {command!r} names no program; give one that prints the document whose id is added to it")
    return found


def answer(command: list[str], docid: str, timeout: float, stop: threading.Event, limit: int = LIMIT) -> str:
    """What `command docid` prints, as text.

    It counts when the command has ended with 0, whatever it started has closed the output, and all of it is UTF-8,
    not blank and without NUL; else NoAnswer. After `timeout` seconds, or more than `limit` bytes, its whole group is killed.
    Refused where the program cannot be started at all, Stopped when `stop` is set meanwhile. An id is one argument, the last.
    """
    try:
        # The kernel counts this thread as the parent: it stays here until the child has ended.
        started = subprocess.Popen(
            [*command, docid.encode("utf-8")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=processes.die_with_parent,
        )
    except OSError as error:
        if error.errno in _PASSING:
            raise NoAnswer(f"the command could not be started ({error.strerror})") from None
        raise Refused(
            f"the document command cannot start {command[0]!r} ({error.strerror}); give a program that is there, or its whole path"
        ) from None
    with started.stdout, started.stderr:
        try:
            printed, told = _listen(started, timeout, stop, limit)
        finally:
            _end_group(started)
    if started.returncode:
        raise NoAnswer(f"the command {_ending(started.returncode)}{_last_line(told)}")
    return _text(printed, told)


def _listen(started: subprocess.Popen, timeout: float, stop: threading.Event, limit: int) -> tuple[bytearray, bytearray]:
    """All of stdout and the end of stderr, once the command has ended and nobody can add to its answer."""
    printed, told, deadline = bytearray(), bytearray(), time.monotonic() + timeout
    talking, status = True, None  # stdout is open; how the command ended
    with selectors.DefaultSelector() as selector:
        for pipe, into in ((started.stdout, printed), (started.stderr, told)):
            selector.register(pipe, selectors.EVENT_READ, into)
        while True:
            last_look = status is not None and (status or not talking)  # what it said before it ended is there by now
            for key, _ in selector.select(0 if last_look else _TICK if talking else _SHORT_TICK):
                chunk = os.read(key.fd, 1 << 16)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
                    talking = talking and key.fileobj is not started.stdout
            del told[:-_TAIL]
            if last_look:
                return printed, told
            if len(printed) > limit:
                raise NoAnswer(f"the command printed more than {limit:,} bytes")
            if stop.is_set():
                raise Stopped
            if status is None:
                status = _status(started.pid)
            if time.monotonic() > deadline:
                held = status is not None and ": it has ended, but what it started still holds its output"
                raise NoAnswer(f"the command timed out after {timeout:g} s{held or ''}")


def _status(pid: int) -> int | None:
    """How a child ended, None while it runs; it is left a zombie, so that its number, and its group's, are not given away."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if ended is None else ended.si_status


def _end_group(started: subprocess.Popen) -> None:
    """Kill what is left of the command and of all that it started in its group, and wait for the command itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def _ending(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    return f"was ended by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"


def _last_line(told: bytes) -> str:
    """The last line of stderr that is not blank, short, control characters escaped; '' where there is none."""
    lines = [line for line in told.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    line = "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in " ".join(lines[-1].split()))
    return f": {line if len(line) <= _SHOWN else line[:_SHOWN] + '...'}"


def _text(printed: bytes, told: bytes) -> str:
    try:
        text = printed.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoAnswer(f"the answer is no UTF-8 (byte {error.start})") from None
    if "\0" in text:
        raise NoAnswer(f"the answer holds a NUL (character {text.index(chr(0))})")
    if not text.replace("\ufeff", "").strip():
        raise NoAnswer(f"the answer is {'blank' if text else 'empty'}{_last_line(told)}")
    return text
