"""Which calls of a pair fail, and how: never what a success says."""

import json
import os
import re
from pathlib import Path

from lib import paths
from lib.sample.personality import pick, uniform

KINDS = ("rate limit", "server error", "cut body", "refusal", "violation", "length")
MOST = 2  # calls that a failing pair fails before it succeeds; a client that asks three times gets its answer

_LINE = re.compile(r"([0-9a-f]{32}) ([1-9][0-9]*)", re.ASCII)


def kind(pair: str, call: int, failures: float, lost: float) -> str | None:
    """How call number `call` (from 1) of the pair fails, or None where it succeeds.

    A share `lost` of the pairs fails at every call and always in the same way. A share `failures` fails its first one
    or two calls, each in a way of its own.
    """
    if uniform(pair, "lost") < lost:
        return pick(pair, "lost kind", KINDS)
    if uniform(pair, "fails") < failures and call <= pick(pair, "failing calls", range(1, MOST + 1)):
        return pick(pair, f"kind {call}", KINDS)
    return None


def violation(pair: str, reply: dict) -> str:
    """The reply as a text that breaks the contract in one of six ways, always the same for a pair."""
    whole = json.dumps(reply, ensure_ascii=False)
    spoilt = {
        "score out of range": {"score": 3},
        "score as text": {"score": str(reply["score"])},
        "another task": {"task_id": reply["task_id"][::-1] if reply["task_id"] != reply["task_id"][::-1] else "0" * 16},
        "codes of another score": {"reason_codes": ["wrong_problem" if reply["score"] == 2 else "full_solution"]},
    }
    way = pick(pair, "violation", ("fenced", "missing field", *spoilt))
    if way == "fenced":
        return f"```json\n{whole}\n```"
    if way == "missing field":
        missing = pick(pair, "missing", list(reply))
        return json.dumps({name: value for name, value in reply.items() if name != missing}, ensure_ascii=False)
    return json.dumps(reply | spoilt[way], ensure_ascii=False)


class Calls:
    """How often each pair was asked, kept in a file of lines `PAIR NUMBER` so that a new server goes on counting.

    The line is written before the call is answered. A last line without its end was never answered and is cut off.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        written = self.path.read_bytes()
        whole = written[: written.rfind(b"\n") + 1]
        os.ftruncate(self._file, len(whole))
        self._seen: dict[str, int] = {}
        for number, line in enumerate(whole.decode(errors="replace").splitlines(), start=1):
            found = _LINE.fullmatch(line)
            if found is None:
                raise ValueError(f"{paths.shown(self.path)}:{number}: {line!r} is no call of a pair; remove the file to count from 1 again")
            self._seen[found[1]] = max(int(found[2]), self._seen.get(found[1], 0))

    def next(self, pair: str) -> int:
        """Count one more call of the pair and give its number, from 1. OSError where it cannot be written down."""
        call = self._seen.get(pair, 0) + 1
        line = f"{pair} {call}\n".encode()
        try:
            while line:  # a full disk takes a part, then says why it takes no more
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise OSError(error.errno, f"{paths.shown(self.path)} was not written ({error.strerror}); make room and run again") from error
        self._seen[pair] = call
        return call
