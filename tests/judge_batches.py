"""A scripted judge behind the Batch API, and clients of it that can be killed, for the tests of batches."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web
from judge_script import KEY, Script, configured

from lib import paths
from lib.judge import batch_files
from lib.sample.batch_http import Batches, Faults


@contextmanager
def serving(script: Script, folder: Path, faults: Faults = Faults(), at: int = 0, seconds: float = 0.0):
    """Yield the base url and the batches of a server that follows the script, in a thread of this process."""
    loop, ready, port, batches = asyncio.new_event_loop(), threading.Event(), [], Batches(folder, faults, seconds)

    async def start():
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", script.answer)
        batches.add_to(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", at, reuse_address=True).start()
        port.append(runner.addresses[0][1])
        ready.set()
        return runner

    def work():
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield f"http://127.0.0.1:{port[0]}/v1", batches
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


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
