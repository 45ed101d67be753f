"""What a process imported, read and wrote, children included."""

import os

from small_corpus import python

from lib import files, trace


def test_without_the_variable_nothing_is_recorded(tmp_path, monkeypatch):
    monkeypatch.delenv(trace.VARIABLE, raising=False)
    trace.record("read", tmp_path / "f")
    assert trace.events(tmp_path / "trace") == {"import": [], "read": [], "write": []}


def test_reads_and_writes_are_absolute_sorted_and_once(tmp_path, monkeypatch):
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "trace"))
    monkeypatch.chdir(tmp_path)
    for name in ("b", "a b", "b"):
        files.write_text(name, "x")
    files.read_bytes("a b")
    assert trace.events(tmp_path / "trace") == {
        "import": [], "read": [f"{tmp_path}/a b"], "write": [f"{tmp_path}/a b", f"{tmp_path}/b"],
    }


def test_a_write_that_failed_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "trace"))
    try:
        with files.whole(tmp_path / "f"):
            raise ValueError
    except ValueError:
        pass
    assert trace.events(tmp_path / "trace")["write"] == []


def test_modules_of_a_process_and_of_its_children_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "trace"))
    code = "import subprocess, sys\nfrom lib import text\nsubprocess.run([sys.executable, '-c', 'import lib.ids'], check=True)"
    child = python(code, tmp_path)
    _, told = child.communicate(timeout=30)
    assert child.returncode == 0, told
    assert {"lib", "lib.trace", "lib.text", "lib.ids"} <= set(trace.events(tmp_path / "trace")["import"])
    assert "lib.engine" not in trace.events(tmp_path / "trace")["import"]


def test_many_processes_write_whole_lines(tmp_path, monkeypatch):
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "trace"))
    code = "import sys\nfrom lib import trace\nfor n in range(500): trace.record('read', f'/{sys.argv[1] * 200}/{n}')"
    for child in [python(code, tmp_path, name) for name in "ab"]:
        child.communicate(timeout=30)
    assert len(trace.events(tmp_path / "trace")["read"]) == 1000
    assert os.path.getsize(tmp_path / "trace") > 1000 * 200
