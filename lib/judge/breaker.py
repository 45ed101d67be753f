"""The circuit breaker: a run stops where too large a share of the last replies was bad.

Bad is a reply that gives no label, whether it was paid for, refused for what it asks, or a fault of the server. A 429 and calls
without a reply (timeouts, no connection) say nothing of that: they wait, and have rules of their own. What a run feeds in is the *first* call of each pair: later
ones, and later passes, ask again what failed, and would look bad in a run where one pair in a hundred fails for good.
"""

from collections import Counter, deque

from lib.judge import answers

UNHEARD = frozenset({"rate limited", "quota", "unavailable", "timeout", "connection"})
BAD = frozenset(answers.CLASSES) - UNHEARD - frozenset(answers.VALID)


class Breaker:
    """Trips once more than `share` of the last `calls` replies were bad; a share of 1 never trips."""

    def __init__(self, share: float, calls: int):
        if not 0 <= share <= 1 or calls < 1:
            raise ValueError(f"bad_share is {share!r} and bad_window {calls!r}; they must be a share of 0 to 1 and a whole number from 1")
        self.share, self.calls = share, calls
        self._last: deque[str] = deque(maxlen=calls)
        self._bad: Counter[str] = Counter()

    def saw(self, status: str) -> str | None:
        """Take in how a call ended; the sentence to stop with, or None."""
        if status in UNHEARD:
            return None
        if len(self._last) == self.calls and self._last[0] in BAD:
            self._bad[self._last[0]] -= 1
        self._last.append(status)
        self._bad[status] += status in BAD
        bad = self._bad.total()
        if len(self._last) < self.calls or bad <= self.share * self.calls:
            return None
        kind, count = max(self._bad.items(), key=lambda item: (item[1], item[0]))
        return (
            f"{bad:,} of the last {self.calls:,} first replies were bad ({count:,} times {kind}), more than bad_share {self.share:g}; "
            "mend the prompt, the model or the server, or raise bad_share"
        )
