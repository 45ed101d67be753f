"""What an HTTP answer of a judge's server is worth: a judgment, or the class of a failure.

A pure function of status, headers and body, whatever brought them: the SDK, plain HTTP or a line of a batch file.
Checked in this order: type of the body, choices, finish_reason, refusal, content, JSON, contract. No failure becomes a
label. The key is taken out of a reply before anything reads it. A reply is judged whole, and kept to its first
LONGEST_REPLY characters, which `detail` then says.
"""

import email.utils
import functools
import json
import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from lib.judge import contract
from lib.judge.contract import ContractViolation, Judgment

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
LONGEST_BODY = 4 * 2**20  # the most bytes of an answer; of a longer one a driver brings a few more than these
LONGEST_REPLY = 100_000  # characters of a reply that are kept
_LONGEST_DETAIL, _LONGEST_ID = 300, 200
_SHORTEST_KEY = 8  # what is shorter is a placeholder, and may be a word of the reply
_QUOTE = 24  # characters of a text that make a message a quotation of it
_MOST_TOKENS = 2**31  # a count beyond is none: sums of such would wrap, and open a cap
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt]|[\s\\]")


class Asked(NamedTuple):
    """What a reply is read against: the task it has to name, the text that was sent, and the key with its variable's name."""

    task: str
    sent: str
    key: str
    key_variable: str


class Outcome(NamedTuple):
    """How a call ended; `stop` says why no further pair should be asked, `wait` what retry-after asked for in seconds.

    `http` is the status of the answer, None where none came. `unreached`: not even a connection was made.
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
    http: int | None = None
    unreached: bool = False

    @property
    def lost(self) -> bool:
        """No connection, or one that ended before its reply."""
        return self.http is None and self.status != "timeout"


def outcome(status: int, headers: Mapping[str, str], body: bytes, asked: Asked) -> Outcome:
    """The class of an answer with this HTTP status; header names are lower case, or the mapping takes any case."""
    try:
        found, fault = json.loads(body) if len(body) <= LONGEST_BODY else None, None
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, or nested without end
        found, fault = None, f"the body of {len(body):,} bytes is not JSON ({type(error).__name__})"
    if len(body) > LONGEST_BODY:
        fault = f"the body is longer than {LONGEST_BODY:,} bytes, the most that are read"
        found = {"message": fault}
    request_id = headers.get("x-request-id")
    if status != 200:
        got = _refused(status, headers, found, asked.key_variable)
    elif fault:
        got = Outcome(contract.NOT_JSON, detail=fault)
    else:
        got = _completed(found, asked)
    return clean(got._replace(http=status, request_id=request_id), asked)


def _completed(body: object, asked: Asked) -> Outcome:
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices:
        return Outcome("empty", detail="the body holds no choices")
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice["message"] if isinstance(choice.get("message"), dict) else {}
    usage = body["usage"] if isinstance(body.get("usage"), dict) else {}
    content, refusal, ended = message.get("content"), message.get("refusal"), choice.get("finish_reason")
    if isinstance(content, str):
        content = _without(asked.key, content)
    got = Outcome(
        "ok",
        reply=content if isinstance(content, str) else None,
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
    )
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
        judgment = contract.check(content, asked.task)
    except ContractViolation as violation:
        return got._replace(status=violation.kind, detail=violation.reason)
    return got._replace(status="ok" if judgment.score is not None else "unevaluable", judgment=judgment)


def _refused(status: int, headers: Mapping[str, str], body: object, key_variable: str) -> Outcome:
    told = body.get("error", body) if isinstance(body, dict) else {}
    told = told if isinstance(told, dict) else {"message": told}
    code, kind, said = told.get("code"), told.get("type"), told.get("message")
    codes, stop = {str(code), str(kind)}, None  # a server may put anything there
    detail = f"HTTP {status}: {said or code or kind or 'no message'}"
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
    return Outcome(name, detail=detail, wait=retry_after(headers), stop=stop)


def retry_after(headers: Mapping[str, str]) -> float | None:
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
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else None


@functools.lru_cache(maxsize=1)
def _spelt(key: str) -> re.Pattern:
    """The key as it is, and with any of its characters as a JSON escape."""
    return re.compile("".join(rf"(?:{re.escape(c)}|\\u(?i:{ord(c):04x})" + (rf"|\\{re.escape(c)})" if c in '"/\\' else ")") for c in key))


def _without(key: str, text: str) -> str:
    return _spelt(key).sub("[key]", text) if len(key) >= _SHORTEST_KEY else text


def _quotes(said: str, sent: str) -> bool:
    """Whether a message holds a piece of the text, as it is or as Python or JSON would spell it: `\\\\frac`, `\\n`, `\\u00e9`."""
    said = said.replace(contract.GUIDELINE, "")  # stands in every request, and in our own sentences
    return _holds(said, sent) or _holds(_bare(said), _bare(sent))


def _holds(said: str, sent: str) -> bool:
    return any(said[at : at + _QUOTE] in sent for at in range(len(said) - _QUOTE + 1))


def _bare(text: str) -> str:
    """Without white space and backslashes, so that every spelling of a text is the same."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", text)


def clean(outcome: Outcome, asked: Asked) -> Outcome:
    """No key in any text, and no text of the request in a message: servers like to quote both.

    Texts are cut last, since half a key is not found any more.
    """
    detail = _without(asked.key, outcome.detail)[:_LONGEST_DETAIL] if outcome.detail else None
    if detail and _quotes(detail, asked.sent):
        head = detail.partition(":")[0]
        detail = f"{outcome.status if _quotes(head, asked.sent) else head} (the message quotes the request and is left out)"[-120:]
    reply = outcome.reply
    if reply and len(reply) > LONGEST_REPLY:
        note = f"the reply of {len(reply):,} characters is kept to its first {LONGEST_REPLY:,}"
        detail, reply = f"{detail}; {note}" if detail else note, reply[:LONGEST_REPLY]
    request_id = _without(asked.key, outcome.request_id)[:_LONGEST_ID] if outcome.request_id else None
    return outcome._replace(detail=detail, reply=reply, request_id=request_id)
