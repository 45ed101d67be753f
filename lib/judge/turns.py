"""Which pairs of a set are owed a call, in which pass, and under which limits."""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import keys as pair_keys
from lib.judge import answers, keyed, pairs, prompt, store
from lib.judge.answers import Turn
from lib.judge.pairs import Pair, Pairs
from lib.judge.prompt import Judge

KEY_VARIABLE = "QRELBOOK_JUDGE_KEY"
MOST = 256  # calls in flight of one process
DRIVERS = ("sdk", "direct", "batch")


class Config(NamedTuple):
    """One run of the client; `parts`, `rounds` and `stages` narrow what is asked, None is all.

    A pair gets at most `budget` calls in each of `passes` passes. `backoff` seconds double with each
    try up to `longest_wait`, which bounds retry-after too. `timeout` is for a whole call. `driver` is sdk, direct (servers
    one runs oneself) or batch. `max_calls`, `max_tokens` and `max_cost` are caps for the run folder, `prices` the file that
    the last goes by; None is no cap, and the prices of this repository. A share of more than `bad_share` of bad replies
    among the last `bad_window` stops the run. A file of a batch has at most `file_requests` requests and `file_bytes` bytes:
    as they stand, the service's limits.
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
    response_format: str = prompt.DEFAULT_FORMAT
    driver: str = "sdk"
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: str | None = None
    bad_share: float = 0.5
    bad_window: int = 200
    file_requests: int = 50_000
    file_bytes: int = 200_000_000


def shown(url: str) -> str:
    """A url without the user, password and query that may stand in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def checked(config: Config) -> Config:
    """The config, or ValueError where it leaves nobody to ask."""
    url = urlsplit(config.base_url)
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
        raise ValueError(f"the judge's url {shown(config.base_url)!r} must be like http://127.0.0.1:8000/v1; a key stands in {config.key_variable}")
    for name in ("concurrency", "passes", "budget", "bad_window", "file_requests", "file_bytes"):
        value = getattr(config, name)
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} is {value!r}; it must be a whole number from 1")
    if config.concurrency > MOST:
        raise ValueError(f"concurrency is {config.concurrency}; one process has at most {MOST} calls in flight")
    if config.driver not in DRIVERS:
        raise ValueError(f"driver is {config.driver!r}; it must be one of {', '.join(DRIVERS)}")
    return config


def judge(config: Config) -> Judge:
    """The judge of a configuration."""
    return prompt.judge(config.model, config.prompt, config.response_format, **config.parameters)


class Owed(NamedTuple):
    """A pair of a part, and the turn that it is owed, or None."""

    come: int  # pairs of the part that are come to with it
    pair: Pair
    intent: dict  # version, stage and round
    turn: Turn | None


def owed(config: Config, render: Pairs, part: str) -> Iterator[Owed]:
    """The LLM pairs of a part by documents, ascending.

    Where the keys of the part are kept, only pairs that are owed a turn are rendered, and come. Where they are not, all
    come, and their keys are kept once the last has.
    """
    rows, by = pairs.intents(config.run, config.set, part).combine_chunks(), render.by
    calls = answers.history(config.run, part, store.SETS[config.set])
    columns = [(name, *_coded(rows[name])) for name in ("version", "stage", "round")]
    wanted = asked(config, rows)

    def turn(row: int, key: str) -> tuple[dict, Turn | None]:
        intent = {name: values[codes[row]] for name, codes, values in columns}
        return intent, answers.due(calls.of(key), intent["version"], config.passes, config.budget) if wanted[row] else None

    keys = keyed.read(config.run, config.set, part, by)
    if keys is not None:
        wanted &= first(keys) & ~calls.answered(keys)
        looked = ((row, *turn(row, keys[row])) for row in np.flatnonzero(wanted).tolist())
        due = [found for found in looked if found[2]]
        for come, pair in enumerate(render.render(part, rows.take(np.array([row for row, *_ in due], np.int64))), 1 + rows.num_rows - len(due)):
            row, *told = due[pair.row]
            yield Owed(come, pair._replace(row=row), *told)
        return
    keys, pair_of = np.empty(rows.num_rows, keyed.KIND), pair_keys.of(rows)
    twice, seen = pair_keys.inside(pair_of, pair_keys.repeated(pair_of)), set()  # two rows of one key are one query and document, and come in their order
    for come, pair in enumerate(render.render(part, rows), 1):
        keys[pair.row] = pair.key
        if twice[pair.row]:
            wanted[pair.row] &= pair.key not in seen
            seen.add(pair.key)
        yield Owed(come, pair, *turn(pair.row, pair.key))
    keyed.write(config.run, config.set, part, by, keys)


def asked(config: Config, rows: pa.Table) -> np.ndarray:
    """bool[rows]: not withdrawn, and of the rounds and stages that are asked."""
    found = ~rows["withdrawn"].to_numpy()
    for name, wanted in (("round", config.rounds), ("stage", config.stages)):
        if wanted is not None:
            found &= pc.is_in(rows[name], value_set=pa.array(wanted, rows[name].type)).to_numpy()
    return found


def first(keys: list[str]) -> np.ndarray:
    """bool[keys]: no key before is the same."""
    seen = set()
    return np.array([not (key in seen or seen.add(key)) for key in keys], bool)


def _coded(column: pa.ChunkedArray) -> tuple[np.ndarray, list]:
    """Each row's place in a list of the column's few values: 4 bytes a row, however many there are."""
    values = column.unique()
    return pc.index_in(column, value_set=values).to_numpy(), values.to_pylist()


def part_names(config: Config) -> list[str]:
    """The parts that are asked."""
    return pairs.parts(config.run, config.set) if config.parts is None else config.parts
