"""Ask the judge for a set of intents, from a notebook or a script: the client runs as a child process."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lib import processes, sources
from lib.judge import turns
from lib.judge.pairs import Pairs
from lib.judge.prompt import Judge
from lib.judge.turns import Config


class Summary(NamedTuple):
    """What one call of `ask` did: pairs asked (once a pass), calls made, and how they ended."""

    set: str
    asked: int
    calls: int
    by_class: dict[str, int]


class JudgeStopped(RuntimeError):
    """The client ended before every owed call was made; what came back is kept."""


def ask(run: str | Path, intents_set: str, by: Judge, url: str, **options) -> Summary:
    """Bring the answers of `intents/<set>` up to date: every pair is answered, or out of calls.

    `options` are those of `lib.judge.turns.Config`: passes, budget, concurrency, timeout, backoff, longest_wait,
    key_variable, parts, rounds, stages, driver, the caps and the limits of a batch's file. Answered pairs are not asked; where no
    call is owed nothing is started.
    JudgeStopped says in one sentence why the client ended early; run again to go on.
    """
    return ask_sets(run, [intents_set], by, url, **options)[0]


def ask_sets(run: str | Path, sets: Sequence[str], by: Judge, url: str, **options) -> list[Summary]:
    """`ask` for several sets, one after the other, by one client."""
    common = {"run": str(run), "base_url": url, "model": by.model, "parameters": by.parameters, "prompt": str(by.prompt.path)}
    common |= {"response_format": by.response_format} | options
    configs = [turns.checked(Config(set=name, **common)) for name in sets]
    module = "lib.judge.batch" if configs[0].driver == "batch" else "lib.judge.client"
    sources.stand_on(module)
    with processes.lock(Path(run)):
        owing = [config for config in configs if _owes(config, by)]
        said = _run_child(module, owing) if owing else {}
    return [said.get(name, Summary(name, 0, 0, {})) for name in sets]


def _owes(config: Config, by: Judge) -> bool:
    render = Pairs(config.run, by)
    return any(owed.turn for name in turns.part_names(config) for owed in turns.owed(config, render, name))


def _run_child(module: str, configs: list[Config]) -> dict[str, Summary]:
    with tempfile.TemporaryDirectory(prefix="qrelbook-judge-") as folder:
        written = [Path(folder) / f"{config.set}.json" for config in configs]
        for path, config in zip(written, configs, strict=True):
            path.write_text(json.dumps(config._asdict()))
        child = processes.child(module, *map(str, written), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        last = ""
        with processes.attended(child):  # told to end, it writes what is in flight
            for line in child.stderr:
                print(line, end="", file=sys.stderr, flush=True)
                last = line.strip() or last
            said = [json.loads(line) for line in child.stdout]
            code = child.wait()
    if code != 0:
        reason = last.removeprefix(f"{module}: ") if last else "it said nothing"
        raise JudgeStopped(f"the judge client ended with {code}: {reason}; run again to go on, what came back is kept")
    return {summary["set"]: Summary(summary["set"], summary["asked"], summary["calls"], summary["by_class"]) for summary in said}
