"""The attempts on disk: lines that only grow, torn tails, faults in the middle."""

import errno
import json
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib import contracts
from lib.judge import store


def attempt(number=1, **changed) -> dict:
    row = dict.fromkeys(store.COLUMNS) | {
        "key": "k" * 64, "task_id": "0123456789abcdef", "query": 0, "doc": number, "version": "v1", "stage": "dense 1-5", "round": 1, "pass": 1, "attempt": 1, "status": "ok",
        "score": 2, "query_evaluable": True, "answer_validity": "correct", "reason_codes": ["full_solution"], "confidence": 0.5,
        "rationale": "fine", "prompt_sha256": "p", "schema_sha256": "s", "model": "m", "reply": '{"score": 2}',
    }  # fmt: skip
    return row | changed


def write(path, rows):
    writer = store.Writer(path)
    for row in rows:
        writer.append(row)
    writer.close()


def test_what_is_written_is_read_and_makes_a_checked_table(tmp_path):
    rows = [attempt(1), attempt(2, status="timeout", score=None, reply=None, reason_codes=None)]
    write(tmp_path / "v1" / "part-00000.jsonl", rows)
    assert store.read(tmp_path / "v1" / "part-00000.jsonl") == rows
    assert store.table(rows).schema.equals(contracts.TABLES["attempts"])
    assert store.table(rows)["reason_codes"].to_pylist() == [["full_solution"], None]


def test_a_file_that_is_not_there_has_no_attempts(tmp_path):
    assert store.read(tmp_path / "part-00000.jsonl") == []


@given(st.text() | st.text(alphabet="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\x00\"\\"))
@example("a\u2028b\u2029c\x85d\x0ce\x00")
@example("\ud800 and \udc00")
def test_any_character_of_a_reply_stays_in_its_line_byte_for_byte(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("store") / "part-00000.jsonl"
    write(path, [attempt(1, rationale=text, reply=text), attempt(2)])
    assert path.read_bytes().count(b"\n") == 2
    assert [row["reply"] for row in store.read(path)] == [text, '{"score": 2}']
    told = store.table(store.read(path))["reply"].to_pylist()[0]
    assert told == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in told) and len(told) == len(text)


def test_every_truncation_of_three_lines_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # 1,500 files, none of which has to outlive a power cut
    whole = tmp_path / "whole.jsonl"
    rows = [attempt(1), attempt(2, rationale="é\u2028"), attempt(3)]
    write(whole, rows)
    data = whole.read_bytes()
    for size in range(len(data) + 1):
        path = tmp_path / f"cut-{size}" / "part-00000.jsonl"
        path.parent.mkdir()
        path.write_bytes(data[:size])
        ends = [at for at, byte in enumerate(data) if byte == ord("\n")]
        kept = sum(size >= end for end in ends)  # a line that lacks its line feed only was paid for
        assert store.read(path) == rows[:kept]
        assert path.read_bytes() == data[:size]  # reading changes nothing
        write(path, rows[kept:])
        assert path.read_bytes() == data
        torn = b"" if size in ends else data[:size].rpartition(b"\n")[2]
        aside = path.with_name("part-00000.jsonl.torn-1")
        assert (aside.read_bytes() if torn else None) == (torn or None)
        assert aside.exists() == bool(torn)


def test_a_last_line_that_is_not_json_is_set_aside_and_the_next_tear_gets_a_name_of_its_own(tmp_path):
    path = tmp_path / "part-00000.jsonl"
    for number, tail in enumerate((b"\x00\x00\x00\n", b'{"key": "a', b"[" * 100_000 + b"\n", b'{"key": ' * 100_000), 1):
        write(path, [attempt(number)])
        with open(path, "ab") as handle:
            handle.write(tail)
        assert len(store.read(path)) == number
        write(path, [])
        assert (tmp_path / f"part-00000.jsonl.torn-{number}").read_bytes() == tail
    assert store.read(path) == [attempt(number) for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("bad", [b"{", b"", b"[]", b"3", b'{"key": "a"}', b"[" * 100_000], ids=[*range(5), "deep"])
def test_a_bad_line_in_the_middle_is_an_error_with_file_and_line_and_nothing_is_touched(tmp_path, bad):
    path = tmp_path / "part-00007.jsonl"
    line = json.dumps(attempt()).encode()
    path.write_bytes(b"\n".join([line, bad, line, b""]))
    before = path.read_bytes()
    for use in (store.read, store.Writer):
        with pytest.raises(store.StoreError, match=r"part-00007\.jsonl line 2 is no attempt"):
            use(path)
    assert path.read_bytes() == before


def test_a_row_with_other_fields_or_without_a_finite_number_is_never_written(tmp_path):
    writer = store.Writer(tmp_path / "part-00000.jsonl")
    with pytest.raises(ValueError, match="an attempt has the fields key, task_id, query"):
        writer.append({"key": "a"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        writer.append(attempt(confidence=float("nan")))
    writer.close()
    assert (tmp_path / "part-00000.jsonl").read_bytes() == b""


def test_one_write_a_line_and_a_sync_at_most_once_a_second(tmp_path, monkeypatch):
    writes, syncs, now = [], [], [100.0]
    write_now, sync_now = os.write, os.fsync
    monkeypatch.setattr(store.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(store.os, "write", lambda fd, data: writes.append(data) or write_now(fd, data))
    monkeypatch.setattr(store.os, "fsync", lambda fd: syncs.append(now[0]) or sync_now(fd))
    writer = store.Writer(tmp_path / "part-00000.jsonl")
    for number in range(8):
        now[0] += 0.4
        writer.append(attempt(number))
    assert len(writes) == 8 and all(line.count(b"\n") == 1 for line in writes)
    assert syncs == pytest.approx([101.2, 102.4])
    writer.close()
    assert len(syncs) == 3


def test_a_full_disk_leaves_whole_lines_and_says_which_file(tmp_path, monkeypatch):
    path = tmp_path / "part-00000.jsonl"
    writer = store.Writer(path)
    writer.append(attempt(1))
    write_now = os.write
    monkeypatch.setattr(store.os, "write", lambda fd, data: write_now(fd, data[:20]))
    with pytest.raises(OSError, match=r"part-00000\.jsonl cannot grow \(No space left on device\)") as caught:
        writer.append(attempt(2))
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    writer.append(attempt(3))
    writer.close()
    assert store.read(path) == [attempt(1), attempt(3)]


def test_a_set_is_answered_by_its_own_and_earlier_versions():
    assert store.sets_up_to("probe") == ["one", "probe"]
    assert store.sets_up_to("v1") == ["one", "probe", "source_page", "v1"]
    assert store.sets_up_to("v2 gap") == ["one", "probe", "source_page", "v1", "v2_gap"]
    assert store.sets_up_to("v2") == ["one", "probe", "source_page", "v1", "v2_gap", "v2"]


def test_the_second_judge_and_the_arbiter_are_answered_by_their_own_set_only():
    assert store.sets_up_to("second judge") == ["second"] and store.sets_up_to("arbiter") == ["arbiter"]
    assert not {"second", "arbiter"} & {name for version in ("probe", "v1", "v2 gap", "v2") for name in store.sets_up_to(version)}
