"""Ask the judge for a set of intents, from a notebook or a script: the client runs as a child process."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from lib import processes, sources, trace
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
    key_variable, parts, rounds, stages. Answered pairs are not asked; where no call is owed nothing is started.
    JudgeStopped says in one sentence why the client ended early; run again to go on.
    """
    config = turns.checked(Config(
        run=str(run), set=intents_set, base_url=url, model=by.model, parameters=by.parameters, prompt=str(by.prompt.path), **options
    ))  # fmt: skip
    for module in sources.closure("lib.judge.client"):
        trace.record("import", module)  # also when nothing is owed and no child imports them
    with processes.lock(Path(run)):
        if not _owes(config, by):
            return Summary(intents_set, 0, 0, {})
        return _run_child(config)


def _owes(config: Config, by: Judge) -> bool:
    render = Pairs(config.run, by)
    return any(turn for name in turns.part_names(config) for _, _, turn in turns.owed(config, render, name))


def _run_child(config: Config) -> Summary:
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="qrelbook-judge-") as handle:
        json.dump(config._asdict(), handle)
        handle.flush()
        child = processes.child("lib.judge.client", handle.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        last = ""
        try:
            for line in child.stderr:
                print(line, end="", file=sys.stderr, flush=True)
                last = line.strip() or last
            said = child.stdout.read()
            code = child.wait()
        except BaseException:
            child.terminate()  # it writes what is in flight, then ends
            child.wait()
            raise
    if code != 0:
        reason = last.removeprefix("lib.judge.client: ") if last else "it said nothing"
        raise JudgeStopped(f"the judge client for {config.set} ended with {code}: {reason}; run again to go on, what came back is kept")
    summary = json.loads(said)
    return Summary(summary["set"], summary["asked"], summary["calls"], summary["by_class"])
