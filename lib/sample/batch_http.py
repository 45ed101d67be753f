"""The wire form of OpenAI's files and batches in front of a chat-completions server, with its state in a folder.

A batch's lines are sent to this server's own `/v1/chat/completions`, so each is answered as the single call would be:
a reply in the output file, a refused or broken call in the error file. What stands in the folder is all there is: a
server that starts again on it goes on with the batches that were in progress. `Faults` spoil the first batches.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import random
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import aiohttp
from aiohttp import web

from lib import files

REQUESTS, BYTES = 50_000, 200_000_000  # of one file
ENDPOINT = "/v1/chat/completions"
_AT_ONCE, _LINE_SECONDS = 16, 60.0
_OPEN = ("validating", "in_progress", "finalizing", "cancelling")


class Faults(NamedTuple):
    """What is wrong with the first `batches` batches: shares of the lines, a count of unknown ids, a torn output file.

    `refused` creates get a 429 first, and as many `lost` ones make their batch and break the connection before they say so.
    """

    batches: int = 1
    missing: float = 0.0
    expired: float = 0.0
    repeated: float = 0.0
    differing: float = 0.0
    unknown: int = 0
    torn: bool = False
    refused: int = 0
    lost: int = 0


class Batches:
    """Files and batches under one folder; `seconds` is what each status lasts at least."""

    def __init__(self, folder: str | Path, faults: Faults = Faults(), seconds: float = 0.0):
        self._folder, self._faults, self._seconds = Path(folder), faults, seconds
        self._tasks: dict[str, asyncio.Task] = {}
        self._creates = 0
        self._cancelled: set[str] = set()

    def add_to(self, app: web.Application) -> None:
        """Serve the routes of files and batches beside those of the application."""
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files", self._files)
        app.router.add_get("/v1/files/{id}", self._file)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_delete("/v1/files/{id}", self._delete)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._retrieve)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel)
        app.on_shutdown.append(self._end)

    def submitted(self) -> Counter[str]:
        """How often each custom id was in the file of a batch that was created."""
        return Counter(name for batch in self._all("batches") for name in batch["_ids"])

    async def _end(self, app: web.Application) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # files

    async def _upload(self, request: web.Request) -> web.Response:
        if refused := _locked(request):
            return refused
        name = f"file-{uuid.uuid4().hex[:24]}"
        purpose, filename, size = None, None, 0
        target = self._folder / "files" / f"{name}.jsonl"
        async for field in await request.multipart():
            if field.name == "purpose":
                purpose = await field.text()
            elif field.name == "file":
                filename = field.filename
                with files.whole(target) as temporary, open(temporary, "wb") as out:
                    while piece := await field.read_chunk(2**16):
                        out.write(piece)
                        size += len(piece)
        if purpose is None or filename is None:
            return _error(400, "a file and its purpose must be given", "invalid_request")
        return web.json_response(self._made(name, filename, purpose, size))

    def _made(self, name: str, filename: str, purpose: str, size: int) -> dict:
        made = {
            "id": name, "object": "file", "bytes": size, "created_at": int(time.time()), "filename": filename, "purpose": purpose,
            "status": "processed",
        }  # fmt: skip
        files.write_json(self._folder / "files" / f"{name}.json", made)
        return made

    async def _files(self, request: web.Request) -> web.Response:
        found = [file for file in self._all("files") if request.query.get("purpose") in (None, file["purpose"])]
        return _locked(request) or _page(request, found)

    async def _file(self, request: web.Request) -> web.Response:
        found = self._read("files", request.match_info["id"])
        return _locked(request) or (web.json_response(found) if found else _error(404, "No such File object", "not_found"))

    async def _content(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        if not self._read("files", name):
            return _error(404, "No such File object", "not_found")
        return _locked(request) or web.FileResponse(self._folder / "files" / f"{name}.jsonl")

    async def _delete(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if refused := _locked(request):
            return refused
        if not self._read("files", name):
            return _error(404, "No such File object", "not_found")
        for ending in (".json", ".jsonl"):
            (self._folder / "files" / f"{name}{ending}").unlink(missing_ok=True)
        return web.json_response({"id": name, "object": "file", "deleted": True})

    # batches

    async def _create(self, request: web.Request) -> web.Response:
        if refused := _locked(request):
            return refused
        self._creates += 1
        if self._creates <= self._faults.refused:
            return _error(429, "Rate limit reached for batches.", "rate_limit_exceeded", {"retry-after-ms": "20"})
        asked = await request.json()
        name = f"batch_{uuid.uuid4().hex[:24]}"
        if asked.get("endpoint") != ENDPOINT or not self._read("files", str(asked.get("input_file_id"))):
            return _error(400, f"a batch needs an uploaded file and the endpoint {ENDPOINT}", "invalid_request")
        known = {field: asked.get(field) for field in ("endpoint", "input_file_id", "completion_window", "metadata")}
        known |= {"output_file_id": None, "error_file_id": None, "errors": None, "request_counts": {"total": 0, "completed": 0, "failed": 0}}
        batch = {"id": name, "object": "batch", **known, "created_at": int(time.time()), "status": "validating"}
        source = self._folder / "files" / f"{asked['input_file_id']}.jsonl"
        lines, faults = _checked(source.read_bytes())
        batch["_ids"], batch["_number"] = [line["custom_id"] for line in lines], len(self._all("batches"))
        if faults:
            batch |= {"status": "failed", "failed_at": int(time.time()), "errors": {"object": "list", "data": faults}}
        self._keep(batch)
        self._awake(request)
        if self._faults.refused < self._creates <= self._faults.refused + self._faults.lost:
            request.transport.close()
        return web.json_response(_public(batch))

    async def _list(self, request: web.Request) -> web.Response:
        self._awake(request)
        return _locked(request) or _page(request, [_public(batch) for batch in self._all("batches")])

    async def _retrieve(self, request: web.Request) -> web.Response:
        self._awake(request)
        found = self._read("batches", request.match_info["id"])
        return _locked(request) or (web.json_response(_public(found)) if found else _error(404, "No batch found", "not_found"))

    async def _cancel(self, request: web.Request) -> web.Response:
        found = self._read("batches", request.match_info["id"])
        if not found or found["status"] not in _OPEN:
            return _error(409 if found else 404, "No batch that could be cancelled", "not_found")
        self._keep(found | {"status": "cancelling", "cancelling_at": int(time.time())})
        self._cancelled.add(found["id"])
        self._awake(request)
        return _locked(request) or web.json_response(_public(self._read("batches", found["id"])))

    def _awake(self, request: web.Request) -> None:
        """Work on every open batch; the first request after a start says at which address this server is."""
        for batch in self._all("batches"):
            if batch["status"] in _OPEN and batch["id"] not in self._tasks:
                work = self._work(batch["id"], str(request.url.origin()), request.headers["Authorization"])
                task = self._tasks[batch["id"]] = asyncio.create_task(work)
                task.add_done_callback(lambda _, name=batch["id"]: self._tasks.pop(name, None))

    async def _work(self, name: str, origin: str, key: str) -> None:
        await asyncio.sleep(self._seconds)
        batch = self._read("batches", name)
        source = self._folder / "files" / f"{batch['input_file_id']}.jsonl"
        lines = [json.loads(line) for line in source.read_bytes().splitlines()]
        done = self._folder / "batches" / f"{name}.done.jsonl"
        had = _whole(done)
        self._status(name, "in_progress", "validating")
        if batch["status"] == "cancelling":
            self._cancelled.add(name)
        await asyncio.sleep(self._seconds)
        gate = asyncio.Semaphore(_AT_ONCE)
        async with aiohttp.ClientSession(headers={"Authorization": key}) as session:
            with open(done, "ab", buffering=0) as out:

                async def one(line: dict) -> None:
                    async with gate:
                        if name not in self._cancelled:
                            out.write(json.dumps(await _call(session, origin, name, line)).encode() + b"\n")

                await asyncio.gather(*(one(line) for line in lines if line["custom_id"] not in {said["custom_id"] for said in had}))
        self._status(name, "finalizing", "in_progress")
        await asyncio.sleep(self._seconds)
        self._close(self._read("batches", name), _whole(done))
        done.unlink()

    def _status(self, name: str, status: str, before: str) -> None:
        batch = self._read("batches", name)
        if batch["status"] == before:  # and not cancelled meanwhile
            self._keep(batch | {"status": status, f"{status}_at": int(time.time())})

    def _close(self, batch: dict, said: list[dict]) -> None:
        """Write output and error file, spoilt where a fault says so, and end the batch."""
        status = "cancelled" if batch["status"] == "cancelling" else "completed"
        order = {name: at for at, name in enumerate(batch["_ids"])}
        said.sort(key=lambda line: order[line["custom_id"]])
        if status == "cancelled":
            missing = order.keys() - {line["custom_id"] for line in said}
            told = "This request was not executed: the batch was cancelled."
            said += [_unasked(batch["id"], name, "batch_cancelled", told) for name in sorted(missing)]
        spoilt = batch["_number"] < self._faults.batches
        faults = self._faults if spoilt else Faults()
        if faults.expired:
            status = "expired"
        said = [line for whole in said for line in _spoilt(whole, faults)]
        said += [said[0] | {"custom_id": f"unknown-{at}"} for at in range(faults.unknown)]
        good = [line for line in said if line["response"] and line["response"]["status_code"] == 200]
        bad = [line for line in said if line not in good]
        for field, lines in (("output_file_id", good), ("error_file_id", bad)):
            if lines:
                data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
                data = data[: len(data) - 40] if faults.torn and field == "output_file_id" else data
                made = f"file-{uuid.uuid4().hex[:24]}"
                with files.whole(self._folder / "files" / f"{made}.jsonl") as temporary:
                    temporary.write_bytes(data)
                self._made(made, f"{batch['id']}_{field.removesuffix('_file_id')}.jsonl", "batch_output", len(data))
                batch[field] = made
        counts = {"total": len(order), "completed": len(good), "failed": len(bad)}
        self._keep(batch | {"status": status, f"{status}_at": int(time.time()), "request_counts": counts})

    # the folder

    def _keep(self, batch: dict) -> None:
        files.write_json(self._folder / "batches" / f"{batch['id']}.json", batch)

    def _read(self, kind: str, name: str) -> dict | None:
        with contextlib.suppress(OSError):
            return json.loads((self._folder / kind / f"{os.path.basename(name)}.json").read_bytes())
        return None

    def _all(self, kind: str) -> list[dict]:
        found = [json.loads(path.read_bytes()) for path in (self._folder / kind).glob("*.json")]
        return sorted(found, key=lambda thing: (-thing["created_at"], thing["id"]))


async def _call(session: aiohttp.ClientSession, origin: str, batch: str, line: dict) -> dict:
    """The line of the output or error file for a request: what this server answers to the single call."""
    try:
        async with session.post(origin + line["url"], json=line["body"], timeout=aiohttp.ClientTimeout(_LINE_SECONDS)) as response:
            text = await response.text()
            try:
                body = json.loads(text)
            except ValueError:
                body = text
            answer = {"status_code": response.status, "request_id": response.headers.get("x-request-id"), "body": body}
            return {"id": _request_id(batch, line["custom_id"]), "custom_id": line["custom_id"], "response": answer, "error": None}
    except (aiohttp.ClientError, TimeoutError) as error:
        return _unasked(batch, line["custom_id"], "server_error", f"the request ended without an answer ({type(error).__name__})")


def _unasked(batch: str, name: str, code: str, message: str) -> dict:
    return {"id": _request_id(batch, name), "custom_id": name, "response": None, "error": {"code": code, "message": message}}


def _request_id(batch: str, name: str) -> str:
    return f"batch_req_{hashlib.sha256(f'{batch} {name}'.encode()).hexdigest()[:24]}"


def _spoilt(line: dict, faults: Faults) -> list[dict]:
    """The lines that stand for this one: none, its expiry, twice the same, or a second one with another answer."""
    drawn, until = random.Random(line["custom_id"]).random(), 0.0
    for fault in ("missing", "expired", "repeated", "differing"):
        until += getattr(faults, fault)
        if drawn < until:
            told = "This request could not be executed before the completion window expired."
            expired, again = _unasked("", line["custom_id"], "batch_expired", told), line | {"id": "batch_req_again"}
            return {"missing": [], "expired": [expired], "repeated": [line, again], "differing": [line, _other(line)]}[fault]
    return [line]


def _other(line: dict) -> dict:
    other = json.loads(json.dumps(line))
    if isinstance(body := (other["response"] or {}).get("body"), dict) and body.get("choices"):
        message = body["choices"][0]["message"]
        message["content"] = (message["content"] or "").replace("0", "1") + " "
    else:
        other["error"] = {"code": "server_error", "message": "another end of the same request"}
        other["response"] = None
    return other


def _checked(data: bytes) -> tuple[list[dict], list[dict]]:
    """The requests of an uploaded file, and what forbids to run it, as the errors of a batch."""
    lines, faults, seen = [], [], set()
    if len(data) > BYTES:
        faults.append(_fault("file_too_large", f"the file holds more than {BYTES:,} bytes", None))
    for number, text in enumerate(data.splitlines(), 1):
        try:
            line = json.loads(text)
            name, body = line["custom_id"], line["body"]
            if not isinstance(name, str) or not isinstance(body, dict) or (line["method"], line["url"]) != ("POST", ENDPOINT):
                raise TypeError("a line needs custom_id, method, url and body")
        except (ValueError, TypeError, KeyError) as error:
            faults.append(_fault("invalid_json_line", f"line {number} is no request ({error})", number))
            continue
        if name in seen:
            faults.append(_fault("duplicate_custom_id", f"the custom_id of line {number} was used before", number))
        seen.add(name)
        lines.append({"custom_id": name})
    if not lines and not faults:
        faults.append(_fault("empty_file", "the file holds no request", None))
    if len(lines) > REQUESTS:
        faults.append(_fault("too_many_requests", f"the file holds more than {REQUESTS:,} requests", None))
    return lines, faults


def _fault(code: str, message: str, line: int | None) -> dict:
    return {"code": code, "message": message, "param": None, "line": line}


def _whole(path: Path) -> list[dict]:
    """The whole lines of a file that may have been cut by the end of the server; the torn rest is taken off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    os.truncate(path, end)
    return [json.loads(line) for line in data[:end].splitlines()]


def _public(batch: dict) -> dict:
    return {field: value for field, value in batch.items() if not field.startswith("_")}


def _page(request: web.Request, found: list[dict]) -> web.Response:
    """One page of a list: `limit` after the id `after`."""
    names, limit = [thing["id"] for thing in found], int(request.query.get("limit", 20))
    first = names.index(request.query["after"]) + 1 if request.query.get("after") in names else 0
    page = found[first : first + limit]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return web.json_response({"object": "list", "data": page, **ends, "has_more": first + limit < len(found)})


def _locked(request: web.Request) -> web.Response | None:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return None
    return _error(401, "You didn't provide an API key: send it as Authorization: Bearer KEY.", "invalid_api_key")


def _error(status: int, message: str, code: str, headers: dict | None = None) -> web.Response:
    return web.json_response({"error": {"message": message, "type": code, "param": None, "code": code}}, status=status, headers=headers)
