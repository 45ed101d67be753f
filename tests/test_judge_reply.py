"""An HTTP answer alone decides its class: each check comes before the next, and no failure becomes a label."""

import json

import pytest
from judge_script import KEY, fields

from lib.judge import answers, reply
from lib.judge.reply import Asked

TASK = "0123456789abcdef"
GOOD = json.dumps(fields(2, TASK))
SENT = "The passage of this document says that seven is a prime number."


def outcome(status, body, headers=None):
    asked = Asked(TASK, SENT, KEY, "THE_KEY")
    return reply.outcome(status, headers or {}, body if isinstance(body, bytes) else json.dumps(body).encode(), asked)


def completion(usage=(11, 7), **changed):
    said = {"finish_reason": "stop", "content": GOOD, "refusal": None} | changed
    message = {name: said[name] for name in ("content", "refusal")}
    choice = {"message": message} | ({"finish_reason": said["finish_reason"]} if said["finish_reason"] is not ... else {})
    return {"choices": [choice], "usage": dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))}


# each is also all that a later check would find, so the order of the checks decides
IN_ORDER = [
    (b"<html>busy</html>", "not JSON"),
    (b"[" * 200_000, "not JSON"),
    ([], "empty"),
    ({"choices": []}, "empty"),
    (completion(finish_reason="length", refusal="no"), "truncated"),
    (completion(finish_reason="length", content=""), "truncated"),
    (completion(finish_reason="content_filter", refusal="no"), "content filter"),
    (completion(finish_reason="tool_calls", refusal="no"), "contract violation"),
    (completion(finish_reason=None), "contract violation"),
    (completion(finish_reason=...), "contract violation"),
    (completion(refusal="no", content=None), "refusal"),
    (completion(refusal="no"), "refusal"),
    (completion(content=None), "empty"),
    (completion(content=" \n\t"), "empty"),
    (completion(content=[{"type": "text", "text": GOOD}]), "contract violation"),
    (completion(content=f"```json\n{GOOD}\n```"), "not JSON"),
    (completion(content=json.dumps(fields(2, "f" * 16))), "contract violation"),
    (completion(content=json.dumps(fields(None, TASK))), "unevaluable"),
    (completion(), "ok"),
]


@pytest.mark.parametrize(("body", "status"), IN_ORDER, ids=[f"{at} {status}" for at, (_, status) in enumerate(IN_ORDER)])
def test_an_answer_is_checked_in_the_order_that_is_written_and_only_a_valid_one_has_a_judgment(body, status):
    found = outcome(200, body)
    assert found.status == status and (found.judgment is not None) == (status in answers.VALID) and found.stop is None and found.http == 200


# status, code, type -> class, and a word of the reason to stop the run
REFUSED = [
    (429, None, None, "rate limited", None),
    (429, "rate_limit_exceeded", "requests", "rate limited", None),
    (429, "insufficient_quota", "insufficient_quota", "quota", "quota"),
    (429, None, "insufficient_quota", "quota", "quota"),
    (429, "billing_hard_limit_reached", None, "quota", "quota"),
    (500, "insufficient_quota", None, "server error", None),
    (408, None, None, "timeout", None),
    (413, None, None, "too long", None),
    (400, "context_length_exceeded", None, "too long", None),
    (400, "string_above_max_length", "invalid_request_error", "too long", None),
    (400, "content_policy_violation", None, "content filter", None),
    (403, "content_filter", None, "content filter", None),
    (401, None, None, "unavailable", "set THE_KEY to a valid one"),
    (400, "invalid_api_key", None, "unavailable", "set THE_KEY to a valid one"),
    (402, None, None, "unavailable", "wants to be paid"),
    (403, None, None, "unavailable", "forbids"),
    (404, "model_not_found", None, "unavailable", "model"),
    (400, "model_not_found", None, "unavailable", "model"),
    (307, None, None, "unavailable", "HTTP 307"),
    (204, None, None, "unavailable", "HTTP 204"),
    *((status, None, None, "unavailable", f"HTTP {status}") for status in (405, 407, 410, 426)),
    (400, None, None, "rejected", None),
    (422, None, None, "rejected", None),
    *((status, None, None, "server error", None) for status in (500, 502, 503, 504, 529)),
]


@pytest.mark.parametrize(("status", "code", "kind", "name", "stop"), REFUSED)
def test_a_refusal_has_the_class_of_its_status_and_code_and_stops_the_run_where_no_pair_can_be_asked(status, code, kind, name, stop):
    for body in ({"error": {"message": "no", "code": code, "type": kind}}, {"message": "no", "code": code, "type": kind}):
        found = outcome(status, body)
        assert (found.status, found.judgment, found.http) == (name, None, status) and found.detail == f"HTTP {status}: no"
        assert (found.stop is None) == (stop is None) and (stop or "") in (found.stop or "")


@pytest.mark.parametrize("body", [b"", b"<html>", b"null", b"[1]", b'"no"', b'{"error": "no"}', b'{"error": {"code": ["a"], "message": {"b": 1}}}'])
def test_a_refusal_of_any_body_has_a_class_and_a_sentence(body):
    found = outcome(502, body)
    assert found.status == "server error" and found.detail.startswith("HTTP 502: ") and found.reply is None


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"retry-after-ms": "250"}, 0.25), ({"retry-after-ms": "250", "retry-after": "7"}, 0.25), ({"retry-after": "2.5"}, 2.5), ({"retry-after": "0"}, 0.0),
     ({"retry-after-ms": "-1"}, None), ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, None)],
)  # fmt: skip
def test_the_wait_is_in_seconds_and_never_negative(headers, wait):
    assert outcome(429, {}, headers).wait == wait


def test_tokens_are_whole_numbers_from_0_or_unknown():
    found = outcome(200, completion((11, 7)))
    assert (found.input_tokens, found.output_tokens) == (11, 7)
    for odd in (True, -1, 2.0, "7", None, 2**63):
        assert outcome(200, completion((odd, odd)))[4:6] == (None, None)


def test_a_message_that_quotes_24_characters_of_the_request_anywhere_is_left_out():
    for quoted, kept in ((SENT[-24:], False), (SENT[:24], False), (SENT[-23:], True)):
        for message in (f"It says: {quoted}", f"{quoted} it says", quoted):
            assert (quoted in outcome(500, {"error": {"message": message}}).detail) == kept
