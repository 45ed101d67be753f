"""What the attempts say to the intents of one part: a valid reply, a gap with its class, or withdrawn.

A pure function of intents, attempts, texts and judge. Keys are made anew from today's prompt,
schema, model and parameters, so another prompt finds no answers here, and the former one finds its own.
"""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lib.judge import pairs, store
from lib.judge.pairs import Pair, Pairs

VALID = ("ok", "unevaluable")
FINAL = frozenset({"rejected", "too long"})  # asking the same again in this pass is of no use
WITHDRAWN, UNASKED = "withdrawn", "budget stop"
# every class an attempt can end in; a gap has one of those after the first two
CLASSES = (
    *VALID, "contract violation", "not JSON", "truncated", "refusal", "content filter", "empty", "rate limited", "quota",
    "server error", "timeout", "connection", "too long", "rejected",
)  # fmt: skip

_FROM_REPLY = ("score", "query_evaluable", "prompt_sha256", "model")
SCHEMA = pa.schema(
    [
        ("query", pa.int32()), ("doc", pa.int32()), ("version", pa.string()), ("stage", pa.string()), ("round", pa.int16()),
        ("reason", pa.string()), ("rank", pa.int16()), ("key", pa.string()), ("answer", pa.string()), ("score", pa.int8()),
        ("query_evaluable", pa.bool_()), ("prompt_sha256", pa.string()), ("model", pa.string()),
    ]
)  # fmt: skip


class Call(NamedTuple):
    """What is kept of an attempt: the fields of the reply only where it is valid."""

    version: str
    in_pass: int
    status: str
    row: dict | None


History = dict[str, list[Call]]


def history(run: str | Path, part: str, version: str) -> History:
    """The calls of a part by key, oldest set first, in the sets that may answer intents of this version."""
    found: History = defaultdict(list)
    for name in store.sets_up_to(version):
        for row in store.read(store.path(run, name, part)):
            kept = {field: row[field] for field in _FROM_REPLY} if row["status"] in VALID else None
            found[row["key"]].append(Call(row["version"], row["pass"], row["status"], kept))
    return found


def reply(calls: list[Call]) -> Call | None:
    """The first valid reply of the newest version that has one, or None.

    So a pair of v1 keeps its own reply when a probe of the same pair is judged after it.
    """
    valid = [call for call in calls if call.row is not None]
    return next((call for call in valid if call.version == valid[-1].version), None)


def due(calls: list[Call], version: str, passes: int, budget: int) -> tuple[int, int] | None:
    """The pass and the number of the call (both from 1) that a pair is owed next; None where it is answered or spent.

    The budget is per version and pass: a later pass asks again what the one before left as a gap.
    """
    if reply(calls):
        return None
    for number in range(1, passes + 1):
        mine = [call for call in calls if (call.version, call.in_pass) == (version, number)]
        if len(mine) < budget and not (mine and mine[-1].status in FINAL):
            return number, len(mine) + 1
    return None


def _answer(intent: dict, pair: Pair, calls: list[Call]) -> dict:
    found = reply(calls)
    if intent["withdrawn"]:
        answer, found = WITHDRAWN, None
    elif found:
        answer = found.status
    else:
        answer = calls[-1].status if calls else UNASKED
    said = found.row if found else dict.fromkeys(_FROM_REPLY)
    return {name: intent[name] for name in SCHEMA.names if name in intent} | {"key": pair.key, "answer": answer} | said


def answers(run: str | Path, intents_set: str, part: str, render: Pairs) -> pa.Table:
    """One row an LLM intent, in the order of the intents.

    `answer` is ok, unevaluable, withdrawn, or the class of the gap: that of the last call, `budget stop`
    where there was none. score, query_evaluable, prompt_sha256 and model are null without a valid reply.
    """
    rows = pairs.intents(run, intents_set, part)
    calls = history(run, part, store.SETS[intents_set])
    rendered = render.render(part, rows)
    found = [_answer(intent, pair, calls.get(pair.key, [])) for intent, pair in zip(rows.to_pylist(), rendered, strict=True)]
    return pa.Table.from_pylist(found, schema=SCHEMA)
