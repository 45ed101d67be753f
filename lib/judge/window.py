"""How many calls are in flight: at most so many, fewer while the server says that it is busy.

As in TCP (RFC 5681): a busy answer takes the window to 0.7 of its size, once for all calls that were sent before it was
cut, and to one call where none was served since the last cut. A served call adds one below the size at which the window
broke down, and above it 4 / size. The wait that comes with a busy answer holds every new call.
"""

import asyncio
from collections import deque

_CUT, _GROWTH = 0.7, 4.0


class Window:
    """A gate for at most `most` calls at once, first come, first served; a call holds it by `async with window`."""

    def __init__(self, most: int):
        self.most, self.size, self.slow_below = most, float(most), 1.0
        self.cuts = self.flying = 0
        self.unserved = 0  # cuts since a call was served
        self._open_from, self._ended = 0.0, False
        self._waiting: deque[asyncio.Future] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> int:
        """Wait for a place; the number of cuts so far, which `busy` wants back."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                await self.__aexit__()
            raise
        return self.cuts

    async def __aexit__(self, *_) -> None:
        self.flying -= 1
        self._admit()

    def _admit(self) -> None:
        loop = asyncio.get_running_loop()
        held = self._open_from - loop.time()
        if held > 0 and not self._ended:
            if self._waiting and self._timer is None:
                self._timer = loop.call_later(held, self._reopen)
            return
        while self._waiting and (self._ended or self.flying < int(self.size)):
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self.flying += 1

    def _reopen(self) -> None:
        self._timer = None
        self._admit()

    def served(self) -> None:
        self.unserved = 0
        self.size = min(self.most, self.size + (1.0 if self.size < self.slow_below else _GROWTH / self.size))
        self._admit()

    def busy(self, cuts: int, wait: float = 0.0) -> None:
        """A call sent when there had been `cuts` cuts was told that the server is busy, and to come back in `wait` seconds."""
        if cuts == self.cuts:
            self.cuts += 1
            self.unserved += 1
            if self.unserved == 1:
                self.size = max(1.0, self.size * _CUT)
            elif self.size > 1:
                self.slow_below, self.size = self.size / 2, 1.0
        self._open_from = max(self._open_from, asyncio.get_running_loop().time() + wait)

    def end(self) -> None:
        """Let everybody in, at once: whoever waits looks whether to go on."""
        self._ended = True
        self._admit()
