"""The process that asks a judge for every pair of a set that is owed a call: `python -m lib.judge.client CONFIG.json`.

Started by `lib.judge.rounds.ask`. Prints progress on stderr and one JSON summary on stdout. Ends with 0 when
nothing is owed any more, with 3 when the server's answer stops the run (key, quota), with 128 + n after signal n.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from lib import processes
from lib.judge import answers, contract, pairs, prompt, store
from lib.judge.pairs import Pair

KEY_VARIABLE = "QRELBOOK_JUDGE_KEY"
NO_KEY = "none"  # for servers that ask for none
STOPPED = 3
_PATIENCE = frozenset({"rate limited", "server error", "timeout", "connection"})  # a new try at once would not help


class Config(NamedTuple):
    """One run of the client; `parts`, `rounds` and `stages` narrow what is asked, None is all.

    A pair gets at most `budget` calls in each of `passes` passes. `backoff` seconds double with each
    try up to `longest_wait`, which bounds retry-after too. `timeout` is for a whole call.
    """

    run: str
    set: str
    base_url: str
    model: str
    parameters: dict
    prompt: str
    passes: int = 2
    budget: int = 3
    concurrency: int = 32
    timeout: float = 120.0
    backoff: float = 0.5
    longest_wait: float = 30.0
    key_variable: str = KEY_VARIABLE
    parts: list[str] | None = None
    rounds: list[int] | None = None
    stages: list[str] | None = None


def owed(config: Config, render: pairs.Pairs, part: str, number: int):
    """The pairs of a part that are owed a call in pass `number`, with the version, stage, round and number of that call."""
    rows, seen = pairs.intents(config.run, config.set, part), set()
    calls = answers.history(config.run, part, store.SETS[config.set])
    columns = {name: rows[name].to_pylist() for name in ("version", "stage", "round", "withdrawn")}
    for pair in render.render(part, rows):
        intent = {name: values[pair.row] for name, values in columns.items()}
        asked = not intent.pop("withdrawn") and pair.key not in seen
        asked = asked and (config.rounds is None or intent["round"] in config.rounds)
        asked = asked and (config.stages is None or intent["stage"] in config.stages)
        turn = answers.due(calls.get(pair.key, []), intent["version"], config.passes, config.budget) if asked else None
        seen.add(pair.key)
        yield pair, intent, turn[1] if turn and turn[0] == number else None


class _Part:
    """The attempts file of one part, open while a pair of it is asked."""

    def __init__(self, target: Path):
        self.target, self.writer, self.pending, self.issued = target, None, 0, False

    def append(self, row: dict) -> None:
        if self.writer is None:
            self.writer = store.Writer(self.target)
        self.writer.append(row)

    def settle(self) -> None:
        if self.writer and self.issued and not self.pending:
            self.writer.close()
            self.writer = None


class Run:
    """The window of pairs that are being asked, and what came of the others."""

    def __init__(self, config: Config, key: str):
        from lib.judge import call  # here, so that the environment is cleared before the SDK reads it

        self.config, self.call = config, call.call
        self.by = prompt.judge(config.model, config.prompt, **config.parameters)
        self.client = call.connect(config.base_url, key, config.concurrency, config.timeout)
        self.slots = asyncio.Semaphore(config.concurrency)
        self.halt = asyncio.Event()  # no further call
        self.stop: str | None = None  # no further pair: pairs that are being asked end their tries
        self.signal: int | None = None
        self.asked, self.classes, self.in_pass = 0, Counter(), 0
        self.tasks: set[asyncio.Task] = set()
        self.fault: BaseException | None = None

    def interrupt(self, number: int) -> None:
        self.signal = number
        self.halt.set()

    async def ask_all(self) -> None:
        render = pairs.Pairs(self.config.run, self.by)
        names = pairs.parts(self.config.run, self.config.set) if self.config.parts is None else self.config.parts
        for self.in_pass in range(1, self.config.passes + 1):
            for name in names:
                await self._issue(render, _Part(store.path(self.config.run, self.config.set, name)), name)
            while self.tasks:
                await asyncio.wait(self.tasks)
            if self.fault:
                raise self.fault

    async def _issue(self, render: pairs.Pairs, part: _Part, name: str) -> None:
        for pair, intent, number in owed(self.config, render, name, self.in_pass):
            if self.stop or self.halt.is_set():
                break
            if number is None:
                await asyncio.sleep(0)
                continue
            await self.slots.acquire()
            if self.stop or self.halt.is_set():  # a call that ended meanwhile said so
                self.slots.release()
                break
            part.pending += 1
            self.asked += 1
            task = asyncio.create_task(self._ask(part, pair, intent, number))
            self.tasks.add(task)
            task.add_done_callback(lambda task: self._done(task, part))
        part.issued = True
        part.settle()

    def _done(self, task: asyncio.Task, part: _Part) -> None:
        self.tasks.discard(task)
        self.slots.release()
        part.pending -= 1
        if error := task.exception():
            self.fault = self.fault or error
            self.halt.set()
        else:
            part.settle()

    async def _ask(self, part: _Part, pair: Pair, intent: dict, number: int) -> None:
        while not self.halt.is_set():
            outcome = await self.call(self.client, self.by, pair, self.config.timeout, self.config.key_variable)
            part.append(self._row(pair, intent, number, outcome))
            self.classes[outcome.status] += 1
            if outcome.stop:
                self.stop = self.stop or outcome.stop
                return
            number += 1
            if outcome.judgment or outcome.status in answers.FINAL or number > self.config.budget:
                return
            if outcome.status in _PATIENCE:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.halt.wait(), self._wait(pair.key, number, outcome.wait))

    def _wait(self, key: str, number: int, asked_for: float | None) -> float:
        if asked_for is not None:
            return min(asked_for, self.config.longest_wait)
        jitter = hashlib.sha256(f"{key} {number}".encode()).digest()[0] / 255
        return min(self.config.longest_wait, self.config.backoff * 2 ** (number - 2)) * (0.5 + 0.5 * jitter)

    def _row(self, pair: Pair, intent: dict, number: int, outcome) -> dict:
        said = outcome.judgment._asdict() if outcome.judgment else {}
        known = {
            **intent, "key": pair.key, "query": pair.query, "doc": pair.doc, "pass": self.in_pass, "attempt": number,
            "prompt_sha256": self.by.prompt.sha256, "schema_sha256": contract.SCHEMA_SHA256, "model": self.by.model,
            **{name: said.get(name) for name in contract.FIELDS}, "cost": None,
            **{name: getattr(outcome, name) for name in ("status", "input_tokens", "output_tokens", "latency", "request_id", "detail", "reply")},
        }  # fmt: skip
        return {name: known[name] for name in store.COLUMNS}

    def summary(self) -> dict:
        by_class = {name: self.classes[name] for name in answers.CLASSES if self.classes[name]}
        return {"set": self.config.set, "asked": self.asked, "calls": self.classes.total(), "by_class": by_class, "stopped": self.stop}


async def _report(run: Run, seconds: float = 5.0) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(seconds)
        calls = run.classes.total()
        answered = sum(run.classes[name] for name in answers.VALID)
        rate = calls / (time.monotonic() - started)
        print(
            f"judge {run.config.set} pass {run.in_pass}: {answered:,} answered in {calls:,} calls, {rate:.0f} a second, {len(run.tasks)} in flight",
            file=sys.stderr, flush=True,
        )  # fmt: skip


async def _main(config: Config, key: str) -> tuple[dict, int]:
    run = Run(config, key)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, run.interrupt, number)
    reporter = asyncio.create_task(_report(run))
    try:
        await run.ask_all()
    finally:
        reporter.cancel()
        await run.client.close()
    if run.signal:
        return run.summary() | {"stopped": f"stopped by signal {run.signal}"}, 128 + run.signal
    return run.summary(), STOPPED if run.stop else 0


def take_key(variable: str) -> str:
    """The key from the environment, which then holds nothing else that the SDK would send or log."""
    key = os.environ.get(variable, "")
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise ValueError(f"{variable} is no key: it holds a line end, a blank at an end or a letter outside ASCII; set it again")
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        del os.environ[name]
    return key or NO_KEY


def main(arguments: list[str] | None = None) -> int:
    processes.die_with_parent()
    (source,) = sys.argv[1:] if arguments is None else arguments
    config = Config(**json.loads(Path(source).read_text()))
    try:
        key = take_key(config.key_variable)
        with processes.lock(Path(config.run)):
            summary, code = asyncio.run(_main(config, key))
    except (OSError, ValueError, processes.Locked) as error:
        print(f"lib.judge.client: {error}", file=sys.stderr)
        return 1
    print(json.dumps(summary))
    if summary["stopped"]:
        print(f"lib.judge.client: {summary['stopped']}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
