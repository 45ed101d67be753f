"""How training goes, told on stderr every ten seconds and kept in `timing.csv`."""

import sys
import time
from pathlib import Path

import numpy as np

from lib import files
from lib.packed import flops

EVERY = 10.0  # seconds


class Progress:
    """Counts tokens and floating-point operations of the steps; only the first process prints and writes.

    The share of peak counts three forwards a step (one forward, two for the gradients), not what is computed again; it is
    left out for a backbone whose operations `lib.packed.flops` cannot count.
    """

    def __init__(self, arm: str, folder: Path, config: dict, steps: int, start: int, device: str, processes: int, tells: bool):
        self.arm, self.path, self.config, self.steps, self.start, self.tells = arm, folder / "timing.csv", config, steps, start, tells
        self.peak = flops.peak(device) * processes if _counts(config) else None
        self.began = self.told = time.monotonic()
        self.step = start
        self.flop, self.tokens = 0.0, 0

    def add(self, loss: float, lengths: np.ndarray) -> None:
        """Count a step by the tokens of its pairs, int[n]."""
        self.step += 1
        self.flop += 3 * float(flops.flop(self.config, lengths).sum()) if self.peak else 0.0
        self.tokens += int(np.sum(lengths))
        now = time.monotonic()
        if self.tells and now - self.told >= EVERY:
            self.told = now
            self._tell(loss, now - self.began)

    def _tell(self, loss: float, seconds: float) -> None:
        left = seconds / (self.step - self.start) * (self.steps - self.step)
        share = f"{self.flop / seconds / self.peak:.1%} of peak, " if self.peak else ""
        print(f"arm {self.arm}: step {self.step:,} of {self.steps:,}, loss {loss:.4f}, {self.tokens / seconds:,.0f} tokens/s, "
              f"{share}{left:,.0f} s left", file=sys.stderr, flush=True)

    def end(self, loss: float) -> None:
        """Tell the last line, and write seconds, tokens and share of peak from where this process started."""
        seconds = time.monotonic() - self.began
        if self.tells and self.step > self.start:
            self._tell(loss, seconds)
            names = ("from step", "to step", "seconds", "tokens", "tokens a second", "share of peak")
            values = (self.start, self.step, round(seconds, 3), self.tokens, round(self.tokens / seconds, 1),
                      round(self.flop / seconds / self.peak, 4) if self.peak else "")
            files.write_text(self.path, f"{','.join(names)}\n{','.join(map(str, values))}\n")


def _counts(config: dict) -> bool:
    try:
        flops.sizes(config)
    except ValueError:
        return False
    return True
