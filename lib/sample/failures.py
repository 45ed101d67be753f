"""Which calls of a pair fail, and how: never what a success says."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lib import paths
from lib.sample.personality import pick, uniform

KINDS = ("rate limit", "server error", "cut body", "refusal", "violation", "length")
# further kinds, for a server that is asked for them; quota and no access end a run
MORE = (
    "rate limit without a wait", "quota", "no access", "reset", "hang", "html", "empty", "content filter", "cut JSON", "wrong task",
    "contradiction", "fences", "too long", "rejected",
)  # fmt: skip
ALL = (*KINDS, *MORE)
RESTART = "restart"  # by script only: the server ends without an answer and starts again at its port
MOST = 2  # calls that a failing pair fails before it succeeds; a client that asks three times gets its answer

_LINE = re.compile(r"([0-9a-f]{32}) ([1-9][0-9]*)", re.ASCII)
_STEP = re.compile(r"(.+):([1-9][0-9]*)(?:-([1-9][0-9]*))?", re.ASCII)


class Step(NamedTuple):
    """The calls `first` to `last` of the server, counted from 1 over all pairs and restarts, fail in this way."""

    kind: str
    first: int
    last: int


def script(text: str) -> list[Step]:
    """The steps of a text such as `rate limit:10-29,hang:40,restart:60`; ValueError where one is not of that form."""
    steps = []
    for word in filter(None, text.split(",")):
        found = _STEP.fullmatch(word)
        if not found or found[1] not in (*ALL, RESTART) or int(found[3] or found[2]) < int(found[2]):
            raise ValueError(f"{word!r} is no step of a script; it is KIND:CALL or KIND:FIRST-LAST, the kinds are {', '.join((*ALL, RESTART))}")
        steps.append(Step(found[1], int(found[2]), int(found[3] or found[2])))
    return steps


def chosen(text: str) -> tuple[str, ...]:
    """The kinds of a text such as `hang,empty`; ValueError where one is unknown."""
    kinds = tuple(text.split(","))
    strange = [name for name in kinds if name not in ALL]
    if strange:
        raise ValueError(f"{strange[0]!r} is no kind of failure; the kinds are {', '.join(ALL)}")
    return kinds


def scripted(steps: Sequence[Step], number: int) -> str | None:
    """The kind of the first step that holds for call `number` of the server, or None."""
    return next((step.kind for step in steps if step.first <= number <= step.last), None)


def kind(pair: str, call: int, failures: float, lost: float, kinds: Sequence[str] = KINDS) -> str | None:
    """How call number `call` (from 1) of the pair fails, or None where it succeeds.

    A share `lost` of the pairs fails at every call and always in the same way. A share `failures` fails its first one
    or two calls, each in a way of its own.
    """
    if uniform(pair, "lost") < lost:
        return pick(pair, "lost kind", kinds)
    if uniform(pair, "fails") < failures and call <= pick(pair, "failing calls", range(1, MOST + 1)):
        return pick(pair, f"kind {call}", kinds)
    return None


def violation(pair: str, reply: dict, way: str | None = None) -> str:
    """The reply as a text that breaks the contract in one of six ways: the one named, or always the same for a pair."""
    whole = json.dumps(reply, ensure_ascii=False)
    spoilt = {
        "score out of range": {"score": 3},
        "score as text": {"score": str(reply["score"])},
        "another task": {"task_id": reply["task_id"][::-1] if reply["task_id"] != reply["task_id"][::-1] else "0" * 16},
        "codes of another score": {"reason_codes": ["wrong_problem" if reply["score"] == 2 else "full_solution"]},
    }
    way = way or pick(pair, "violation", ("fenced", "missing field", *spoilt))
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
        self.total = 0  # calls of all pairs, those to former servers included
        for number, line in enumerate(whole.decode(errors="replace").splitlines(), start=1):
            found = _LINE.fullmatch(line)
            if found is None:
                raise ValueError(f"{paths.shown(self.path)}:{number}: {line!r} is no call of a pair; remove the file to count from 1 again")
            self._seen[found[1]] = max(int(found[2]), self._seen.get(found[1], 0))
            self.total += 1

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
        self.total += 1
        return call
