"""A scripted chat-completions server and a run folder of a few pairs, for the judge's tests."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from lib import contracts, paths
from lib.judge import answers, client, prompt, store
from lib.judge.pairs import Pairs
from lib.judge.turns import Config

MESSAGE = re.compile(
    r"task_id: ([0-9a-f]{16})\nguideline_version: (\S+)\n\n<<<QUERY ([0-9a-f]{16})>>>\n(.*)\n<<<END QUERY \3>>>\n\n"
    r"<<<DOCUMENT \3>>>\n(.*)\n<<<END DOCUMENT \3>>>\Z",
    re.DOTALL,
)
TIED = {
    2: (True, "correct", ["full_solution"]),
    1: (True, "partial", ["key_lemma"]),
    0: (True, "no_answer", ["topic_only"]),
    None: (False, "not_assessed", ["query_corrupted"]),
}


def fields(score, task="0123456789abcdef", /, **changed) -> dict:
    """The 8 fields of a valid reply."""
    evaluable, validity, codes = TIED[score]
    valid = {
        "task_id": task, "guideline_version": "strict-math-retrieval-v1", "query_evaluable": evaluable, "score": score,
        "answer_validity": validity, "reason_codes": codes, "confidence": 0.75, "rationale": "The lemma in line 2 is what is asked.",
    }  # fmt: skip
    return valid | changed


def valid(score, /, **changed):
    """A scripted reply that says `score` for whatever task is asked."""
    return lambda task: {"content": json.dumps(fields(score, task, **changed))}


def content(text, finish="stop", **more):
    return lambda task: {"content": text, "finish": finish, **more}


def error(status, code=None, headers=(), message="no"):
    return {"status": status, "headers": dict(headers), "error": {"message": message, "code": code, "type": code}}


KEY = "sk-sentinel-0123456789"
DROP, CUT = {"drop": True}, {"cut": True}


class Script:
    """Replies by document text, the last one repeated; counts and keeps what came in."""

    def __init__(self, replies: dict[str, list], seconds: float = 0.0):
        self.replies, self.seconds = replies, seconds
        self.calls, self.seen, self.headers = Counter(), defaultdict(list), []
        self.called = threading.Event()
        self.flying, self.most_flying = 0, 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        task, _, _, _, document = MESSAGE.fullmatch(body["messages"][1]["content"]).groups()
        number = self.calls[document]
        self.calls[document] += 1
        self.seen[document].append(body)
        self.headers.append(dict(request.headers))
        self.called.set()
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        await asyncio.sleep(self.seconds)
        self.flying -= 1
        script = self.replies.get(document, self.replies.get("*"))
        reply = script[min(number, len(script) - 1)]
        reply = reply(task) if callable(reply) else reply
        if reply.get("delay"):
            await asyncio.sleep(reply["delay"])
        if reply.get("drop"):
            request.transport.close()
            return web.Response()
        if "error" in reply:
            return web.json_response({"error": reply["error"]}, status=reply["status"], headers=reply["headers"])
        if "raw" in reply:
            return web.Response(text=reply["raw"], content_type=reply["type"])
        message = {"role": "assistant", "content": reply.get("content"), "refusal": reply.get("refusal")}
        told = {
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": reply.get("finish", "stop"), "message": message}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }  # fmt: skip
        if reply.get("cut"):
            response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "5000"})
            await response.prepare(request)
            await response.write(json.dumps(told).encode()[:60])
            request.transport.close()
            return response
        return web.json_response(told, headers={"x-request-id": f"request-{sum(self.calls.values())}"})


@contextmanager
def serving(script: Script, at: int = 0, beside: Callable[[web.Application], None] = lambda app: None):
    """Yield the base url of a server that follows the script, in a thread of this process; 0 takes a free port, `beside` adds routes."""
    loop = asyncio.new_event_loop()
    ready, port = threading.Event(), []

    async def start():
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", script.answer)
        beside(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", at).start()
        port.append(runner.addresses[0][1])
        ready.set()
        return runner

    def work():
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield f"http://127.0.0.1:{port[0]}/v1"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def table(run: Path, name: str, folder: str, parts: list[list[dict]]) -> None:
    lines = [
        contracts.write(name, contracts.table(name, rows), run / folder / f"part-{number:05d}.parquet") for number, rows in enumerate(parts)
    ]
    contracts.finish(run / folder, lines)


def intent(query: int, doc: int, version="v1", **changed) -> dict:
    known = {
        "query": query, "doc": doc, "judge": "llm", "version": version, "stage": "dense 1-5", "round": 1, "reason": "dense rank 1",
        "max_chars": 1000, "rank": 1, "withdrawn": False,
    }  # fmt: skip
    return known | changed


def world(run: Path, documents: list[str], queries_a_part: int = 2, parts: int = 1) -> Path:
    """A run of `parts` query parts and the given document texts; intents are the caller's."""
    rows = [{"docid": f"d{i}", "text": text, "n_chars": len(text), "n_tokens": 1, "removed": False} for i, text in enumerate(documents)]
    table(run, "documents", "documents", [rows[: len(rows) // 2], rows[len(rows) // 2 :]])
    ask = iter(range(queries_a_part * parts))
    table(run, "queries", "queries", [
        [{"qid": f"q{i}", "text": f"What is {i}?", "source_docid": None, "source_doc": None, "keep": True} for _, i in zip(range(queries_a_part), ask)]
        for _ in range(parts)
    ])  # fmt: skip
    return run


def judge(**parameters):
    return prompt.judge("m", **{"temperature": 0.0} | parameters)

def pairs_of(run: Path, texts: list[str], **changed) -> Path:
    """A run whose first query has an intent for each of the texts."""
    world(run, texts)
    table(run, "intents", "intents/v1", [[intent(0, doc, **changed) for doc in range(len(texts))]])
    return run


def configured(run: Path, url: str, **changed) -> Config:
    known = {"passes": 1, "budget": 3, "backoff": 0.01, "timeout": 5.0, "model": "m", "parameters": {"temperature": 0.0}, "set": "v1"}
    return Config(run=str(run), base_url=url, **known | {"prompt": str(prompt.PROMPT)} | changed)


def ask(run: Path, url: str, key=KEY, **changed) -> tuple[dict, int]:
    """The client in this process."""
    return asyncio.run(client._main(configured(run, url, **changed), key))


def rows(run: Path, part="part-00000") -> list[dict]:
    return store.read(store.path(run, "v1", part))


def told(run: Path, by=None) -> dict[int, str]:
    """Document row -> answer, for the one part."""
    found = answers.answers(run, "v1", "part-00000", Pairs(run, by or judge()))
    return dict(zip(found["doc"].to_pylist(), found["answer"].to_pylist(), strict=True))


def scores(run: Path) -> dict[int, int | None]:
    found = answers.answers(run, "v1", "part-00000", Pairs(run, judge())).to_pylist()
    return {row["doc"]: row["score"] for row in found if row["answer"] in answers.VALID}


def start(run: Path, url: str, folder: Path, **changed) -> subprocess.Popen:
    """The client as a process of its own; its configuration lies in the folder."""
    config = folder / "config.json"
    config.write_text(json.dumps(configured(run, url, **changed)._asdict()))
    return subprocess.Popen(
        [sys.executable, "-m", "lib.judge.client", str(config)], cwd=paths.ROOT, env=os.environ | {"QRELBOOK_JUDGE_KEY": KEY},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
