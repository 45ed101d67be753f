"""What follows a call, by the class that it ended in: one rule a class, and how long to wait before the next try.

All tries of a pair in one pass are of one budget, whatever they ended in, but for those that stop the run.
"""

import hashlib
from enum import Enum

from lib.judge import answers


class Rule(Enum):
    """What comes next for the pair."""

    FINAL = "answered: the pair is not asked again"
    AT_ONCE = "the same again at once: the next reply may be better"
    WAIT = "the same again after a growing wait: the server is busy, broken or away"
    LATER = "not in this pass: the same would come back"
    STOP = "no further pair is asked; the call is not of the pair's budget"


RULES = {
    **dict.fromkeys(answers.VALID, Rule.FINAL),
    **dict.fromkeys(("contract violation", "not JSON", "truncated", "refusal", "content filter", "empty"), Rule.AT_ONCE),
    **dict.fromkeys(("rate limited", "server error", "timeout", "connection"), Rule.WAIT),
    **dict.fromkeys(sorted(answers.FINAL), Rule.LATER),
    **dict.fromkeys(sorted(answers.UNCOUNTED), Rule.STOP),
}


def seconds(key: str, doublings: int, asked_for: float | None, backoff: float, longest: float) -> float:
    """The wait before the next try: what the server asked for, or `backoff` doubled so often; at most `longest`.

    Half of the latter is drawn from the pair's key, so that pairs that failed together do not come back together.
    """
    if asked_for is not None:
        return min(asked_for, longest)
    drawn = hashlib.sha256(f"{key} {doublings}".encode()).digest()[0] / 255
    return min(longest, backoff * 2.0 ** min(doublings, 60)) * (0.5 + 0.5 * drawn)
