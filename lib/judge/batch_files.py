"""The batches of a set on this machine's side: files of requests, and what was submitted and is not yet in the attempts.

`attempts/<set>/batches/<submission>.json` is the state of one batch, written whole at every step; beside it
`.keys.jsonl` names its pairs, with the columns of their attempts that are known before the reply. The submission is a
random word that goes to the server as metadata, so that a batch whose creation nobody heard of is found again. The
requests themselves hold document text: `.requests.jsonl` lies there until it is uploaded, and no longer.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from lib import files, paths
from lib.judge import contract, drivers, store, turns
from lib.judge.pairs import Pair, Pairs
from lib.judge.turns import Config

REQUESTS, BYTES = 50_000, 200_000_000  # of one file, the service's limits
WRITTEN, UPLOADED, SUBMITTED, KEPT, DONE = "written", "uploaded", "submitted", "kept", "done"
_ENDPOINT = "/v1/chat/completions"


class Limits(NamedTuple):
    """The most requests and bytes of one file."""

    requests: int = REQUESTS
    bytes: int = BYTES


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
        return Submission(**json.loads(files.read_bytes(source)))
    except (ValueError, TypeError) as error:
        raise store.StoreError(
            f"{paths.shown(source)} is no state of a batch ({error}); look at the server whether that batch is paid for, then delete the file"
        ) from None


def unfinished(run: str | Path, intents_set: str) -> list[Submission]:
    """The submissions that a killed or stopped client left, in the order of their names; what has no state is removed."""
    here = folder(run, intents_set)
    found = [it for it in map(state, sorted(here.glob("*.json"))) if it.stage != DONE]
    known = {it.submission for it in found}
    for left in here.glob("*.jsonl"):
        if left.name.partition(".")[0] not in known:
            left.unlink()
    return found


def asked(run: str | Path, it: Submission) -> dict[str, dict]:
    """The pairs of a submission by key, each with the columns of its attempt that are known before the reply."""
    rows = map(json.loads, files.read_bytes(path(run, it, "keys.jsonl")).splitlines())
    return {row["key"]: row for row in rows}


def request(by, pair: Pair) -> bytes:
    """The line of a pair in a file of requests."""
    line = {"custom_id": pair.key, "method": "POST", "url": _ENDPOINT, "body": {"model": by.model, **drivers.body(by, pair)}}
    return json.dumps(line).encode("ascii") + b"\n"


def gather(
    config: Config, render: Pairs, part: str, in_pass: int, busy: set[str], limits: Limits, admit: Callable[[Pair], bool]
) -> Iterator[Submission]:
    """The pairs of a part that are owed a call in this pass and are in no batch, as files within the limits.

    A file is there with its state when it is yielded. `admit` is asked for each pair; its first no ends the last file.
    """
    by, known = render.by, {"model": render.by.model, "prompt_sha256": render.by.prompt.sha256, "schema_sha256": contract.SCHEMA_SHA256}
    lines: list[bytes] = []
    rows: list[dict] = []
    size = 0
    for pair, intent, turn in turns.owed(config, render, part):
        if turn is None or turn.in_pass != in_pass or pair.key in busy:
            continue
        line = request(by, pair)
        if lines and (len(lines) == limits.requests or size + len(line) > limits.bytes):
            yield _written(config, part, lines, rows)
            lines, rows, size = [], [], 0
        if len(line) > limits.bytes:
            raise ValueError(f"the request of task {pair.task} has {len(line):,} bytes, a file of a batch at most {limits.bytes:,}; cut documents shorter")
        if not admit(pair):
            break
        lines.append(line)
        rows.append({"key": pair.key, "task_id": pair.task, "query": pair.query, "doc": pair.doc, **intent, "pass": in_pass, "attempt": turn.number, **known})
        size += len(line)
    if lines:
        yield _written(config, part, lines, rows)


def _written(config: Config, part: str, lines: list[bytes], rows: list[dict]) -> Submission:
    """Keys and requests on disk, then the state that makes them a submission."""
    whole = b"".join(lines)
    it = Submission(secrets.token_hex(8), config.set, part, WRITTEN, len(lines), len(whole), hashlib.sha256(whole).hexdigest())
    for kind, data in (("keys.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows)), ("requests.jsonl", whole)):
        with files.whole(path(config.run, it, kind)) as temporary:
            temporary.write_bytes(data)
    return save(config.run, it)
