"""A scripted judge behind the Batch API, and clients of it that can be killed, for the tests of batches."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import judge_script
from judge_script import KEY, Script, configured

from lib import paths
from lib.judge import batch_files
from lib.sample.batch_http import Batches, Faults


@contextmanager
def serving(script: Script, folder: Path, faults: Faults = Faults(), at: int = 0, seconds: float = 0.0):
    """Yield the base url and the batches of a server that follows the script, in a thread of this process."""
    batches = Batches(folder, faults, seconds)
    with judge_script.serving(script, at, batches.add_to) as url:
        yield url, batches


_DYING = """
import asyncio, os, signal, sys
from lib.judge import batch, batch_api, store

owner, name = {"Api": batch_api.Api, "Writer": store.Writer, "Budget": batch.Budget}[sys.argv[1].split(".")[0]], sys.argv[1].split(".")[1]
after, left, method = sys.argv[2] == "True", int(sys.argv[3]), getattr(owner, sys.argv[1].split(".")[1])

def die():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

async def told(*given):
    if not after:
        die()
    found = await method(*given)
    die()
    return found

def plain(*given):
    die()
    return method(*given)

setattr(owner, name, told if asyncio.iscoroutinefunction(method) else plain)
sys.exit(batch.main(sys.argv[4:]))
"""


def start(run: Path, url: str, *, dies: str | None = None, after: bool = False, calls: int = 1, **changed) -> subprocess.Popen:
    """The client of batches as `lib.judge.rounds.ask` starts it; one that `dies` is killed at that call of a method, or after it."""
    config = run.parent / f"{run.name}.config.json"
    config.write_text(json.dumps(configured(run, url, **{"longest_wait": 0.2} | changed)._asdict()))
    module = ["-c", _DYING, dies, str(after), str(calls)] if dies else ["-m", "lib.judge.batch"]
    return subprocess.Popen(
        [sys.executable, *module, str(config)], cwd=paths.ROOT, env=os.environ | {"QRELBOOK_JUDGE_KEY": KEY},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ask(run: Path, url: str, *, code: int = 0, **changed) -> tuple[dict, str]:
    """The summary of a client that was let run to its end, and what it said on stderr."""
    process = start(run, url, **changed)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    return (json.loads(said) if said else {}), errors


def states(run: Path) -> list[batch_files.Submission]:
    """All batches of the set v1."""
    return [batch_files.state(path) for path in sorted(batch_files.folder(run, "v1").glob("*.json"))]
