"""A file is written whole or not at all."""

import hashlib
import json
import math

import pytest
from small_corpus import contents, python, wait_for

from lib import files


def test_a_finished_file_has_the_new_bytes_and_nothing_lies_beside_it(tmp_path):
    files.write_text(tmp_path / "a/b.txt", "old")
    files.write_text(tmp_path / "a/b.txt", "\u00df\r\nline\n")
    assert contents(tmp_path) == {"a/b.txt": "\u00df\r\nline\n".encode()}


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_after_any_error_the_old_file_stays_and_no_temporary_one(tmp_path, error):
    files.write_text(tmp_path / "f", "old")
    with pytest.raises(type(error)):
        with files.whole(tmp_path / "f") as temporary:
            temporary.write_text("half")
            raise error
    assert contents(tmp_path) == {"f": b"old"}


def test_a_folder_in_the_way_is_one_sentence_that_names_the_file(tmp_path):
    (tmp_path / "f").mkdir()
    with pytest.raises(OSError, match=r"^\S*/f was not written \(.*\); make room or choose another folder and run again$"):
        files.write_text(tmp_path / "f", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_an_input_that_is_missing_while_writing_is_named(tmp_path):
    with pytest.raises(OSError, match=r"f was not written \(.*gone"):
        with files.whole(tmp_path / "f") as temporary:
            temporary.write_bytes((tmp_path / "gone").read_bytes())


def test_a_full_disk_leaves_the_old_file_and_one_sentence(tmp_path):
    code = """
import resource, sys
from lib import files
files.write_text("f", "old")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try: files.write_text("f", "x" * 5000)
except OSError as error: sys.exit(str(error))
"""
    child = python(code, tmp_path)
    _, told = child.communicate(timeout=30)
    assert child.returncode == 1
    assert told == "f was not written (File too large); make room or choose another QRELBOOK_HOME and run again\n"
    assert contents(tmp_path) == {"f": b"old"}


HALF = """
import sys, time
from lib import files
with files.whole(sys.argv[1]) as temporary:
    temporary.write_text("half")
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_stays(tmp_path):
    files.write_text(tmp_path / "done", "whole")
    killed, living = (python(HALF, tmp_path, str(tmp_path / name)) for name in ("a.parquet", "b.parquet"))
    try:
        halves = {child: tmp_path / f".{name}.tmp-{child.pid}" for child, name in ((killed, "a.parquet"), (living, "b.parquet"))}
        wait_for(lambda: all(path.exists() for path in halves.values()))
        killed.kill()
        killed.communicate()
        strangers = {".a.parquet.lock", ".c.tmp-", ".c.tmp-me", ".own.tmp"}
        for name in (*strangers, f".d.tmp-{10**30}"):
            (tmp_path / name).touch()
        files.remove_leftovers(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"done", halves[living].name} | strangers
    finally:
        for child in (killed, living):
            child.kill()
            child.communicate()
    files.remove_leftovers(tmp_path)
    assert not halves[living].exists()


def test_json_keeps_its_order_and_refuses_what_is_no_json(tmp_path):
    files.write_json(tmp_path / "f", {"b": "\u00df", "a": [1.5, None]})
    assert list(json.loads((tmp_path / "f").read_text())) == ["b", "a"] and "\u00df" in (tmp_path / "f").read_text()
    with pytest.raises(ValueError):
        files.write_json(tmp_path / "f", math.nan)
    assert json.loads((tmp_path / "f").read_text())["b"] == "\u00df"


def test_the_hash_is_that_of_the_bytes(tmp_path):
    files.write_text(tmp_path / "f", "abc")
    assert files.sha256(tmp_path / "f") == hashlib.sha256(b"abc").hexdigest()
    assert files.read_bytes(tmp_path / "f") == b"abc"
