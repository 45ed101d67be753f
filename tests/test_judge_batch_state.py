"""The state of a batch on this machine, damaged: one sentence before anything is asked, and no pair left out in silence."""

import json

import pytest

from lib.judge import batch_files, store
from lib.judge.batch_files import SUBMITTED, Submission

ROW = dict.fromkeys(("key", "task_id", "query", "doc", "version", "stage", "round", "pass", "attempt"), 1)
IT = Submission("0f", "v1", "part-00000", SUBMITTED, 2, 9, "00", batch="b")


def kept(run, text: bytes) -> Submission:
    batch_files.folder(run, "v1").mkdir(parents=True)
    batch_files.save(run, IT)
    batch_files.path(run, IT, "keys.jsonl").write_bytes(text)
    return IT


def test_the_pairs_of_a_batch_are_found_by_their_keys(tmp_path):
    lines = [json.dumps(ROW | {"key": key}).encode() + b"\n" for key in "ab"]
    assert list(batch_files.asked(tmp_path, kept(tmp_path, b"".join(lines)))) == ["a", "b"]
    assert batch_files.unfinished(tmp_path, "v1") == [IT]


@pytest.mark.parametrize("text", [b"", b"{", b"[]\n[]\n", b'{"key": 1}\n{"key": 2}\n', json.dumps(ROW).encode(), b"[" * 100_000, b"\xff\n"], ids=range(7))
def test_a_damaged_list_of_pairs_is_refused(tmp_path, text):
    with pytest.raises(store.StoreError, match=r"0f.keys.jsonl does not name the pairs of its batch .*; bring it back .* 0f.json"):
        batch_files.asked(tmp_path, kept(tmp_path, text))


@pytest.mark.parametrize("changed", [{"submission": []}, {"submission": "00"}, {"stage": "gone"}, {"requests": None}], ids=range(4))
def test_a_state_of_another_batch_is_refused(tmp_path, changed):
    kept(tmp_path, b"")
    batch_files.path(tmp_path, IT).write_text(json.dumps(IT._asdict() | changed))
    with pytest.raises(store.StoreError, match="0f.json is no state of a batch"):
        batch_files.unfinished(tmp_path, "v1")
