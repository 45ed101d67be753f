"""One call to a chat-completions server, and the class that it ends in.

Checked in this order: type of the body, choices, finish_reason, refusal, content, JSON, contract.
No failure becomes a label. The key is taken out of a reply before anything reads it. A reply is judged
whole, and kept to its first LONGEST_REPLY characters, which `detail` then says.
"""

import asyncio
import email.utils
import functools
import re
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp
import openai
from openai.types.chat import ChatCompletion

from lib.judge import contract
from lib.judge.contract import ContractViolation, Judgment
from lib.judge.pairs import Pair
from lib.judge.prompt import Judge

RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "judgment", "strict": True, "schema": contract.flat_schema()},
}
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_TOO_LONG = {"context_length_exceeded", "string_above_max_length"}
_FILTERED = {"content_filter", "content_policy_violation"}
_NO_SERVICE = {"invalid_api_key", "model_not_found"}  # said with whatever status, they hold for every pair
_STOPS = {
    401: "the server refuses the key; set {key} to a valid one",
    402: "the server wants to be paid; add credit to the account of {key}",
    403: "the server forbids this key to use the model; set {key} to one that may",
    404: "the server knows no such path or model; check the url and the model",
}
_ELSEWHERE = {405, 407, 410, 426}  # like a redirect: no pair can be asked there
_CONNECT_SECONDS = 20.0
LONGEST_REPLY = 100_000  # characters of a reply that are kept
_LONGEST_DETAIL, _LONGEST_ID = 300, 200
_SHORTEST_KEY = 8  # what is shorter is a placeholder, and may be a word of the reply
_QUOTE = 24  # characters of a text that make a message a quotation of it


class Outcome(NamedTuple):
    """How a call ended; `stop` says why no further pair should be asked, `wait` what retry-after asked for in seconds.

    `replied`: an HTTP reply came. `unreached`: not even a connection did.
    """

    status: str
    judgment: Judgment | None = None
    reply: str | None = None
    detail: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    request_id: str | None = None
    latency: float = 0.0
    wait: float | None = None
    stop: str | None = None
    replied: bool = True
    unreached: bool = False


def connect(base_url: str, key: str, concurrency: int, timeout: float) -> openai.AsyncOpenAI:
    """A client that never retries, never follows a redirect with the key, and reaches this machine without a proxy."""
    local = urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1")
    limits = openai.DEFAULT_CONNECTION_LIMITS.__class__(max_connections=concurrency, max_keepalive_connections=concurrency)
    http = openai.DefaultAioHttpClient(limits=limits, timeout=timeout, follow_redirects=False, trust_env=not local)
    limit = openai.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout / 2))  # so that `call` is not the first to give up
    return openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0, timeout=limit, http_client=http)


async def call(client: openai.AsyncOpenAI, by: Judge, pair: Pair, timeout: float, key_variable: str) -> Outcome:
    """Ask once and classify; only cancellation and faults of this program are raised."""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(timeout):
            # in extra_body, because the SDK walks its type annotations through every typed argument: a quarter of a call's CPU
            body = {"messages": pair.messages, "response_format": RESPONSE_FORMAT, **by.parameters}
            completion = await client.chat.completions.create(model=by.model, messages=[], extra_body=body)
        outcome = _completed(completion, pair.task, client.api_key)
    except openai.APIStatusError as error:
        outcome = _refused(error, key_variable)
    except (openai.APIConnectionError, aiohttp.ClientError, TimeoutError) as error:
        unreached = any(isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) for cause in _causes(error))
        status = "timeout" if not unreached and _timed_out(error) else "connection"
        outcome = Outcome(status, detail=f"{type(error).__name__}: {error}", replied=False, unreached=unreached)
    except (ValueError, RecursionError) as error:  # the body of a 200 says it is JSON and is not, or is nested without end
        outcome = Outcome("not JSON", detail=f"the body is not JSON: {type(error).__name__}")
    outcome = outcome._replace(latency=round(time.perf_counter() - started, 4))
    return _clean(outcome, client.api_key, pair)


def _completed(completion: object, task: str, key: str) -> Outcome:
    if isinstance(completion, str):
        return Outcome("not JSON", detail=f"the body of {len(completion):,} characters is not JSON")
    if not isinstance(completion, ChatCompletion) or not isinstance(completion.choices, list) or not completion.choices:
        return Outcome("empty", detail="the body holds no choices")
    choice, usage = completion.choices[0], completion.usage
    message = getattr(choice, "message", None)
    content, refusal = getattr(message, "content", None), getattr(message, "refusal", None)
    if isinstance(content, str):
        content = _without(key, content)
    got = Outcome(
        "ok",
        reply=content if isinstance(content, str) else None,
        input_tokens=_count(getattr(usage, "prompt_tokens", None)),
        output_tokens=_count(getattr(usage, "completion_tokens", None)),
        request_id=completion._request_id,
    )
    ended = getattr(choice, "finish_reason", None)
    if ended == "length":
        return got._replace(status="truncated", detail="the reply reached the token limit")
    if ended == "content_filter":
        return got._replace(status="content filter", detail="the reply was filtered")
    if ended != "stop":
        return got._replace(status=contract.VIOLATION, detail=f"finish_reason is {ended!r}; it must be 'stop'")
    if refusal:
        return got._replace(status="refusal", detail=str(refusal))
    if content is None or (isinstance(content, str) and not content.strip()):
        return got._replace(status="empty", detail="the reply has no content")
    if not isinstance(content, str):
        return got._replace(status=contract.VIOLATION, detail=f"the content is a {type(content).__name__}, not text")
    try:
        judgment = contract.check(content, task)
    except ContractViolation as violation:
        return got._replace(status=violation.kind, detail=violation.reason)
    return got._replace(status="ok" if judgment.score is not None else "unevaluable", judgment=judgment)


def _refused(error: openai.APIStatusError, key_variable: str) -> Outcome:
    status, codes, stop = error.status_code, {str(error.code), str(error.type)}, None  # a server may put anything there
    said = error.body.get("message") if isinstance(error.body, dict) else None
    told = f"HTTP {status}: {said or error.code or error.type or 'no message'}"
    if status == 429 and codes & _QUOTA:
        name, stop = "quota", "the quota of the key is used up; raise it"
    elif status == 429:
        name = "rate limited"
    elif status == 408:
        name = "timeout"
    elif status == 413 or codes & _TOO_LONG:
        name = "too long"
    elif codes & _FILTERED:
        name = "content filter"
    elif status in _STOPS or codes & _NO_SERVICE:
        name, stop = "unavailable", _STOPS[status if status in _STOPS else 401 if "invalid_api_key" in codes else 404].format(key=key_variable)
    elif status < 400 or status in _ELSEWHERE:
        name, stop = "unavailable", f"the server answers with HTTP {status}, it judges nothing at this url; check the url"
    else:
        name = "server error" if status >= 500 else "rejected"
    return Outcome(name, detail=told, request_id=error.request_id, wait=_retry_after(error.response.headers), stop=stop)


def _timed_out(error: BaseException) -> bool:
    # the SDK's aiohttp transport calls a dropped connection a ConnectTimeout; the first cause tells them apart
    chain = list(_causes(error))
    if any(isinstance(cause, TimeoutError) for cause in chain):
        return True
    return isinstance(error, openai.APITimeoutError) and not any(isinstance(cause, aiohttp.ClientError) for cause in chain)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _retry_after(headers) -> float | None:
    """Seconds, from `retry-after-ms`, or `retry-after` as a number or a date; None where that cannot be read."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif re.fullmatch(r"[0-9.]+", headers.get("retry-after", "")):
            seconds = float(headers["retry-after"])
        else:
            seconds = email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    except Exception:  # of a dozen kinds: the date parser is given whatever a server sends
        return None
    return seconds if seconds >= 0 else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None


@functools.lru_cache(maxsize=1)
def _spelt(key: str) -> re.Pattern:
    """The key as it is, and with any of its characters as a JSON escape."""
    return re.compile("".join(rf"(?:{re.escape(c)}|\\u(?i:{ord(c):04x})" + (rf"|\\{re.escape(c)})" if c in '"/\\' else ")") for c in key))


def _without(key: str, text: str) -> str:
    return _spelt(key).sub("[key]", text) if len(key) >= _SHORTEST_KEY else text


def _clean(outcome: Outcome, key: str, pair: Pair) -> Outcome:
    """No key in any text, and no text of the request in a message: servers like to quote both.

    Texts are cut last, since half a key is not found any more.
    """
    detail = _without(key, outcome.detail)[:_LONGEST_DETAIL] if outcome.detail else None
    sent = pair.messages[-1]["content"]
    if detail and any(detail[at : at + _QUOTE] in sent for at in range(len(detail) - _QUOTE + 1)):
        detail = f"{detail.partition(':')[0]} (the message quotes the request and is left out)"[:120]
    reply = outcome.reply
    if reply and len(reply) > LONGEST_REPLY:
        note = f"the reply of {len(reply):,} characters is kept to its first {LONGEST_REPLY:,}"
        detail, reply = f"{detail}; {note}" if detail else note, reply[:LONGEST_REPLY]
    request_id = _without(key, outcome.request_id)[:_LONGEST_ID] if outcome.request_id else None
    return outcome._replace(detail=detail, reply=reply, request_id=request_id)
