"""What the reader of a pipe has taken: a line in the pipe's own memory was shown to nobody."""

import array
import fcntl
import os
import select
import stat
import termios
import time
from typing import IO

_PATIENT = 100  # looks without a pause, which a reader that waits for the line is faster than
_PAUSE = 0.002  # seconds between two looks at one that does not


def wait(stream: IO[str]) -> None:
    """Return when the other end of a pipe has taken all of it, at once for what is no pipe; BrokenPipeError where it has gone before.

    `head -3` takes what is there and leaves, and what was printed after that fits into the pipe without an error.
    A pager that has not come to the end keeps this waiting, as a long text would that the pipe cannot hold.
    """
    try:
        handle = stream.fileno()
    except (OSError, AttributeError, ValueError):  # a notebook's or a test's
        return
    if not stat.S_ISFIFO(os.fstat(handle).st_mode):
        return
    left, looks = array.array("i", [1]), 0
    poll = select.poll()
    poll.register(handle, 0)  # an error is told without being asked for
    while True:
        has_gone = poll.poll(0)  # asked first: what is left then is left for good
        fcntl.ioctl(handle, termios.FIONREAD, left)
        if not left[0]:
            return
        if has_gone:
            raise BrokenPipeError
        looks += 1
        if looks < _PATIENT:
            os.sched_yield()
        else:
            time.sleep(_PAUSE)
