"""Measures the store at size: drawn attempts in Parquet with JSONL tails, read back by a fresh process.

    python -m lib.judge.store_measure STEP RUN [ARGUMENT]
"""

import hashlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lib import contracts, processes
from lib.judge import answers, compact, ledger, pairs, prompt, store
from lib.judge.calls import Calls

SET, MODEL = "v1", "drawn"
PAIRS, CALLS = 4, 5  # of every four pairs one was called twice
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_REPLY = 400  # characters of a drawn reply; its rationale is a third of them


class Measured(NamedTuple):
    """A step in a fresh process: its wall and processor seconds, its peak, and what it came to."""

    step: str
    seconds: float
    cpu_seconds: float
    mib: float
    calls: int
    digest: str


def keys(part: int, count: int, seed: int) -> np.ndarray:
    """The keys of the pairs of a part, as bytes [count, 64]."""
    drawn = np.frombuffer(np.random.default_rng([seed, part]).bytes(32 * count), np.uint8).reshape(count, 32)
    return np.stack([_HEX[drawn >> 4], _HEX[drawn & 15]], axis=2).reshape(count, 64)


def called(part: int, calls: int, seed: int) -> pa.Table:
    """The attempts of a part: a pair ends in score 0 to 2 by its number, the first of every four after a server error."""
    count = calls * PAIRS // CALLS
    pair = np.sort(np.r_[np.arange(count), np.arange(0, count, PAIRS)])[:calls]
    second = np.r_[False, pair[1:] == pair[:-1]]
    good = np.r_[second[1:] == 0, True] | second
    words = [hashlib.sha256(f"{seed} {i}".encode()).hexdigest() * (_REPLY // 64 + 1) for i in range(997)]
    replies, rationales = pa.array([word[:_REPLY] for word in words]), pa.array([word[: _REPLY // 3] for word in words])
    which = pa.array(pair % len(words), mask=~good)
    text = pa.Array.from_buffers(
        pa.string(), len(pair), [None, pa.py_buffer(np.arange(0, 64 * len(pair) + 1, 64, np.int32)), pa.py_buffer(keys(part, count, seed)[pair].copy())]
    )
    same = {
        "version": "v1", "stage": "pick", "round": 1, "pass": 1, "schema_sha256": "5" * 64, "prompt_sha256": "7" * 64, "model": MODEL,
        "input_tokens": 2_000, "output_tokens": 150, "latency": 1.5,
    }  # fmt: skip
    valid = {"query_evaluable": True, "answer_validity": "partial", "confidence": 0.5}
    made = {
        "key": text, "task_id": pa.array(np.char.mod("%016x", pair)), "query": pair // 26, "doc": pair, "attempt": 1 + second,
        "status": np.where(good, "ok", "server error"), "score": pa.array(pair % 3, mask=~good), "rationale": rationales.take(which),
        "reply": replies.take(which), "detail": pa.array(np.where(good, "", "HTTP 500"), mask=good), "request_id": None, "cost": None, "reason_codes": None,
    }  # fmt: skip
    columns = [_column(made.get(field.name, same.get(field.name, valid.get(field.name))), field, good) for field in contracts.TABLES["attempts"]]
    return pa.Table.from_arrays(columns, schema=contracts.TABLES["attempts"])


def _column(value, field: pa.Field, good: np.ndarray) -> pa.Array:
    if value is None:
        return pa.nulls(len(good), field.type)
    if isinstance(value, np.ndarray | pa.Array):
        return pa.array(value).cast(field.type)
    whole = pa.repeat(pa.scalar(value, field.type), len(good))
    return pc.if_else(pa.array(good), whole, pa.scalar(None, field.type)) if field.name in ("query_evaluable", "answer_validity", "confidence") else whole


def sizes(calls: int, parts: int) -> list[int]:
    """Calls of each part."""
    return [len(some) for some in np.array_split(np.empty(calls, bool), parts)]


def write(run: Path, calls: int, parts: int, tail: int, seed: int) -> None:
    """A set of attempts: each part in Parquet, its last `tail` calls as JSON lines."""
    contracts.finish(run / "queries", [{"part": f"part-{at:05}.parquet", "rows": 1, "sha256": str(at)} for at in range(parts)])
    store.remember(run, SET)
    for at, size in enumerate(sizes(calls, parts)):
        source, rows = store.path(run, SET, f"part-{at:05}"), called(at, size, seed)
        head = rows.slice(0, size - min(tail, size))
        pq.write_table(head.replace_schema_metadata({store.ABSORBED: b'[0, ""]'}), store.compacted(source), compression="zstd", row_group_size=compact.ROWS)
        source.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows.slice(head.num_rows).to_pylist()))


def _by_parts(run: Path, seed: int) -> tuple[int, str]:
    """As a client starts: the calls of one part after the other."""
    return _looked_up(((source, answers.history(run, source.stem, "v1")) for source in store.every(run, SET)), run, seed)


def _at_once(run: Path, seed: int) -> tuple[int, str]:
    """As where the queries have other parts: the calls of all files are held."""
    held = answers.History([Calls().read(store.every(run, SET))])
    return _looked_up(((source, held) for source in store.every(run, SET)), run, seed)


def _in_dictionaries(run: Path, seed: int) -> tuple[int, str]:
    """The plain way: each attempt a dictionary of Python."""


    def told():
        for source in store.every(run, SET):
            found = defaultdict(list)
            for row in store.read(source):
                said = {name: row[name] for name in ("score", "query_evaluable", "prompt_sha256", "model")} if row["status"] in answers.VALID else None
                found[row["key"]].append(answers.Call(row["version"], row["pass"], row["attempt"], row["status"], said))
            yield source, _Plain(found)

    return _looked_up(told(), run, seed)


class _Plain(NamedTuple):
    calls: dict

    def of(self, key: str) -> list:
        return self.calls.get(key, [])


def _looked_up(histories, run: Path, seed: int) -> tuple[int, str]:
    """How many pairs were looked up, and a hash of what they are told: every 1,000th of each part."""
    digest, number = hashlib.sha256(), 0
    for at, (source, held) in enumerate(histories):
        count = _pairs_in(source)
        names = keys(at, count, seed)[::1_000].tobytes().decode()
        for start in range(0, len(names), 64):
            digest.update(repr([tuple(call) for call in held.of(names[start : start + 64])]).encode())
            number += 1
    return number, digest.hexdigest()


def _pairs_in(source: Path) -> int:
    return (pq.read_metadata(store.compacted(source)).num_rows + sum(1 for _ in store.lines(source))) * PAIRS // CALLS


def _compact(run: Path, seed: int) -> tuple[int, str]:
    assert compact.compact(run, SET) == []
    return sum(pq.read_metadata(store.compacted(source)).num_rows for source in store.every(run, SET)), ""


def judged(run: Path, queries: int, a_query: int, documents: int, parts: int, seed: int) -> int:
    """Documents, queries, intents and a call a pair, for answers and ledger; gives the pairs."""
    draws = np.random.default_rng(seed)
    for name, rows in (("documents", documents), ("queries", queries)):
        lines = []
        for at, numbers in enumerate(np.array_split(np.arange(rows), parts)):
            texts = [f"{number} {hashlib.sha256(str(number).encode()).hexdigest() * 30}" for number in numbers]
            made = {"docid": [f"d{n}" for n in numbers], "text": texts, "n_chars": [len(t) for t in texts], "n_tokens": [1] * len(texts), "removed": [False] * len(texts)}
            if name == "queries":
                empty = [None] * len(texts)
                made = {"qid": [f"q{n}" for n in numbers], "text": texts, "source_docid": empty, "source_doc": empty, "keep": [True] * len(texts)}
            lines.append(contracts.write(name, contracts.table(name, made), run / name / f"part-{at:05}.parquet"))
        contracts.finish(run / name, lines)
    lines = []
    for at, numbers in enumerate(np.array_split(np.arange(queries), parts)):
        doc = np.concatenate([draws.choice(documents, a_query, replace=False) for _ in numbers])
        same = {"judge": "llm", "version": "v1", "stage": "pick", "round": 1, "reason": "dense rank 1", "max_chars": 1_500, "rank": 1, "withdrawn": False}
        made = {"query": np.repeat(numbers, a_query).astype(np.int32), "doc": doc.astype(np.int32)} | {name: [value] * len(doc) for name, value in same.items()}
        lines.append(contracts.write("intents", contracts.table("intents", made), run / "intents" / SET / f"part-{at:05}.parquet"))
    contracts.finish(run / "intents" / SET, lines)
    store.remember(run, SET)
    render = pairs.Pairs(run, prompt.judge(MODEL))
    for name in pairs.parts(run, SET):
        rows = called(int(name[5:]), queries * a_query * 2, seed)  # enough to take one a pair from
        rows = rows.filter(pc.equal(rows["status"], "ok"))
        told, source = list(_told(render, name)), store.path(run, SET, name)
        rows = rows.slice(0, len(told)).set_column(0, contracts.TABLES["attempts"].field("key"), pa.array([key for key, _ in told]))
        rows = rows.set_column(1, contracts.TABLES["attempts"].field("task_id"), pa.array([task for _, task in told]))
        pq.write_table(rows.replace_schema_metadata({store.ABSORBED: b'[0, ""]'}), store.compacted(source), compression="zstd", row_group_size=compact.ROWS)
    return queries * a_query


def _told(render: pairs.Pairs, name: str):
    rows = pairs.intents(render.run, SET, name)
    found = [("", "")] * rows.num_rows
    for pair in render.render(name, rows):
        found[pair.row] = (pair.key, pair.task)
    return found


def _answered(run: Path, workers: int) -> tuple[int, str]:
    count = answers.write(run, SET, prompt.judge(MODEL), workers=workers)
    return count, contracts.contents(run / "answers" / SET)


def _closed(run: Path, _: int) -> tuple[int, str]:
    return int(ledger.close(run, [SET])["valid"].sum()), ""


STEPS: dict[str, Callable[[Path, int], tuple[int, str]]] = {
    "by parts": _by_parts, "all at once": _at_once, "in dictionaries": _in_dictionaries, "compact": _compact, "answers": _answered, "ledger": _closed,
}  # fmt: skip


def child(step: str, run: Path, argument: int = 0) -> Measured:
    """One of STEPS in a fresh process, with the seed or the number of workers; RuntimeError with its last line where it fails."""
    return Measured(**json.loads(processes.answer(step, "lib.judge.store_measure", step, str(run), str(argument))))


def measured(step: str, run: Path, argument: int) -> Measured:
    """A step in this process."""
    begun, cpu = time.perf_counter(), time.process_time()
    calls, digest = STEPS[step](run, argument)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
    return Measured(step, seconds, cpu_seconds, processes.memory(), calls, digest)


if __name__ == "__main__":
    processes.die_with_parent()
    print(json.dumps(measured(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))._asdict()))
