"""The batches of a set on this machine's side: files of requests, and what was submitted and is not yet in the attempts.

`attempts/<set>/batches/<submission>.json` is the state of one batch, written whole at every step; beside it
`.keys.jsonl` names its pairs, with the columns of their attempts that are known before the reply. The submission is a
random word that goes to the server as metadata, so that a batch whose creation nobody heard of is found again. The
requests themselves hold document text: `.requests.jsonl` lies there until it is uploaded, and no longer.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from lib import files, paths
from lib.judge import contract, drivers, store, turns
from lib.judge.pairs import Pair, Pairs
from lib.judge.turns import Config

WRITTEN, UPLOADED, SUBMITTED, KEPT, DONE = "written", "uploaded", "submitted", "kept", "done"
_KNOWN = {"key", "task_id", "query", "doc", "version", "stage", "round", "pass", "attempt"}  # some of a named pair's fields
_ENDPOINT = "/v1/chat/completions"


class Submission(NamedTuple):
    """One batch: where it stands, what its file was, its names at the server, and what was odd in its files."""

    submission: str
    set: str
    part: str
    stage: str
    requests: int
    bytes: int
    file_sha256: str
    file: str | None = None
    batch: str | None = None
    status: str | None = None
    results: list[str] = []
    unknown: list[str] = []
    unreadable: int = 0
    missing: int = 0
    repeated: int = 0
    differing: int = 0

    @property
    def metadata(self) -> dict[str, str]:
        """What the batch carries at the server."""
        return {"set": self.set, "part": self.part, "file_sha256": self.file_sha256, "submission": self.submission}


def folder(run: str | Path, intents_set: str) -> Path:
    """Where the state of a set's batches lies."""
    return Path(run) / "attempts" / intents_set / "batches"


def path(run: str | Path, it: Submission, kind: str = "json") -> Path:
    """The state of a submission, or its `keys.jsonl`, `requests.jsonl`, `output.jsonl` or `error.jsonl`."""
    return folder(run, it.set) / f"{it.submission}.{kind}"


def save(run: str | Path, it: Submission, **changed) -> Submission:
    """Write the state whole, with changes, and give it."""
    it = it._replace(**changed)
    files.write_json(path(run, it), it._asdict())
    return it


def forget(run: str | Path, it: Submission, *kinds: str) -> None:
    """Remove files of a submission; without kinds all of them, so that its pairs are owed their calls again."""
    for kind in kinds or ("requests.jsonl", "output.jsonl", "error.jsonl", "json", "keys.jsonl"):
        path(run, it, kind).unlink(missing_ok=True)


def state(source: Path) -> Submission:
    """The state that a file holds; StoreError where it holds none."""
    try:
        it = Submission(**json.loads(files.read_bytes(source)))
        if it.submission != source.stem or type(it.requests) is not int or it.stage not in (WRITTEN, UPLOADED, SUBMITTED, KEPT, DONE):
            raise ValueError("its name, stage or requests are not those of a batch")
        return it
    except (ValueError, TypeError, RecursionError) as error:
        raise store.StoreError(
            f"{paths.shown(source)} is no state of a batch ({error}); look at the server whether that batch is paid for, then delete the file"
        ) from None


def unfinished(run: str | Path, intents_set: str) -> list[Submission]:
    """The submissions that a killed or stopped client left, in the order of their names."""
    found = map(state, sorted(folder(run, intents_set).glob("*.json")))
    return [it for it in found if it.stage != DONE]


def unsent(run: str | Path, intents_set: str) -> list[str]:
    """Remove what belongs to no unfinished submission; the keys in files that a killed client never finished writing."""
    here, keys = folder(run, intents_set), []
    known = {it.submission for it in unfinished(run, intents_set)}
    for left in sorted(here.glob("*.jsonl")):
        if (name := left.name.partition(".")[0]) in known:
            continue
        if left.name.endswith(".keys.jsonl") and not (here / f"{name}.json").exists():
            keys += [json.loads(line)["key"] for line in left.read_bytes().split(b"\n")[:-1]]
        left.unlink()
    return keys


def asked(run: str | Path, it: Submission) -> dict[str, dict]:
    """The pairs of a submission by key, each with the columns of its attempt that are known before the reply."""
    source = path(run, it, "keys.jsonl")
    try:
        rows = [json.loads(line) for line in files.read_bytes(source).splitlines()]
        if len(rows) != it.requests or any(not _KNOWN <= row.keys() for row in rows):
            raise ValueError(f"it has {len(rows)} lines and the batch {it.requests} requests, or a line lacks a field")
        return {row["key"]: row for row in rows}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise store.StoreError(
            f"{paths.shown(source)} does not name the pairs of its batch ({error}); bring it back from a copy, "
            f"or delete it and {path(run, it).name} to ask them again and pay twice"
        ) from None


def request(by, pair: Pair) -> bytes:
    """The line of a pair in a file of requests."""
    line = {"custom_id": pair.key, "method": "POST", "url": _ENDPOINT, "body": {"model": by.model, **drivers.body(by, pair)}}
    return json.dumps(line).encode("ascii") + b"\n"


class _File:
    """A submission that is being written, unbuffered: a pair is named before anything is reserved for it."""

    def __init__(self, config: Config, part: str):
        self._config, self._started = config, Submission(secrets.token_hex(8), config.set, part, WRITTEN, 0, 0, "")
        folder(config.run, config.set).mkdir(parents=True, exist_ok=True)
        self._keys, self._requests = (open(path(config.run, self._started, kind), "xb", buffering=0) for kind in ("keys.jsonl", "requests.jsonl"))
        self.requests, self.bytes, self._digest = 0, 0, hashlib.sha256()

    def name(self, row: dict) -> None:
        self._before = self._keys.tell()
        self._keys.write(json.dumps(row).encode() + b"\n")

    def unname(self) -> None:
        self._keys.truncate(self._before)

    def add(self, line: bytes) -> None:
        self._requests.write(line)
        self._digest.update(line)
        self.requests, self.bytes = self.requests + 1, self.bytes + len(line)

    def close(self) -> Submission | None:
        """The submission with its state on disk; without a request nothing of it."""
        for file in (self._keys, self._requests):
            os.fsync(file.fileno())
            file.close()
        if not self.requests:
            forget(self._config.run, self._started)
            return None
        return save(self._config.run, self._started, requests=self.requests, bytes=self.bytes, file_sha256=self._digest.hexdigest())


def gather(config: Config, render: Pairs, part: str, in_pass: int, busy: set[str], admit: Callable[[Pair], bool]) -> Iterator[Submission]:
    """The pairs of a part that are owed a call in this pass and are in no batch, as files within the limits of the configuration.

    A file is there with its state when it is yielded. `admit` is asked for each pair; its first no ends the last file.
    """
    by, file = render.by, None
    known = {"model": by.model, "prompt_sha256": by.prompt.sha256, "schema_sha256": contract.SCHEMA_SHA256}
    for _, pair, intent, turn in turns.owed(config, render, part):
        if turn is None or turn.in_pass != in_pass or pair.key in busy:
            continue
        line = request(by, pair)
        if len(line) > config.file_bytes:
            raise ValueError(
                f"the request of task {pair.task} has {len(line):,} bytes, a file of a batch at most {config.file_bytes:,}; cut documents shorter"
            )
        if file and (file.requests == config.file_requests or file.bytes + len(line) > config.file_bytes):
            yield file.close()
            file = None
        file = file or _File(config, part)
        ids = {"key": pair.key, "task_id": pair.task, "query": pair.query, "doc": pair.doc}
        file.name({**ids, **intent, "pass": in_pass, "attempt": turn.number, **known})
        if not admit(pair):
            file.unname()
            break
        file.add(line)
    if file and (last := file.close()):
        yield last
