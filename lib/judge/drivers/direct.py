"""Calls by plain HTTP on one aiohttp session: the driver for servers one runs oneself, at a fraction of the SDK's CPU."""

import json

import aiohttp

from lib.judge import drivers
from lib.judge.drivers import Answer
from lib.judge.pairs import Pair
from lib.judge.prompt import Judge
from lib.judge.reply import Outcome
from lib.judge.turns import Config


class Direct:
    """One session; no redirect is followed with the key, and this machine is reached without a proxy."""

    def __init__(self, config: Config, key: str):
        self._config, self._key = config, key
        self._url = config.base_url.rstrip("/") + "/chat/completions"
        connect = min(drivers.CONNECT_SECONDS, config.timeout / 2)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=config.concurrency),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect),  # the whole call is timed by `timed`
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            trust_env=not drivers.is_local(config.base_url),
        )

    async def call(self, by: Judge, pair: Pair) -> Outcome:
        async def send() -> Answer:
            sent = json.dumps({"model": by.model, **drivers.body(by, pair)}).encode()
            async with self._session.post(self._url, data=sent, allow_redirects=False) as response:
                return Answer(response.status, response.headers, await drivers.whole(response.content.iter_any()))

        return await drivers.timed(self._config, self._key, pair, send, ())

    async def close(self) -> None:
        await self._session.close()


def connect(config: Config, key: str) -> Direct:
    return Direct(config, key)
