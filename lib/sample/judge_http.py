"""A planted judge behind the wire form of OpenAI Chat Completions: requests, completions, failures, errors.

Files and batches (`lib.sample.batch_http`) are served beside, from the folder `.batches` beside the file of calls.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence

from aiohttp import web

from lib.sample import failures, gullible, personality, received
from lib.sample.batch_http import Batches
from lib.sample.received import Planted, Unknown, slots

_BODY_LIMIT = 64 * 2**20  # bytes of a request: a document of 100,000 characters fits many times


class JudgeServer:
    """One personality over one planted folder; `failing` and `lost` are shares of the pairs, `kinds` the ways in which they fail.

    An attack appended to a planted document is known, and moves nothing unless the judge is `gullible`; the pair with
    it is counted, and fails, as a pair of its own.
    """

    def __init__(
        self,
        planted: Planted,
        name: str,
        seed: int,
        failing: float,
        lost: float,
        calls: failures.Calls,
        kinds: Sequence[str] = failures.KINDS,
        script: Sequence[failures.Step] = (),
        gullible: bool = False,
    ):
        self._planted, self._name, self._seed = planted, name, seed
        self._failing, self._lost, self._calls = failing, lost, calls
        self._kinds, self._script, self._gullible = kinds, script, gullible
        self._attacks = received.attacks()
        self._answers: Counter[str] = Counter()
        self._ending = asyncio.Event()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_BODY_LIMIT)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/stats", self._stats)
        app.on_shutdown.append(self._end)
        Batches(self._calls.path.with_suffix(".batches")).add_to(app)
        return app

    async def _end(self, app: web.Application) -> None:
        self._ending.set()  # calls that hang let the server end

    async def _stats(self, request: web.Request) -> web.Response:
        """Answers by kind, their sum, and the requests with a text that was never planted."""
        answers = dict(sorted(self._answers.items()))
        return web.json_response({"calls": sum(answers.values()), "unknown_texts": answers.get("unknown text", 0), "answers": answers})

    async def _models(self, request: web.Request) -> web.Response:
        if not _has_key(request):
            return self._refuse(401, _NO_KEY, "invalid_api_key", "no key")
        model = {"id": f"planted-{self._name}", "object": "model", "created": 0, "owned_by": "qrelbook"}
        return web.json_response({"object": "list", "data": [model]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if not _has_key(request):
            return self._refuse(401, _NO_KEY, "invalid_api_key", "no key")
        try:
            asked = json.loads(await request.read())
            message = _user_message(asked)
        except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, nested without end, or not the form of a request
            return self._refuse(400, str(error), "invalid_request", "malformed")
        found = slots(message, marked=not self._gullible)
        if found is None:
            return self._refuse(400, "the user message lacks the task id or the two fences of the judge's prompt", "no_fences", "malformed")
        try:
            alone = received.alone(found.document, self._attacks)
            truth = self._planted.truth(found.query, alone)
        except Unknown as error:
            return self._refuse(400, str(error), "unknown_text", "unknown text")

        pair = personality.pair_hash(self._seed, self._name, found.query, found.document)
        try:
            call = self._calls.next(pair)
        except OSError as error:  # an answer that is not counted could change what a resumed run is told
            print(f"lib.sample.judge_server: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        kind = failures.scripted(self._script, self._calls.total) or failures.kind(pair, call, self._failing, self._lost, self._kinds)
        self._answers[kind or "reply"] += 1
        if kind == failures.RESTART:
            os.execv(sys.executable, [*sys.orig_argv, "--port", str(request.transport.get_extra_info("sockname")[1])])
        if kind == "hang":
            return await self._hang(request)
        asked_for = personality.pair_hash(self._seed, self._name, found.query, alone)
        reply = personality.reply(self._name, truth, found.task_id, asked_for, gullible.order(message, found) if self._gullible else ())
        return await _answer(request, asked, kind, reply, pair, call)

    async def _hang(self, request: web.Request) -> web.Response:
        """No answer, for as long as the client waits and the server lives."""
        while request.transport is not None and not request.transport.is_closing() and not self._ending.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 0.05)
        return web.Response(status=504)

    def _refuse(self, status: int, message: str, code: str, counted: str) -> web.Response:
        self._answers[counted] += 1
        return _error(status, message, "invalid_request_error", code)


_ERRORS = {
    "server error": (500, "The server had an error while processing your request.", "server_error", None),
    "rate limit without a wait": (429, "Rate limit reached.", "requests", "rate_limit_exceeded"),
    "quota": (429, "You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", "insufficient_quota"),
    "no access": (403, "This key has no access to the model.", "invalid_request_error", "no_access"),
    "too long": (400, "This model's maximum context length is exceeded.", "invalid_request_error", "context_length_exceeded"),
    "rejected": (400, "The request could not be read.", "invalid_request_error", None),
}
_WAYS = {"wrong task": "another task", "contradiction": "codes of another score", "fences": "fenced"}
_PAGE = "<!doctype html><title>Sign in</title><p>Please sign in to go on.</p>"
_NO_KEY = "You didn't provide an API key: send it as Authorization: Bearer KEY."


def _has_key(request: web.Request) -> bool:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and bool(key.strip())


def _user_message(asked: object) -> str:
    """The content of the last user message; ValueError with what is wrong where the request has not the API's form."""
    if not isinstance(asked, dict):
        raise ValueError("the body must be a JSON object")
    if not isinstance(asked.get("model"), str) or not asked["model"]:
        raise ValueError("you must provide a model parameter")
    if asked.get("stream"):
        raise ValueError("stream is not supported by this server; leave it out")
    messages = asked.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) and isinstance(m.get("content"), str) for m in messages):
        raise ValueError("messages must be a list of objects with role and content, both text")
    users = [message["content"] for message in messages if message.get("role") == "user"]
    if not users:
        raise ValueError("messages holds no message of the role user")
    form = asked.get("response_format", {"type": "text"})
    kind, schema = (form.get("type"), form.get("json_schema")) if isinstance(form, dict) else (None, None)
    named = isinstance(schema, dict) and isinstance(schema.get("name"), str) and isinstance(schema.get("schema"), dict)
    if kind not in ("text", "json_object") and not (kind == "json_schema" and named):
        raise ValueError("response_format must be of type text or json_object, or of type json_schema with a name and a schema")
    return users[-1]


async def _answer(request: web.Request, asked: dict, kind: str | None, reply: dict, pair: str, call: int) -> web.StreamResponse:
    """The reply, or the failure of the kind in its place."""
    headers = {"x-request-id": f"req_{pair}_{call}"}
    if kind == "rate limit":
        wait = 20 + int(60 * personality.uniform(pair, f"wait {call}"))
        headers |= {"retry-after-ms": str(wait), "retry-after": "1"}  # whole seconds for who does not read milliseconds
        return _error(429, f"Rate limit reached; try again in {wait}ms.", "requests", "rate_limit_exceeded", headers)
    if kind in _ERRORS:
        return _error(*_ERRORS[kind], headers)
    if kind == "reset":
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
        return web.Response()
    if kind == "html":
        return web.Response(text=_PAGE, content_type="text/html", headers=headers)
    content, refusal, reason = json.dumps(reply, ensure_ascii=False), None, "stop"
    if kind == "refusal":
        content, refusal = None, "I'm sorry, but I can't help with that."
    elif kind == "violation":
        content = failures.violation(pair, reply)
    elif kind in _WAYS:
        content = failures.violation(pair, reply, _WAYS[kind])
    elif kind == "empty":
        content = ""
    elif kind == "content filter":
        content, reason = None, "content_filter"
    elif kind == "cut JSON":
        content = content[: int(len(content) * (0.3 + 0.6 * personality.uniform(pair, f"cut {call}")))]
    elif kind == "length":
        content, reason = content[: int(len(content) * (0.3 + 0.6 * personality.uniform(pair, f"cut {call}")))], "length"
    body = json.dumps(_completion(asked, content, refusal, reason, pair, call)).encode()
    if kind == "cut body":
        return await _cut(request, body, headers)
    return web.Response(body=body, content_type="application/json", headers=headers)


def _completion(asked: dict, content: str | None, refusal: str | None, reason: str, pair: str, call: int) -> dict:
    """The response object; tokens are counted as four characters each."""
    prompt, said = sum(len(message["content"]) for message in asked["messages"]) // 4, len(content or refusal or "") // 4
    message = {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}
    return {
        "id": f"chatcmpl-{pair}-{call}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": said,
            "total_tokens": prompt + said,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_planted",
    }


async def _cut(request: web.Request, body: bytes, headers: dict) -> web.StreamResponse:
    """Promise the whole body, send half of it and close the connection."""
    response = web.StreamResponse(headers=headers | {"Content-Type": "application/json", "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    request.transport.close()
    return response


def _error(status: int, message: str, kind: str, code: str | None, headers: dict | None = None) -> web.Response:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return web.json_response(body, status=status, headers=headers)
