"""One line on how a run of the judge stands: what is answered, the rate of late, what is spent, how long it may still take.

The time left is of the pass: the pairs that it has not come to, at the rate of the last minutes at which it came to pairs. Pairs
that are answered already go by quickly, so a resumed run says too little at its start, for as long as it passes over those.
"""

import time
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc

from lib import contracts
from lib.judge.turns import Config

_WINDOW = 120.0  # seconds that a rate is taken over


def pairs_in(config: Config, names: list[str]) -> int:
    """The LLM's pairs in the named parts of the set, before any is rendered."""
    sources = [Path(config.run) / "intents" / config.set / f"{name}.parquet" for name in names]
    return sum(pc.sum(pc.equal(contracts.read_part("intents", source, ["judge"])["judge"], "llm")).as_py() or 0 for source in sources)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 05 min`, `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


class Progress:
    """The course of a pass: `begin` it with the number of its pairs, `come_to` with how many of them it has come to."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self.total, self.seen = 0, 0
        self._marks: deque[tuple[float, int, int]] = deque([(clock(), 0, 0)])  # time, pairs seen, calls made

    def begin(self, total: int) -> None:
        self.total, self.seen = total, 0
        self._marks = deque([(self._clock(), 0, self._marks[-1][2])])

    def come_to(self, pairs: int) -> None:
        self.seen = pairs

    def line(self, calls: int, answered: int, cost: Decimal | None, currency: str) -> str:
        """`90 answered in 100 calls, 12 a second, 1.50 USD spent, about 12 min left`."""
        now = self._clock()
        while len(self._marks) > 1 and now - self._marks[1][0] >= _WINDOW:
            self._marks.popleft()
        then, seen, made = self._marks[0]
        self._marks.append((now, self.seen, calls))
        took = max(now - then, 1e-9)
        said = f"{answered:,} answered in {calls:,} calls, {(calls - made) / took:,.0f} a second"
        if cost is not None:
            said += f", {cost:,.2f} {currency} spent"
        if self.seen > seen and self.total:
            said += f", about {duration((self.total - self.seen) * took / (self.seen - seen))} left"
        return said
