"""Closed attempts files become Parquet: nothing is lost or doubled, wherever a compaction is killed."""

import json
import os
import signal
import subprocess
import sys

import pytest
from test_judge_store import attempt, write

from lib import paths, processes
from lib.judge import compact, store

TEXTS = ["a\u2028b\u2029c\x85d\x0ce\x00", "", "é", "\U0001d49c"]


@pytest.fixture
def source(tmp_path):
    return store.path(tmp_path, "v1", "part-00000")


def rows_of(*numbers) -> list[dict]:
    return [
        attempt(number, attempt=number, rationale=TEXTS[number % 4], cost=0.1 * number, reason_codes=None if number % 3 else [], input_tokens=2**40)
        for number in numbers
    ]


def scanned(run, columns=store.COLUMNS) -> list[dict]:
    return [row for table in store.scan(run, "v1", columns) for row in table.to_pylist()]


def test_compacted_attempts_are_read_as_they_were_written_and_a_writer_starts_a_new_file(tmp_path, source):
    rows = rows_of(*range(1, 10))
    write(source, rows[:4])
    assert compact.compact(tmp_path, "v1") == []
    assert not source.exists() and store.compacted(source).exists() and store.read(source) == rows[:4]
    write(source, rows[4:6])
    assert store.read(source) == rows[:6] == scanned(tmp_path)
    assert compact.compact(tmp_path, "v1") == [] == compact.compact(tmp_path, "v1")
    write(source, rows[6:])
    assert store.every(tmp_path, "v1") == [source] and store.read(source) == rows
    assert scanned(tmp_path, ("doc", "reply")) == [{"doc": row["doc"], "reply": row["reply"]} for row in rows]


def test_rows_of_several_groups_keep_their_order(tmp_path, source, monkeypatch):
    monkeypatch.setattr(compact, "ROWS", 3)
    monkeypatch.setattr(store, "_BATCH", 2)
    rows = rows_of(*range(1, 12))
    write(source, rows)
    compact.compact(tmp_path, "v1")
    assert store.read(source) == rows == scanned(tmp_path)


def test_every_truncation_of_a_tail_after_parquet_resumes(tmp_path, source, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    rows = rows_of(1, 2, 3, 4)
    write(source, rows[:2])
    compact.compact(tmp_path, "v1")
    write(source, rows[2:])
    data = source.read_bytes()
    ends = [at for at, byte in enumerate(data) if byte == ord("\n")]
    for size in range(len(data) + 1):
        source.write_bytes(data[:size])
        kept = 2 + sum(size >= end for end in ends)
        assert store.read(source) == rows[:kept]
        write(source, rows[kept:])
        assert store.read(source) == rows and source.read_bytes() == data
        source.with_name("part-00000.jsonl.torn-1").unlink(missing_ok=True)


@pytest.mark.parametrize("step", ["between the write and the name", "between the name and the removal", "in the middle of the write"])
def test_a_kill_in_a_compaction_loses_and_doubles_nothing(tmp_path, source, step):
    rows = rows_of(*range(1, 8))
    write(source, rows[:2])
    compact.compact(tmp_path, "v1")
    write(source, rows[2:5])
    torn = b'{"key": "half'
    with open(source, "ab") as handle:
        handle.write(torn)
    die = "os.kill(os.getpid(), 9)"
    killing = {
        "between the write and the name": f"compact._compare = lambda *given: {die}",
        "between the name and the removal": f"compact._sync = lambda folder: {die}",
        "in the middle of the write": f"store.table = lambda *given: {die}",
    }[step]
    script = f"import os, sys\nfrom lib.judge import compact, store\n{killing}\ncompact.compact(sys.argv[1], 'v1')"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=paths.ROOT)
    assert done.returncode == -signal.SIGKILL and source.exists()
    assert store.read(source) == rows[:5] == scanned(tmp_path)
    assert source.with_name("part-00000.jsonl.torn-1").read_bytes() == torn
    write(source, rows[5:])  # a writer may come before the next compaction
    assert store.read(source) == rows
    compact.compact(tmp_path, "v1")
    assert store.read(source) == rows == scanned(tmp_path)
    assert sorted(path.name for path in source.parent.iterdir()) == ["part-00000.jsonl.torn-1", "part-00000.parquet"]


def test_a_line_that_parquet_would_not_give_back_stays_with_its_whole_file(tmp_path, source):
    rows = [attempt(1), attempt(2, reply="\ud800")]
    write(source, rows)
    write(store.path(tmp_path, "v1", "part-00001"), rows[:1])
    said = compact.compact(tmp_path, "v1")
    assert len(said) == 1 and "part-00000.jsonl stays as it is: attempt 2 of it would not come back" in said[0]
    assert store.read(source) == rows and source.exists()
    assert [path.name for path in source.parent.iterdir() if path.suffix == ".parquet"] == ["part-00001.parquet"]
    assert not [path for path in source.parent.iterdir() if ".tmp-" in path.name]


def test_a_part_that_is_written_is_not_compacted_meanwhile(tmp_path, source):
    write(source, rows_of(1))
    script = "import sys\nfrom pathlib import Path\nfrom lib import processes\nwith processes.lock(Path(sys.argv[1])):\n    print(1, flush=True)\n    input()"
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=paths.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    with pytest.raises(processes.Locked):
        compact.compact(tmp_path, "v1")
    holder.communicate(b"\n")
    assert source.exists()


def test_a_bad_line_in_the_middle_is_named_and_nothing_moves(tmp_path, source):
    line = json.dumps(attempt()).encode()
    source.parent.mkdir(parents=True)
    source.write_bytes(b"\n".join([line, b"{", line, b""]))
    with pytest.raises(store.StoreError, match=r"part-00000\.jsonl line 2 is no attempt"):
        compact.compact(tmp_path, "v1")
    assert [path.name for path in source.parent.iterdir()] == ["part-00000.jsonl"]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"\x00" * 100])
def test_a_damaged_parquet_file_is_named(tmp_path, source, data):
    write(source, rows_of(1))
    store.compacted(source).write_bytes(data)
    with pytest.raises(store.StoreError, match=r"part-00000\.parquet is no file of attempts .* bring it back from a copy"):
        store.read(source)
