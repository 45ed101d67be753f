"""The output and error file of a batch, read into one outcome a request; no line of them is taken on trust.

A line that lacks, or that cannot be read, leaves a gap: `timeout`, as for an expired one. An id that was not asked for
is reported. The same answer twice counts once; different answers for one id are no answer.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from lib.judge import contract, reply
from lib.judge.reply import Asked, Outcome

_NEVER = {"batch_expired", "batch_cancelled"}  # the request was not executed


class Lines(NamedTuple):
    """What the files said: the lines by custom id, the ids nobody asked for, and how many lines could not be read."""

    said: dict[str, list[dict]]
    unknown: list[str]
    unreadable: int


def _each(source: Path) -> Iterator[bytes]:
    """The lines of a file; of one that is longer than an answer may be its beginning, which is no JSON."""
    with open(source, "rb") as file:
        while text := file.readline(reply.LONGEST_BODY):
            yield text
            while text and not text.endswith(b"\n"):
                text = file.readline(reply.LONGEST_BODY)


def read(sources: Iterable[Path], asked: Iterable[str]) -> Lines:
    """Read output and error file; those that are not there hold nothing."""
    found: dict[str, list[dict]] = {key: [] for key in asked}
    unknown, unreadable = set(), 0
    for source in sources:
        if not source.exists():
            continue
        for text in _each(source):
            try:
                line = json.loads(text)
                name = line["custom_id"]
            except (ValueError, RecursionError, TypeError, KeyError):
                unreadable += bool(text.strip())
                continue
            if isinstance(name, str) and name in found:
                found[name].append(line)
            else:
                unknown.add(str(name)[:100])
    return Lines(found, sorted(unknown), unreadable)


def outcome(lines: list[dict], asked: Asked, status: str) -> tuple[Outcome, bool, bool]:
    """What the lines of one request are worth at the end of a batch with this status; whether it was repeated, and whether it differs."""
    if not lines:
        return reply.clean(Outcome("timeout", detail=f"the {status} batch has no line for this request"), asked), False, False
    found = [_one(line, asked) for line in lines]
    if len({(one.status, one.http, one.reply) for one in found}) == 1:
        return found[0], len(found) > 1, False
    detail = f"the batch has {len(found)} different answers for this request: {', '.join(one.status for one in found)}"
    spent = {name: _sum([getattr(one, name) for one in found]) for name in ("input_tokens", "output_tokens")}
    return Outcome(contract.VIOLATION, detail=detail[:300], stop=next((one.stop for one in found if one.stop), None), http=200, **spent), False, True


def _sum(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(counts)


def _one(line: dict, asked: Asked) -> Outcome:
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and type(response.get("status_code")) is int and not error:
        request_id = response.get("request_id")
        headers = {"x-request-id": request_id} if isinstance(request_id, str) else {}
        return reply.outcome(response["status_code"], headers, json.dumps(response.get("body")).encode(), asked)
    told = error if isinstance(error, dict) else {}
    code, said = str(told.get("code")), told.get("message")
    if code in _NEVER:
        return reply.clean(Outcome("timeout", detail=f"{code}: {said}", input_tokens=0, output_tokens=0), asked)
    body = {"error": {"code": told.get("code"), "message": said if isinstance(said, str) else "a line without a response"}}
    return reply.outcome(500, {}, json.dumps(body).encode(), asked)._replace(http=None)
