"""Which pairs of a set are owed a call, in which pass, and under which limits."""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from lib.judge import answers, pairs, store
from lib.judge.answers import Turn
from lib.judge.pairs import Pair, Pairs

KEY_VARIABLE = "QRELBOOK_JUDGE_KEY"


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


def shown(url: str) -> str:
    """A url without the user, password and query that may stand in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def checked(config: Config) -> Config:
    """The config, or ValueError where it leaves nobody to ask."""
    url = urlsplit(config.base_url)
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
        raise ValueError(f"the judge's url {shown(config.base_url)!r} must be like http://127.0.0.1:8000/v1; a key stands in {config.key_variable}")
    for name in ("concurrency", "passes", "budget"):
        value = getattr(config, name)
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} is {value!r}; it must be a whole number from 1")
    return config


def owed(config: Config, render: Pairs, part: str) -> Iterator[tuple[Pair, dict, Turn | None]]:
    """Every LLM pair of a part with its version, stage and round, and the turn it is owed, or None."""
    rows, seen = pairs.intents(config.run, config.set, part), set()
    calls = answers.history(config.run, part, store.SETS[config.set])
    columns = {name: rows[name].to_pylist() for name in ("version", "stage", "round", "withdrawn")}
    for pair in render.render(part, rows):
        intent = {name: values[pair.row] for name, values in columns.items()}
        asked = not intent.pop("withdrawn") and pair.key not in seen
        asked = asked and (config.rounds is None or intent["round"] in config.rounds)
        asked = asked and (config.stages is None or intent["stage"] in config.stages)
        seen.add(pair.key)
        yield pair, intent, answers.due(calls.of(pair.key), intent["version"], config.passes, config.budget) if asked else None


def part_names(config: Config) -> list[str]:
    """The parts that are asked."""
    return pairs.parts(config.run, config.set) if config.parts is None else config.parts
