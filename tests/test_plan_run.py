"""Plans run, skip what still holds, and leave nothing half-made that looks finished. Real kernels, tiny notebooks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

READ = "from lib import files, paths\nhome = paths.run_folder(run)"
WRITE = 'files.write_text(home / "tables" / "a.csv", f"{n}\\n")'


def two(checkout) -> str:
    """01-a writes a table with lib.stats_a; 02-b reads it with lib.stats_b."""
    for name in "ab":
        (checkout.root / "lib" / f"stats_{name}.py").write_text("x = 1\n")
    checkout.notebook("01-a", "n: int = 3", READ, "from lib import stats_a", WRITE)
    text = 'text = files.read_bytes(home / "tables" / "a.csv").decode()'
    headline = 'files.write_text(home / "tables" / "headline.md", f"| {text.strip()} |\\n")'
    checkout.notebook("02-b", "", READ, "from lib import stats_b", text, headline)
    return str(checkout.plan("01-a: {n: 4}\n02-b:\n"))


def ran(done) -> list[str]:
    """The notebooks that were run, not skipped."""
    assert done.returncode == 0, done.stderr
    return [line.split()[0] for line in done.stdout.splitlines() if line.split()[1:2] == ["ran"]]


def wait(condition, seconds: float = 30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_a_notebook_is_skipped_while_its_manifest_holds(checkout):
    plan = two(checkout)
    first = checkout.run(plan)
    assert ran(first) == ["01-a", "02-b"]
    assert first.stdout.endswith("tables               runs/small/tables\n\n| 4 |\n")
    assert ran(checkout.run(plan)) == []
    started = time.perf_counter()
    checkout.run(plan)
    assert time.perf_counter() - started < 5, "Jupyter is not imported where nothing has to run"

    (checkout.root / "lib" / "stats_b.py").write_text("x = 2\n")
    assert ran(checkout.run(plan)) == ["02-b"], "only the notebook that imported the module"
    (checkout.root / "lib" / "stats_a.py").write_text("x = 2\n")
    assert ran(checkout.run(plan)) == ["01-a"], "its table has the same bytes again"
    (checkout.run_folder / "tables" / "headline.md").write_text("| 6 |\n")
    assert ran(checkout.run(plan)) == ["02-b"], "an output was edited"
    os.utime(checkout.run_folder / "tables" / "a.csv")
    assert ran(checkout.run(plan)) == [], "another date on the same bytes is no change"
    assert ran(checkout.run(plan, "--only", "2", "--set", "01-a.n=5")) == []
    assert ran(checkout.run(plan, "--from", "02-b", "--set", "01-a.n=5")) == []
    assert ran(checkout.run(plan, "--set", "01-a.n=5")) == ["01-a", "02-b"], "another table"


def test_the_manifest_names_everything_a_notebook_stood_on(checkout):
    plan = two(checkout)
    (checkout.root / "in.txt").write_text("4")
    neither = 'files.write_text(home / "timing.json", "{}")\nfiles.write_text(home / "attempts" / "a.jsonl", "")'
    checkout.notebook("03-c", 'in_file: str = ""', READ, neither)
    checkout.plan("01-a: {n: 4}\n02-b:\n03-c: {in_file: in.txt}")
    checkout.run(plan)
    known = checkout.manifest("02-b")
    assert known["parameters"] == {"run": "small"}
    assert {"lib", "lib.files", "lib.paths", "lib.stats_b", "lib.trace"} == set(known["modules"])
    assert list(known["inputs"]) == ["runs/small/tables/a.csv"] and list(known["outputs"]) == ["runs/small/tables/headline.md"]
    assert known["commit"] is None and known["versions"]["papermill"] and len(known["cells"]) == 64
    assert known["seconds"] > 0 and known["peak_memory_mb"] > 20
    known = checkout.manifest("03-c")
    assert (list(known["inputs"]), list(known["outputs"])) == (["in.txt"], []), "attempts and timings are neither"
    (checkout.root / "in.txt").write_text("5")
    assert ran(checkout.run(plan)) == ["03-c"], "a file that a parameter names is an input"


def test_a_module_imported_by_a_child_counts(checkout):
    (checkout.root / "lib" / "far.py").write_text("x = 1\n")
    checkout.notebook("01-a", "", "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import lib.far'], check=True)")
    plan = str(checkout.plan("01-a:"))
    checkout.run(plan)
    assert "lib.far" in checkout.manifest("01-a")["modules"]
    (checkout.root / "lib" / "far.py").write_text("x = 2\n")
    assert "lib.far changed" in checkout.run(plan).stdout


def test_a_module_edited_while_the_notebook_runs_makes_it_run_again(checkout):
    (checkout.root / "lib" / "far.py").write_text("x = 1\n")
    checkout.notebook("01-a", "", "import lib.far\nfrom lib import paths\n(paths.ROOT / 'lib' / 'far.py').write_text('x = 2\\n')")
    plan = str(checkout.plan("01-a:"))
    assert ran(checkout.run(plan)) == ["01-a"]
    assert ran(checkout.run(plan)) == ["01-a"]


def starts(checkout, tmp_path) -> list[Path]:
    folders = [checkout.root, checkout.root / "notebooks", tmp_path, tmp_path / "a blänk"]
    folders[-1].mkdir()
    return folders


@pytest.mark.slow
def test_case_38_paths_are_the_same_from_every_start_folder(checkout, tmp_path):
    case = json.loads((Path(__file__).parent / "cases" / "38-notebook-folder-and-leftovers.json").read_text())
    plan, seen = two(checkout), []
    folders = starts(checkout, tmp_path)
    assert len(folders) == len(case["input"]["start_in"])
    for folder in folders:
        shutil.rmtree(checkout.run_folder, ignore_errors=True)
        assert ran(checkout.run(plan, cwd=folder)) == ["01-a", "02-b"]
        tables = checkout.run_folder / "tables"
        seen.append({str(path): path.read_bytes() for path in tables.iterdir()})
        for name in ("01-a", "02-b"):
            cells = json.loads((checkout.run_folder / "notebooks" / f"{name}.ipynb").read_text())["cells"]
            numbers = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
            assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 3
    assert seen[0] and seen.count(seen[0]) == 4
    assert not list(tmp_path.glob("a blänk/*")), "nothing is left in the folder it was started in"


def test_case_38_plain_papermill_runs_from_another_folder(checkout, tmp_path):
    two(checkout)
    folder = tmp_path / "a blänk"
    folder.mkdir()
    source = str(checkout.root / "notebooks" / "01-a.ipynb")
    arguments = (source, str(folder / "out.ipynb"), "-p", "run", "small", "-p", "n", "4", "-k", "python3", "-l", "python")
    done = checkout.run(*arguments, cwd=folder, module="papermill")
    assert done.returncode == 0, done.stderr
    assert (checkout.run_folder / "tables" / "a.csv").read_text() == "4\n"


def test_case_38_a_failed_notebook_leaves_nothing_that_looks_finished(checkout):
    plan = two(checkout)
    half = "h = open(home / 'tables' / 'b.csv', 'w'); h.write('half'); h.flush()\nif fail:\n    raise ValueError('broken on purpose')\nh.close()"
    checkout.notebook("02-b", "fail: bool = False", READ, 'files.write_text(home / "tables" / "early.csv", "1\\n")', half)
    assert ran(checkout.run(plan)) == ["01-a", "02-b"]
    done = checkout.run(plan, "--set", "02-b.fail=true")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "cell 5: h = open(home / 'tables' / 'b.csv', 'w'); h.write('half'); h.flush()",
        "ValueError: broken on purpose",
    ]
    run = checkout.run_folder
    assert [path.name for path in (run / "tables").iterdir()] == ["a.csv"], "what an earlier notebook made stays"
    assert sorted(path.name for path in (run / "failed" / "02-b" / "tables").iterdir()) == ["b.csv", "early.csv"]
    assert sorted(path.name for path in (run / "notebooks").iterdir()) == ["01-a.ipynb", "02-b.failed.ipynb"]
    assert [path.name for path in (run / "manifests").iterdir()] == ["01-a.json"]
    assert "02-b                 failed" in checkout.run(plan, "--status").stdout
    assert ran(checkout.run(plan)) == ["02-b"]
    assert sorted(path.name for path in (run / "tables").iterdir()) == ["a.csv", "b.csv", "early.csv"]
    assert not (run / "failed" / "02-b").exists()


@pytest.mark.parametrize(
    ("cell", "said"),
    [("import os\nos._exit(3)", "DeadKernelError"), ("raise SystemExit(0)", "RuntimeError: its cells are numbered [1, 2, 3, None]")],
)
def test_a_kernel_that_ends_early_is_a_failure(checkout, cell, said):
    checkout.notebook("01-a", "", cell, "1 + 1")
    done = checkout.run(str(checkout.plan("01-a:")))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2] == f"cell 3: {cell.splitlines()[0]}"
    assert done.stderr.splitlines()[-1].startswith(said)
    assert not (checkout.run_folder / "notebooks" / "01-a.ipynb").exists()


SLEEP = """
import os, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor
import multiprocessing
from lib import processes
pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), processes.die_with_parent)
pids = [os.getpid(), pool.submit(os.getpid).result()]
if wait:
    pids.append(processes.child("lib.sleeper").pid)
    pids.append(subprocess.Popen(["sleep", "600"]).pid)
files.write_text(home / "pids.txt", " ".join(map(str, pids)))
if wait:
    time.sleep(600)
pool.shutdown()
"""


def sleeping(checkout):
    """A plan whose second notebook waits, with a pool, a child of lib.processes and one of its own; the started process and the pids."""
    (checkout.root / "lib" / "sleeper.py").write_text("import time\nfrom lib import processes\nprocesses.die_with_parent()\ntime.sleep(600)\n")
    checkout.notebook("01-a", "n: int = 3", READ, WRITE)
    checkout.notebook("02-b", "wait: bool = False", READ, 'files.write_text(home / "tables" / "b.csv", "1\\n")', SLEEP)
    plan = str(checkout.plan("01-a:\n02-b:\n"))
    process = checkout.start(plan, "--set", "02-b.wait=true")
    pids = checkout.run_folder / "pids.txt"
    wait(pids.exists)
    return plan, process, [int(pid) for pid in pids.read_text().split()]


@pytest.mark.slow
def test_a_second_run_in_the_same_folder_is_refused_with_the_pid(checkout):
    plan, process, pids = sleeping(checkout)
    done = checkout.run(plan)
    assert done.returncode == 1
    assert done.stderr == f"runs/small is in use by process {process.pid}; wait for it to end, or stop it with kill {process.pid}\n"
    assert "running, or killed" in checkout.run(plan, "--status").stdout
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (1, "stopped; run it again to go on\n")
    wait(lambda: not any(map(alive, pids)), 5)
    assert sorted(path.name for path in (checkout.run_folder / "notebooks").iterdir()) == ["01-a.ipynb", "02-b.failed.ipynb"]
    assert not (checkout.run_folder / "tables" / "b.csv").exists()


@pytest.mark.slow
def test_a_killed_plan_leaves_no_process_and_goes_on_where_it_was(checkout):
    plan, process, pids = sleeping(checkout)
    *theirs, stray = pids  # the last is a plain Popen, which only a plan that ends in order can find and kill
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    try:
        wait(lambda: not any(map(alive, theirs)), 5)
    finally:
        os.kill(stray, signal.SIGKILL)
    assert not (checkout.run_folder / "notebooks" / "02-b.ipynb").exists()
    assert not (checkout.run_folder / "manifests" / "02-b.json").exists()
    left = [checkout.run_folder / name / f".drawn.pdf.tmp-{theirs[0]}" for name in ("tables", "figures")]
    for path in left:  # as if it had been killed while it wrote them
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert ran(checkout.run(plan)) == ["02-b"]
    assert not any(path.exists() for path in left)
    assert [path.name for path in (checkout.run_folder / "notebooks").iterdir()].count("02-b.ipynb") == 1


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_kills_the_kernel(checkout):
    _, process, pids = sleeping(checkout)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (1, "stopped; run it again to go on\n")
    wait(lambda: not any(map(alive, pids)), 5)


def test_a_full_disk_is_told_in_one_sentence(checkout):
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    checkout.notebook("01-a", "", READ, full, 'files.write_text(home / "tables" / "a.csv", "1" * 5000)')
    done = checkout.run(str(checkout.plan("01-a:")))
    assert done.returncode == 1
    said = "runs/small/tables/a.csv was not written (File too large); make room or choose another QRELBOOK_HOME and run again"
    assert done.stderr.splitlines()[-1] == f"OSError: {said}"
    assert not list((checkout.run_folder).glob("tables/*"))


def test_a_disk_too_full_for_the_executed_copy_is_told_too(checkout):
    checkout.notebook("01-a", "", READ, "1 + 1")
    plan = checkout.plan("01-a:")
    command = ["bash", "-c", f"ulimit -f 1; exec {sys.executable} -m lib.plan {plan}"]  # no file over 1 KiB
    done = subprocess.run(command, cwd=checkout.root, env=checkout.environment, capture_output=True, text=True)
    assert done.returncode == 1
    said = "runs/small/notebooks/01-a.unfinished.ipynb was not written (File too large); make room or choose another QRELBOOK_HOME and run again"
    assert done.stderr.splitlines()[-1] == said
    assert "Traceback" not in done.stderr
    assert [path.name for path in (checkout.run_folder / "notebooks").iterdir()] == ["01-a.failed.ipynb"]
    assert not list(checkout.run_folder.glob("manifests/*"))


def test_the_status_counts_shards_gaps_and_money(checkout):
    plan = two(checkout)
    run = checkout.run_folder
    (run / "attempts" / "v1").mkdir(parents=True)
    (run / "hits" / "bm25").mkdir(parents=True)
    for shard in ("part-00000", "part-00001"):
        for end in ("parquet", "json"):
            (run / "hits" / "bm25" / f"{shard}.{end}").write_text("")
    (run / "queries").mkdir()
    (run / "queries" / "part-00000.parquet").write_text("")
    (run / "queries" / "manifest.json").write_text('{"parts": [{"part": "part-00000.parquet", "rows": 0, "sha256": ""}]}')
    (run / "tables").mkdir()
    (run / "tables" / "ledger.csv").write_text("stage,sent,gaps,refusal,timeout\npick,2,1,1,0\n")
    calls = [  # pair 1 is answered at its second call, pair 2 never
        {"query": 0, "doc": 1, "status": "timeout", "cost": None},
        {"query": 0, "doc": 2, "status": "timeout", "cost": 0.5},
        {"query": 0, "doc": 1, "status": "ok", "cost": 0.25},
        {"query": 0, "doc": 2, "status": "refusal", "cost": 0.25},
    ]
    lines = [json.dumps({"key": str(call["doc"]), "task_id": str(call["doc"]), "version": "v1", "stage": "pick", **call}) for call in calls]
    (run / "attempts" / "v1" / "part-00000.jsonl").write_text("\n".join(lines) + '\n{"torn')
    said = checkout.run(plan, "--status").stdout
    assert "01-a                 never run" in said
    assert "hits/bm25: 2 shards, not finished\nqueries: 1 shards, finished\n" in said
    assert "ledger: stage pick, sent 2, gaps 1, refusal 1\n" in said
    assert "gaps: 1 v1 pick, last call refusal" in said
    assert said.endswith("4 calls, 1 gaps, cost 1.00, 0 s in the finished notebooks\n")
    (run / "attempts" / "v2_gap").mkdir()
    (run / "attempts" / "v2_gap" / "part-00000.jsonl").write_text(lines[3].replace('"refusal"', '"ok"').replace('"v1"', '"v2 gap"'))
    said = checkout.run(plan, "--status").stdout
    assert "gaps:" not in said and said.endswith("5 calls, 0 gaps, cost 1.25, 0 s in the finished notebooks\n")
    (run / "queries" / "manifest.json").write_text('{"parts"')
    (run / "manifests").mkdir()
    (run / "manifests" / "01-a.json").write_text('{"parameters": {')
    said = checkout.run(plan, "--status").stdout
    assert "01-a                 never run" in said and "queries: 0 shards, not finished\n" in said, "torn manifests are none"


def test_a_figure_that_moved_to_an_earlier_notebook_stays_when_the_later_one_runs_again(checkout):
    draw = "from lib import files, paths\nfiles.write_text(paths.run_folder(run) / 'tables' / 'mix.csv', {!r})"
    checkout.notebook("01-merge", "", "pass")
    checkout.notebook("02-paper", "", draw.format("of the paper\n"))
    plan = checkout.plan("01-merge: {}\n02-paper: {}\n")
    assert checkout.run(str(plan)).returncode == 0
    checkout.notebook("01-merge", "", draw.format("of the merge\n"))
    checkout.notebook("02-paper", "", "pass")
    done = checkout.run(str(plan))
    assert done.returncode == 0, done.stderr
    assert (checkout.run_folder / "tables" / "mix.csv").read_text() == "of the merge\n"


def test_a_notebook_that_gathers_all_tables_runs_again_for_a_new_one(checkout):
    checkout.notebook("01-a", "", "from lib import files, paths\nfiles.write_text(paths.run_folder(run) / 'tables' / 'a.csv', '1')")
    checkout.notebook("02-paper", "", "from lib import paths, trace\ntrace.record('read', paths.run_folder(run) / 'tables')")
    plan = checkout.plan("01-a: {}\n02-paper: {}\n")
    assert ran(checkout.run(str(plan))) == ["01-a", "02-paper"]
    assert ran(checkout.run(str(plan))) == []
    checkout.notebook("01-a", "", "from lib import files, paths\nfor name in 'ab':\n    files.write_text(paths.run_folder(run) / 'tables' / f'{name}.csv', '1')")
    assert ran(checkout.run(str(plan))) == ["01-a", "02-paper"]
