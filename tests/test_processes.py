"""Folders held by one process, children that die with their parent."""

import os
import signal
import subprocess
import sys

import pytest
from small_corpus import alive, python, wait_for

from lib import paths, processes

HOLD = """
import sys, time
from pathlib import Path
from lib import processes
with processes.lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(folder):
    child = python(HOLD, folder.parent, str(folder), stdin=subprocess.PIPE)
    assert child.stdout.readline() == "held\n"
    return child


@pytest.mark.parametrize("name", ["run", "part-00000.parquet"])
def test_a_second_process_is_refused_with_the_pid_of_the_first_until_it_ends(tmp_path, name):
    first = holder(tmp_path / name)
    with pytest.raises(processes.Locked, match=f"{name} is in use by process {first.pid}; wait for it to end, or stop it with kill {first.pid}"):
        with processes.lock(tmp_path / name):
            raise AssertionError("two hold it")
    first.communicate("end\n", timeout=20)
    with processes.lock(tmp_path / name):
        pass


def test_a_lock_is_free_after_kill_9_and_a_new_holder_has_its_own_pid(tmp_path):
    first = holder(tmp_path / "run")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    with processes.lock(tmp_path / "run"):
        assert (tmp_path / "run/.lock").read_text() == str(os.getpid())
    assert (tmp_path / "run/.lock").read_text() == ""


def test_what_is_inside_a_held_folder_is_free_for_the_holder_and_its_children(tmp_path):
    with processes.lock(tmp_path):
        with processes.lock(tmp_path), processes.lock(tmp_path / "hits"):
            pass
        code = "import sys\nfrom pathlib import Path\nfrom lib import processes\nwith processes.lock(Path(sys.argv[1])): print('in')"
        child = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=os.environ | {"PYTHONPATH": str(paths.ROOT)}, capture_output=True, text=True, timeout=30)
        assert child.stdout == "in\n"
    assert "QRELBOOK_LOCK" not in os.environ


def test_another_folder_is_locked_on_its_own_and_the_outer_one_stays_held(tmp_path):
    with processes.lock(tmp_path / "a"):
        with processes.lock(tmp_path / "b"):
            assert os.environ["QRELBOOK_LOCK"] == str(tmp_path / "b")
        assert os.environ["QRELBOOK_LOCK"] == str(tmp_path / "a")


def test_an_error_inside_frees_the_lock(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with processes.lock(tmp_path / "run"):
            1 / 0
    holder(tmp_path / "run").communicate("end\n", timeout=20)


def test_a_child_has_its_own_group_and_dies_with_a_killed_parent(tmp_path):
    (tmp_path / "sleeper.py").write_text(
        "import os, time\nfrom lib import processes\nprocesses.die_with_parent()\nprint(os.getpid(), os.getpgid(0), flush=True)\ntime.sleep(120)\n"
    )
    code = "import os, sys, time\nsys.path.insert(0, '')\nos.environ['PYTHONPATH'] += ':' + os.getcwd()\nfrom lib import processes\nprocesses.child('sleeper')\ntime.sleep(120)"
    parent = python(code, tmp_path)
    pid, group = map(int, parent.stdout.readline().split())
    assert alive(pid) and pid == group != os.getpgid(parent.pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not alive(pid), 10)
    parent.stdout.close()
    parent.stderr.close()


@pytest.mark.parametrize("error, said, traced", [
    (ValueError("two\n  lines"), "m: two lines", False), (FileNotFoundError(2, "gone"), "m: [Errno 2] gone", False),
    (FloatingPointError("nan"), "m: nan", False), (processes.Locked("held"), "m: held", False), (KeyError("k"), "m: KeyError: 'k'", True),
])
def test_a_child_that_cannot_go_on_says_one_sentence_and_a_fault_of_the_code_its_traceback(capsys, error, said, traced):
    with pytest.raises(SystemExit) as ended, processes.one_sentence("m"):
        raise error
    assert ended.value.code == said and ("Traceback" in capsys.readouterr().err) == traced


def test_a_child_that_goes_on_or_is_interrupted_says_nothing():
    with processes.one_sentence("m"):
        pass
    with pytest.raises(KeyboardInterrupt), processes.one_sentence("m"):
        raise KeyboardInterrupt
