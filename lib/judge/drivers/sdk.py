"""Calls by the openai SDK on its aiohttp transport: the driver for services.

The answer is taken raw: the SDK's parsing walks the type annotations of all that could be there, and what it accepts
is checked again in any case.
"""

from contextlib import aclosing

import httpx2
import openai

from lib.judge import drivers
from lib.judge.drivers import Answer
from lib.judge.pairs import Pair
from lib.judge.prompt import Judge
from lib.judge.reply import Outcome
from lib.judge.turns import Config

_OF_THE_WAY = (b"content-encoding", b"content-length", b"transfer-encoding")  # these do not hold for the body as it is read


class _Http(openai.DefaultAioHttpClient):
    """Reads no answer without end, whatever its status; the SDK itself would. What is streamed is the caller's to bound."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options) -> httpx2.Response:
        response = await super().send(request, stream=True, **options)
        if stream and response.is_success:
            return response
        async with aclosing(response), aclosing(response.aiter_bytes()) as pieces:
            body = await drivers.whole(pieces)
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_WAY]
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


class Sdk:
    """A client that never retries, never follows a redirect with the key, and reaches this machine without a proxy."""

    def __init__(self, config: Config, key: str):
        self._config, self._key = config, key
        self._client = client(config.base_url, key, config.concurrency, config.timeout)

    async def call(self, by: Judge, pair: Pair) -> Outcome:
        async def send() -> Answer:
            try:
                # in extra_body, because the SDK walks its annotations through every typed argument: a quarter of a call's CPU
                raw = await self._client.chat.completions.with_raw_response.create(model=by.model, messages=[], extra_body=drivers.body(by, pair))
                response = raw.http_response
            except openai.APIStatusError as error:
                response = error.response
            return Answer(response.status_code, response.headers, response.content)

        # UnicodeError: the transport stumbles over a status line that is no UTF-8
        return await drivers.timed(self._config, self._key, pair, send, (openai.APIConnectionError, UnicodeError))

    async def close(self) -> None:
        await self._client.close()


def client(base_url: str, key: str, concurrency: int, timeout: float) -> openai.AsyncOpenAI:
    """The SDK's client; `timeout` in seconds is for a whole call."""
    limits = openai.DEFAULT_CONNECTION_LIMITS.__class__(max_connections=concurrency, max_keepalive_connections=concurrency)
    http = _Http(limits=limits, timeout=timeout, follow_redirects=False, trust_env=not drivers.is_local(base_url))
    limit = openai.Timeout(timeout, connect=min(drivers.CONNECT_SECONDS, timeout / 2))  # so that `timed` is not the first to give up
    return openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0, timeout=limit, http_client=http)


def connect(config: Config, key: str) -> Sdk:
    return Sdk(config, key)
