"""What a call of the judge's client takes: each way to a server, and the whole client's memory, in processes of their own.

`python -m lib.judge.client_measure serve FILE` answers every request at once with a valid reply and writes its url into FILE;
`... calls WAY URL CHARACTERS CALLS FLYING` and `... memory URL FOLDER PAIRS FLYING` print one JSON object.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from lib import contracts, processes
from lib.judge import asking, client, drivers, prompt, turns
from lib.judge.pairs import Pair
from lib.judge.turns import Config

WAYS = ("aiohttp", "direct", "sdk", "httpx")
_TASK = re.compile(rb"task_id: ([0-9a-f]{16})")
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *([0-9]+)")


class Lap(NamedTuple):
    """Processor seconds and wall seconds of so many calls."""

    calls: int
    processor: float
    wall: float


def reply(task: str) -> bytes:
    """The body of a completion with a valid judgment."""
    said = {
        "task_id": task, "guideline_version": "strict-math-retrieval-v1", "query_evaluable": True, "score": 1, "answer_validity": "partial",
        "reason_codes": ["key_lemma"], "confidence": 0.75, "rationale": "The lemma is what is asked; the rest is missing. " * 6,
    }  # fmt: skip
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(said), "refusal": None}}
    usage = {"prompt_tokens": 900, "completion_tokens": 120, "total_tokens": 1020}
    return json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}).encode()


class Echo(asyncio.Protocol):
    """As little HTTP as a client of chat completions needs."""

    def connection_made(self, transport) -> None:
        self._transport, self._got, self._need = transport, bytearray(), None

    def data_received(self, data: bytes) -> None:
        self._got += data
        while True:
            if self._need is None:
                head = self._got.find(b"\r\n\r\n")
                if head < 0:
                    return
                self._need = head + 4 + int(_LENGTH.search(self._got[:head])[1])
            if len(self._got) < self._need:
                return
            body = reply(_TASK.search(self._got)[1].decode())
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            del self._got[: self._need]
            self._need = None


async def _serve(ready: Path) -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, backlog=1024)
    temporary = ready.with_suffix(".tmp")
    temporary.write_text(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    temporary.rename(ready)
    await server.serve_forever()


@contextmanager
def serving(patience: float = 30.0) -> Iterator[str]:
    """The base url of the echo server, which lives as long as the block, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="client_measure_") as folder:
        ready = Path(folder) / "url"
        child = processes.child("lib.judge.client_measure", "serve", str(ready))
        try:
            until = time.monotonic() + patience
            while not ready.exists():
                if child.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the echo server was not ready within {patience:g} s")
                time.sleep(0.02)
            yield ready.read_text()
        finally:
            child.kill()
            child.wait()


def _pair(number: int, characters: int, by: prompt.Judge) -> Pair:
    task = f"{number:016x}"
    return Pair(number, 0, number, task, task, prompt.messages(by.prompt, task, f"What is {number}?", ("A lemma of sums. " * (characters // 17 + 1))[:characters]))


def _config(url: str, flying: int, **changed) -> Config:
    known = {"run": "", "set": "v1", "base_url": url, "model": "m", "parameters": {"temperature": 0.0}, "prompt": str(prompt.PROMPT)}
    return Config(**known | {"concurrency": flying} | changed)


async def _bare(url: str):
    """A loop around aiohttp that posts and reads JSON, and nothing else."""
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=turns.MOST), headers={"Authorization": "Bearer none"})

    async def call(by: prompt.Judge, pair: Pair) -> bool:
        async with session.post(f"{url}/chat/completions", json={"model": by.model, **drivers.body(by, pair)}) as response:
            return json.loads((await response.json())["choices"][0]["message"]["content"])["task_id"] == pair.task

    return call, session.close


async def _default(url: str):
    """The SDK as it comes: its default transport, its parsing of the completion."""
    import openai

    api = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)

    async def call(by: prompt.Judge, pair: Pair) -> bool:
        said = await api.chat.completions.create(model=by.model, messages=pair.messages, **by.format, **by.parameters)
        return json.loads(said.choices[0].message.content)["task_id"] == pair.task

    return call, api.close


async def _driver(way: str, url: str, flying: int):
    driver = drivers.connect(_config(url, flying, driver=way), asking.NO_KEY)

    async def call(by: prompt.Judge, pair: Pair) -> bool:
        return (await driver.call(by, pair)).judgment is not None

    return call, driver.close


async def _calls(way: str, url: str, characters: int, calls: int, flying: int) -> Lap:
    by = turns.judge(_config(url, flying))
    made = _bare(url) if way == "aiohttp" else _default(url) if way == "httpx" else _driver(way, url, flying)
    call, close = await made

    async def worker(numbers: Iterator[int]) -> None:
        for number in numbers:
            if not await call(by, _pair(number, characters, by)):
                raise AssertionError(f"{way} did not get its own reply")

    await asyncio.gather(*[worker(iter([at])) for at in range(flying)])  # connections are open, code is warm
    numbers = iter(range(calls))
    wall, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*[worker(numbers) for _ in range(flying)])
    lap = Lap(calls, time.process_time() - processor, time.perf_counter() - wall)
    await close()
    return lap


def write(run: Path, pairs: int, characters: int, queries: int = 100) -> None:
    """A run of one part of queries whose set `v1` holds so many pairs; each document is asked for every query."""
    count = -(-pairs // queries)
    text = "A lemma of sums and of their bounds, with its proof. " * (characters // 53 + 1)
    tables = {
        "documents": [{"docid": f"d{i}", "text": f"{i} {text}"[:characters], "n_chars": characters, "n_tokens": 1, "removed": False} for i in range(count)],
        "queries": [{"qid": f"q{i}", "text": f"What is {i}?", "source_docid": None, "source_doc": None, "keep": True} for i in range(queries)],
        "intents": [
            {"query": at // count, "doc": at % count, "judge": "llm", "version": "v1", "stage": "dense 1-5", "round": 1, "reason": "dense rank 1",
             "max_chars": characters, "rank": 1, "withdrawn": False} for at in range(pairs)
        ],
    }  # fmt: skip
    for name, rows in tables.items():
        folder = run / name / "v1" if name == "intents" else run / name
        contracts.finish(folder, [contracts.write(name, contracts.table(name, rows), folder / "part-00000.parquet")])


async def _memory(url: str, run: Path, few: int, flying: int, driver: str) -> dict:
    """The whole client on a written run: its resident memory after `few` calls, and the most after that; its rate and processor time."""
    whole, own, after = client.Run(_config(url, flying, run=str(run), driver=driver), asking.NO_KEY), psutil.Process(), []
    task = asyncio.create_task(whole.ask_all())
    wall, processor = time.perf_counter(), time.process_time()
    while not task.done():
        await asyncio.sleep(0.2)
        if whole.classes.total() >= few:
            after.append(own.memory_info().rss / 2**20)
    await task
    await whole.close()
    calls, took = whole.classes.total(), time.perf_counter() - wall
    return {
        "calls": calls, "answered": whole.classes["ok"], "seconds": took, "processor": time.process_time() - processor,
        "MiB": after[0] if after else own.memory_info().rss / 2**20, "grown MiB": max(after) - after[0] if after else 0.0,
    }  # fmt: skip


def _child(*words: object) -> dict:
    return json.loads(processes.answer(" ".join(map(str, words)), "lib.judge.client_measure", *map(str, words)))


def race(url: str, characters: int, calls: int, flying: int, rounds: int) -> dict[str, Lap]:
    """The lap of least processor time of each way, in turn, each in a fresh process."""
    laps = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            laps[way].append(Lap(**_child("calls", way, url, characters, calls, flying)))
    return {way: min(each, key=lambda lap: lap.processor) for way, each in laps.items()}


def memory(url: str, pairs: int, few: int, flying: int, driver: str = "direct", characters: int = 2_000) -> dict:
    """See `_memory`, in a fresh process, on a folder that goes again."""
    with tempfile.TemporaryDirectory(prefix="client_measure_") as folder:
        write(Path(folder), pairs, characters)
        return _child("memory", url, folder, few, flying, driver)


def main(words: list[str]) -> None:
    step, *given = words
    if step == "serve":
        processes.die_with_parent()
        asyncio.run(_serve(Path(given[0])))
    elif step == "calls":
        print(json.dumps(asyncio.run(_calls(given[0], given[1], *map(int, given[2:])))._asdict()))
    else:
        print(json.dumps(asyncio.run(_memory(given[0], Path(given[1]), int(given[2]), int(given[3]), given[4]))))


if __name__ == "__main__":
    main(sys.argv[1:])
