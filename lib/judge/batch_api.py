"""Files and batches at the server, by the openai SDK, patiently: a server that is busy or away is asked again.

`Gone` is a thing that the server does not know; `Stopped` says in one sentence why no further step is of use.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import httpx2
import openai
from openai.types import Batch

from lib.judge import reply, turns
from lib.judge.batch_files import Submission
from lib.judge.drivers import sdk
from lib.judge.reply import Asked
from lib.judge.turns import Config

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
TRIES = 20  # of one step, with growing waits between them
_FILE_SECONDS = 900.0  # for 200 MB either way
_FILE_BYTES = 2_000_000_000  # of a file that comes: ten times the largest that goes
_AWAY = (openai.APIConnectionError, httpx2.HTTPError, aiohttp.ClientError, TimeoutError, ConnectionError)


class Stopped(Exception):
    """The server's answer, or its absence, ends the run."""


class Gone(Exception):
    """The server knows no such file or batch."""


class Api:
    """One server's files and batches; `halt` ends every wait."""

    def __init__(self, config: Config, key: str, halt: asyncio.Event):
        self._config, self._halt = config, halt
        self._asked = Asked("", "", key, config.key_variable)
        self.worked: dict[str, int] = {}  # by submission that is open, requests that the server has answered or failed
        self._client = sdk.client(config.base_url, key, config.concurrency, max(config.timeout, _FILE_SECONDS))

    async def close(self) -> None:
        await self._client.close()

    async def wait(self, seconds: float) -> None:
        """Sleep unless the run is ended; then Stopped."""
        try:
            await asyncio.wait_for(self._halt.wait(), min(seconds, self._config.longest_wait))
        except TimeoutError:
            return
        raise Stopped("the run was told to end")

    async def _patiently(self, what: str, step: Callable[[], Awaitable]):
        for tries in range(TRIES):
            wait = None
            try:
                return await step()
            except openai.APIStatusError as error:
                got = reply.outcome(error.status_code, error.response.headers, error.response.content, self._asked)
                if error.status_code == 404:
                    raise Gone(what) from None
                if got.stop or got.status not in ("rate limited", "server error", "timeout"):
                    raise Stopped(got.stop or f"{what} was refused ({got.detail})") from None
                wait, last = got.wait, got.detail
            except (*_AWAY, ValueError, RecursionError, AttributeError, TypeError) as error:  # the last four of a body that is not what was asked for
                last = type(error).__name__
            await self.wait(wait if wait is not None else self._config.backoff * 2.0**tries)
        raise Stopped(f"{what} failed {TRIES} times at {turns.shown(self._config.base_url)}, at last with {last}; check the server")

    async def upload(self, it: Submission, source: Path) -> str:
        """The id of the uploaded file of requests."""

        async def step() -> str:
            with open(source, "rb") as data:
                return (await self._client.files.create(file=(f"{it.submission}.jsonl", data), purpose="batch")).id

        return await self._patiently("the upload of a batch", step)

    async def create(self, it: Submission) -> str:
        """The id of the batch; one whose creation was not heard of is looked for before it is created again."""
        unsure = False

        async def step() -> str:
            nonlocal unsure
            if unsure and (made := await self._listed(it)):
                return made
            unsure = True
            made = await self._client.batches.create(
                completion_window="24h", endpoint="/v1/chat/completions", input_file_id=it.file, metadata=it.metadata
            )
            return made.id

        return await self._patiently("the creation of a batch", step)

    async def find(self, it: Submission) -> str | None:
        """The id of the batch that carries this submission, or None."""
        return await self._patiently("the list of batches", lambda: self._listed(it))

    async def _listed(self, it: Submission) -> str | None:
        async for batch in self._client.batches.list(limit=100):
            if (batch.metadata or {}).get("submission") == it.submission:
                return batch.id
        return None

    async def ended(self, it: Submission) -> Batch:
        """The batch once it has ended; asked for at growing intervals."""
        for times in range(10**9):
            batch = await self._patiently("the state of a batch", lambda: self._state(it))
            self.worked[it.submission] = _worked(batch)
            if batch.status in ENDED:
                del self.worked[it.submission]
                return batch
            await self.wait(self._config.backoff * 2.0 ** min(times, 30))

    async def _state(self, it: Submission) -> Batch:
        batch = await self._client.batches.retrieve(it.batch)
        if not isinstance(batch, Batch):  # the SDK hands a page that is not JSON on as text
            raise ValueError("no state of a batch")
        return batch

    async def download(self, name: str, target: Path) -> None:
        """A file of the server; under its name only once it came whole."""
        coming = target.with_name(f".{target.name}.coming")

        async def step() -> None:
            async with self._client.files.with_streaming_response.content(name) as response:
                with open(coming, "wb") as file:
                    async for piece in response.iter_bytes():
                        file.write(piece)
                        if file.tell() > _FILE_BYTES:
                            coming.unlink()
                            raise Stopped(f"the file {name} of the server is longer than {_FILE_BYTES:,} bytes; look at the server")
            os.replace(coming, target)

        await self._patiently("the download of a batch", step)

    async def remove(self, *names: str | None) -> None:
        """Delete files at the server; one that is not there is no matter."""
        for name in names:
            if name:
                try:
                    await self._patiently("the removal of a file", lambda name=name: self._client.files.delete(name))
                except Gone:
                    pass

    async def remove_uploads(self, it: Submission) -> None:
        """Delete what a killed upload of this submission may have left."""

        async def step() -> list[str]:
            found = self._client.files.list(purpose="batch", limit=1000)
            return [file.id async for file in found if file.filename == f"{it.submission}.jsonl"]

        try:
            await self.remove(*await self._patiently("the list of files", step))
        except Gone:  # a server without that list
            pass

    def fault(self, batch: Batch) -> str:
        """Why a batch failed before it ran, without key or quotation."""
        told = [error.message or error.code or "" for error in (batch.errors.data or [])] if batch.errors else []
        return self.clean("; ".join(told[:3]) or "no reason given")

    def clean(self, text: str) -> str:
        """What a server said, without the key."""
        return reply.clean(reply.Outcome("rejected", detail=text), self._asked).detail or ""


def _worked(batch: Batch) -> int:
    counts = [getattr(batch.request_counts, name, None) for name in ("completed", "failed")]
    return sum(count for count in counts if type(count) is int)  # a server may put anything there
