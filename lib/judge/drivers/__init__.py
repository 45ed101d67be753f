"""The ways to a server of chat completions, behind one interface: a driver has `call` and `close`.

`sdk` is the openai client, `direct` plain HTTP for servers one runs oneself (vLLM, SGLang). Both send the same body,
try once, follow no redirect, and give what comes back to `lib.judge.reply`. (`batch` is no driver of single calls: see
`lib.judge.batch`.)
"""

import asyncio
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import aiohttp

from lib.judge import reply
from lib.judge.pairs import Pair
from lib.judge.prompt import Judge
from lib.judge.reply import Asked, Outcome
from lib.judge.turns import Config

CONNECT_SECONDS = 20.0


class Answer(NamedTuple):
    """An HTTP answer, its body read by `whole`."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Driver(Protocol):
    """One call after another to one server."""

    async def call(self, by: Judge, pair: Pair) -> Outcome: ...

    async def close(self) -> None: ...


def connect(config: Config, key: str) -> Driver:
    """The driver that the configuration names, for a running event loop."""
    if config.driver == "direct":
        from lib.judge.drivers import direct

        return direct.connect(config, key)
    from lib.judge.drivers import sdk

    return sdk.connect(config, key)


def is_local(url: str) -> bool:
    """This machine is reached without a proxy."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def body(by: Judge, pair: Pair) -> dict:
    """What is sent for a pair, without the model's name."""
    return {"messages": pair.messages, **by.format, **by.parameters}


async def whole(pieces: AsyncIterable[bytes]) -> bytes:
    """A body; where it is longer than LONGEST_BODY of `lib.judge.reply` no more than a piece beyond that, which says so."""
    held = bytearray()
    async for piece in pieces:
        held += piece
        if len(held) > reply.LONGEST_BODY:
            break
    return bytes(held)


async def timed(config: Config, key: str, pair: Pair, send: Callable[[], Awaitable[Answer]], lost: tuple[type[Exception], ...]) -> Outcome:
    """Ask once and classify; errors that are not of `lost` are faults of this program, and raised like a cancellation."""
    asked = Asked(pair.task, pair.messages[-1]["content"], key, config.key_variable)
    started = time.perf_counter()
    try:
        async with asyncio.timeout(config.timeout):
            answer = await send()
        found = reply.outcome(*answer, asked)
    except (*lost, aiohttp.ClientError, TimeoutError, OSError) as error:
        found = reply.clean(_failed(error), asked)
    return found._replace(latency=round(time.perf_counter() - started, 4))


def _failed(error: Exception) -> Outcome:
    """No answer: `connection`, or `timeout` where the call may have been worked on and nobody knows."""
    causes = list(_causes(error))
    unreached = any(isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) for cause in causes)
    late = any(isinstance(cause, TimeoutError) for cause in causes)
    # the SDK's aiohttp transport calls a dropped connection a timeout too; the first cause tells them apart
    late = late or (type(error).__name__ == "APITimeoutError" and not any(isinstance(cause, aiohttp.ClientError) for cause in causes))
    none = 0 if unreached else None  # tokens: what was not sent used none
    status, detail = "timeout" if late and not unreached else "connection", f"{type(error).__name__}: {error}"
    return Outcome(status, detail=detail, input_tokens=none, output_tokens=none, unreached=unreached)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
