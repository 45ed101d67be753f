"""The local judge: a real HTTP server that answers from the planted truth, and its life in a notebook.

    python -m lib.sample.judge_server runs/sample/planted --port 0 --personality judge --calls calls.txt

It speaks OpenAI Chat Completions and sees the HTTP request only: it finds query and document by the texts that
arrived, and answers from what was left after the cut. A text that was never planted gets HTTP 400 and is counted
under `GET /stats`.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, TimeoutExpired

from aiohttp import web

from lib import processes
from lib.sample.failures import ALL, KINDS, Calls, chosen, script
from lib.sample.judge_http import JudgeServer
from lib.sample.personality import MATRICES
from lib.sample.received import Planted

KEY, URL = "QRELBOOK_JUDGE_KEY", "QRELBOOK_JUDGE_URL"


@contextmanager
def running(
    planted: str | Path,
    *,
    seed: int = 0,
    personality: str = "judge",
    failures: float = 0.05,
    lost: float = 0.01,
    calls: str | Path | None = None,
    kinds: Sequence[str] = KINDS,
    script: str = "",
    gullible: bool = False,
    patience: float = 60.0,
) -> Iterator[str]:
    """Serve a planted folder for the length of the block and yield the base url, `http://127.0.0.1:PORT/v1`.

    `failures` and `lost` are the shares of pairs that fail at first and for this server's life (`lib.sample.failures`).
    `kinds` are the ways in which they fail, `script` what befalls calls by their number (`failures.script`). A `gullible`
    judge obeys what stands outside the document's slot. `calls` is `calls-<personality>.txt` in the folder unless it is named. The server is a child in a process group of
    its own that dies with this process. RuntimeError, with the last line of the child's stderr, where it is not ready
    within `patience` seconds or ends before the block does.
    """
    calls = Path(calls or Path(planted) / f"calls-{personality}.txt").absolute()
    options = {"--seed": seed, "--personality": personality, "--failures": failures, "--lost": lost, "--calls": calls}
    options |= {"--kinds": ",".join(kinds), "--script": script}
    with tempfile.TemporaryDirectory(prefix="qrelbook-judge-") as scratch:
        ready, errors = Path(scratch) / "url", Path(scratch) / "stderr"
        options |= {"--ready": ready, "--parent": os.getpid()}
        words = [str(word) for option in options.items() for word in option] + ["--gullible"] * gullible
        with open(errors, "wb") as stderr:
            child = processes.child(
                "lib.sample.judge_server", str(Path(planted).absolute()), *words, stdin=DEVNULL, stdout=DEVNULL, stderr=stderr
            )
        try:
            until = time.monotonic() + patience
            while not ready.exists():
                if child.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(_last_words(errors, f"the local judge was not ready within {patience} s"))
                time.sleep(0.02)
            failed = None
            try:
                yield ready.read_text()
            except Exception as error:  # of the block; where the server has ended, that is why
                failed = error
            if failed:  # a server that is just ending shows at its client first
                with suppress(TimeoutExpired):
                    child.wait(1)
            if child.poll() is not None:
                raise RuntimeError(_last_words(errors, f"the local judge ended in use with exit code {child.returncode}")) from failed
            if failed:
                raise failed
        finally:
            child.terminate()
            try:
                child.wait(5)
            except TimeoutExpired:
                child.kill()
                child.wait()


@contextmanager
def endpoint(judge: str, run: str | Path, **options) -> Iterator[str]:
    """The base url of a notebook's judge: `sample`, `env` or a url of its own.

    `sample` serves `<run>/planted` with the options of `running`, with "sample" as QRELBOOK_JUDGE_KEY where none is
    set, and raises RuntimeError at the end where a text arrived that was never planted. `env` is QRELBOOK_JUDGE_URL.
    """
    if judge == "sample":
        had_key = KEY in os.environ
        os.environ.setdefault(KEY, "sample")
        try:
            with running(Path(run) / "planted", **options) as url:
                yield url
                _all_known(url)
        finally:
            if not had_key:
                os.environ.pop(KEY, None)
    elif judge == "env":
        if not os.environ.get(URL):
            raise ValueError(f"judge is env and {URL} is not set; set it to the url of a judge, or take judge = sample")
        yield os.environ[URL]
    elif re.fullmatch(r"https?://[^\s/]+\S*", judge):
        yield judge
    else:
        raise ValueError(f"judge {judge!r} is none of sample, env or a url such as http://127.0.0.1:8000/v1")


def stats(url: str) -> dict:
    """What the server at a base url has answered so far, by kind."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url.removesuffix("/v1") + "/stats", timeout=10) as response:
        return json.load(response)


def _all_known(url: str) -> None:
    unknown = stats(url)["unknown_texts"]
    if unknown:
        raise RuntimeError(
            f"the local judge got {unknown} requests with a text that was never planted; "
            "the run holds other texts than its planted folder, so run its first notebook again"
        )


def _last_words(errors: Path, otherwise: str) -> str:
    lines = errors.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else otherwise


async def _serve(server: JudgeServer, port: int, ready: Path | None) -> None:
    runner = web.AppRunner(server.application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024, reuse_address=True).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    print(url, flush=True)
    if ready:
        temporary = ready.with_name(f".{ready.name}.tmp")
        temporary.write_text(url)
        os.replace(temporary, ready)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await runner.cleanup()


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share; it lies in 0 to 1")
    return value


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m lib.sample.judge_server", description="Serve the planted judge until it is told to end.")
    parser.add_argument("planted", type=Path, help="a folder that lib.sample.world or lib.sample.gsm8k wrote")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the url is printed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--personality", choices=list(MATRICES), default="judge")
    parser.add_argument("--failures", type=_share, default=0.0, metavar="SHARE", help="pairs that fail their first one or two calls")
    parser.add_argument("--lost", type=_share, default=0.0, metavar="SHARE", help="pairs that fail as long as this server lives")
    parser.add_argument("--kinds", type=chosen, default=KINDS, metavar="KIND,KIND", help=f"how they fail, of {', '.join(ALL)}")
    parser.add_argument("--script", type=script, default=[], metavar="KIND:CALL-CALL,...", help="how calls fail by their number; restart too")
    parser.add_argument("--gullible", action="store_true", help="obeys what stands outside the document's slot; takes fences without a nonce")
    parser.add_argument("--calls", type=Path, required=True, metavar="FILE", help="how often each pair was asked; read at the start")
    parser.add_argument("--ready", type=Path, metavar="FILE", help="gets the url once the server answers")
    parser.add_argument("--parent", type=int, metavar="PID", help="the process that starts it, if it has to end with that")
    given = parser.parse_args(arguments)
    if given.parent:
        processes.die_with_parent()
        if os.getppid() != given.parent:  # it died while this one was still importing
            sys.exit(f"lib.sample.judge_server: process {given.parent} has ended")
    try:
        calls = Calls(given.calls)
        pairs = given.personality, given.seed, given.failures, given.lost
        server = JudgeServer(Planted(given.planted), *pairs, calls, given.kinds, given.script, given.gullible)
        asyncio.run(_serve(server, given.port, given.ready))
    except (ValueError, OSError) as error:
        sys.exit(f"lib.sample.judge_server: {error}")


if __name__ == "__main__":
    main()
