"""A released folder is whole or not there: killed, refused and full exports, and what an export may replace."""

import errno
import os
import signal
from pathlib import Path

import pytest
import released
from small_corpus import python, wait_for

from lib.exports import export, folder
from lib.exports.rows import ExportError
from lib.processes import Locked

ROWS = [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", 2)]
QUERIES = [("q1", "one"), ("q2", "two")]


def write(out: Path, rows=ROWS, documents=(("d1", "a"), ("d2", "b"))) -> None:
    export.write(out, rows, QUERIES, lambda data: "# A card\n", documents)


# stops at the named place until it is killed: in the rows, in the corpus, in the card
STOPPED = """
import sys, time
from pathlib import Path
from lib.exports import export
out, place = sys.argv[1:]

def here(name):
    if name == place:
        Path(out + ".here").touch()
        time.sleep(60)

def rows():
    yield "q1", "d1", 1
    yield "q1", "d2", 0
    here("rows")
    yield "q2", "d1", 2

def documents():
    yield "d1", "a"
    here("corpus")
    yield "d2", "b"

def card(data):
    here("card")
    return "# A card\\n"

export.write(out, rows(), [("q1", "one"), ("q2", "two")], card, documents())
"""


def killed(out: Path, place: str) -> None:
    process = python(STOPPED, out.parent, str(out), place)
    here = Path(f"{out}.here")
    wait_for(lambda: here.exists() or process.poll() is not None)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    here.unlink()


@pytest.mark.parametrize("place", ["rows", "corpus", "card"])
def test_a_killed_export_leaves_nothing_that_looks_finished(tmp_path, place):
    write(tmp_path / "other")
    out = tmp_path / "out"
    killed(out, place)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["other"]
    write(out)
    assert released.contents(out) == released.contents(tmp_path / "other"), "the second run gives the same bytes"
    killed(out, place)
    assert released.contents(out) == released.contents(tmp_path / "other"), "an earlier release stays whole"
    write(out, documents=None)
    assert not (out / "beir" / "corpus.jsonl").exists(), "and is replaced as a whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"], "what was left of the killed runs is gone"


@pytest.mark.parametrize("step", [1, 2])
def test_an_export_that_ends_between_two_renames_is_made_good(tmp_path, monkeypatch, step):
    out, rename, calls = tmp_path / "out", os.rename, []
    write(out)
    first = released.contents(out)

    def stopped(source, target):
        calls.append(target)
        if len(calls) == step:
            os._exit(9)
        rename(source, target)

    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(folder.os, "rename", stopped)
        write(out)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert not out.exists() or released.contents(out) == first
    assert out.exists() == (step == 1)
    with pytest.raises(ExportError):
        write(out, ROWS[:1])
    assert released.contents(out) == first, "a refused one puts the earlier release back"
    write(out)
    assert released.contents(out) == first and list(tmp_path.iterdir()) == [out]


def test_a_second_export_gives_the_same_bytes_and_a_refused_one_leaves_the_first(tmp_path):
    out = tmp_path / "out"
    write(out)
    first = released.contents(out)
    write(out)
    assert released.contents(out) == first
    for rows in (ROWS + ROWS[-1:], ROWS[:1], [("q1", "d1", 1.0), *ROWS[1:]]):
        with pytest.raises(ExportError):
            write(out, rows)
    assert released.contents(out) == first and list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["notes.txt", "beir/mine.tsv", "qrels/deep.txt"])
def test_a_folder_that_holds_anything_else_is_not_replaced(tmp_path, name):
    out = tmp_path / "out"
    for known in (False, True):
        if known:
            (out / name).unlink()
            (out / name).parent.rmdir() if (out / name).parent != out else None
            write(out)
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
        with pytest.raises(ExportError, match="which no release wrote there; choose another --outdir"):
            write(out)
        assert (out / name).read_text() == "mine"


def test_a_run_folder_is_no_release_although_it_has_a_manifest(tmp_path):
    (tmp_path / "manifest.json").write_text('{"parts": []}')
    with pytest.raises(ExportError, match="holds manifest.json, which no release wrote there"):
        write(tmp_path)


def test_an_empty_folder_is_filled_and_a_file_refused(tmp_path):
    (tmp_path / "out").mkdir()
    write(tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="file is a file; name a folder with --outdir"):
        write(tmp_path / "file")


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    write(tmp_path / "out")
    assert (tmp_path / "out").is_symlink() and sorted(released.contents(tmp_path / "real")) == released.FILES


def test_two_exports_into_one_folder_are_told_apart(tmp_path):
    def rows():
        yield ROWS[0]
        done = python(STOPPED, tmp_path, str(tmp_path / "out"), "nowhere")
        said = done.communicate(timeout=60)[1]
        assert done.returncode != 0 and Locked.__name__ in said and "is in use by process" in said
        yield from ROWS[1:]

    write(tmp_path / "out", rows())
    assert sorted(released.contents(tmp_path / "out")) == released.FILES


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    def full(self, text, rows=1):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folder.Output, "add", full)
    with pytest.raises(OSError, match="out was not written .No space left on device.; make room or choose another --outdir"):
        write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_what_is_read_is_not_said_to_be_one_of_what_is_written(tmp_path):
    def rows():
        yield ROWS[0]
        open(tmp_path / "absent.parquet")

    with pytest.raises(FileNotFoundError, match="absent.parquet"):
        write(tmp_path / "out", rows())
    assert list(tmp_path.iterdir()) == []
