"""What the processes that ask a judge have in common: the key, signals and summary of a run, one set after the other, the row of a call."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

from lib import processes
from lib.judge import answers, contract, store
from lib.judge.reply import Outcome
from lib.judge.turns import Config

NO_KEY = "none"  # for servers that ask for none
STOPPED = 3


class Run(Protocol):
    """One set that is being asked for."""

    config: Config
    signal: int | None
    stop: str | None
    asked: int
    classes: Counter

    def interrupt(self, number: int) -> None: ...

    async def ask_all(self) -> None: ...

    async def close(self) -> None: ...

    def summary(self) -> dict: ...


def take_key(variable: str) -> str:
    """The key from the environment, which then holds nothing else that the SDK would send or log."""
    key = os.environ.get(variable, "")
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise ValueError(f"{variable} is no key: it holds a line end, a blank at an end or a letter outside ASCII; set it again")
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        del os.environ[name]
    return key or NO_KEY


def row(known: dict, outcome: Outcome, latency: float, cost: float | None) -> dict:
    """The attempt of a call; `known` is what stood before it, and goes before what the reply says of itself."""
    said = outcome.judgment._asdict() if outcome.judgment else {}
    told = {name: getattr(outcome, name) for name in ("status", "input_tokens", "output_tokens", "request_id", "detail", "reply")}
    whole = {**{name: said.get(name) for name in contract.FIELDS}, **known, **told, "cost": cost, "latency": latency}
    return {name: whole[name] for name in store.COLUMNS}


def summary(run: Run) -> dict:
    """What came of a run: `lib.judge.rounds` reads it."""
    by_class = {name: run.classes[name] for name in answers.CLASSES if run.classes[name]}
    return {"set": run.config.set, "asked": run.asked, "calls": run.classes.total(), "by_class": by_class, "stopped": run.stop}


async def to_the_end(run: Run, report: Callable[[Run], Awaitable[None]], more: str = "") -> tuple[dict, int]:
    """Ask, with `report` beside, until nothing is owed, the run stops or a signal comes; the summary and the exit code.

    `more` follows the sentence that names the signal.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, run.interrupt, number)
    reporter = asyncio.create_task(report(run))
    try:
        await run.ask_all()
    finally:
        reporter.cancel()
        await run.close()
    if run.signal:
        return run.summary() | {"stopped": f"stopped by signal {run.signal}{more}"}, 128 + run.signal
    return run.summary(), STOPPED if run.stop else 0


def each(module: str, sources: Sequence[str | Path], ask: Callable[[Config, str], Awaitable[tuple[dict, int]]]) -> int:
    """Ask the sets of the configurations one after the other; a line of summary each, the first that stops ends all."""
    processes.die_with_parent()
    configs = [Config(**json.loads(Path(source).read_text())) for source in sources]
    try:
        key = take_key(configs[0].key_variable)
        for config in configs:
            with processes.lock(Path(config.run)):
                said, code = asyncio.run(ask(config, key))
            print(json.dumps(said), flush=True)
            if code:
                print(f"{module}: {config.set}: {said['stopped']}", file=sys.stderr)
                return code
    except (OSError, ValueError, processes.Locked) as error:
        print(f"{module}: {error}", file=sys.stderr)
        return 1
    return 0
