"""The plan `tiny` run whole: twice, killed in each notebook, on a full disk, after a change of code or prompt."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import whole_run
from whole_run import ROOT, finish, results, start

from lib.plan import check

pytestmark = pytest.mark.slow
NOTEBOOKS = [job.name for job in check.jobs(ROOT / "runs" / "tiny.yaml")]


def attempts(run: Path) -> list[str]:
    return [line for path in sorted(run.glob("attempts/*/*.jsonl")) for line in path.read_text().splitlines()]


def ran(printed: str) -> set[str]:
    return {line.split()[0] for line in printed.splitlines() if line.split()[1:2] == ["ran"]}


def descendants(process: subprocess.Popen) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def test_two_runs_in_two_folders_give_the_same_bytes(tiny_home, tmp_path):
    finish(start("tiny", tmp_path))
    first, second = results(tiny_home), results(tmp_path)
    assert len(first) > 60 and first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def test_a_run_killed_in_each_notebook_and_resumed_gives_the_same_bytes(tiny_home, tmp_path):
    run, draws, killed = tmp_path / "runs" / "tiny", random.Random(7), []
    seconds = {name: json.loads((tiny_home / f"runs/tiny/manifests/{name}.json").read_text())["seconds"] for name in NOTEBOOKS}
    for name in NOTEBOOKS:
        process = start("tiny", tmp_path)
        unfinished = run / "notebooks" / f"{name}.unfinished.ipynb"
        while not unfinished.exists():
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.02)
        moment = time.monotonic() + draws.uniform(0.1, 0.7) * seconds[name]
        while unfinished.exists() and time.monotonic() < moment:  # a machine that became faster ends a notebook first
            time.sleep(0.02)
        family = descendants(process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        gone, alive = psutil.wait_procs(family, timeout=10)
        assert not alive, f"killed in {name}, left {alive}"
        if not (run / "manifests" / f"{name}.json").exists():
            killed.append(name)
        assert name == NOTEBOOKS[-1] or not (run / "manifests" / "14-paper.json").exists()
    assert len(killed) >= 6, f"only {killed} were killed half-way"
    finish(start("tiny", tmp_path))
    first, second = results(tiny_home), results(tmp_path)
    assert first.keys() == second.keys() and [name for name in first if first[name] != second[name]] == []
    valid = [(row["key"], row["score"]) for row in map(json.loads, attempts(run)) if row["status"] in ("ok", "unevaluable")]
    assert len(valid) == len(set(valid)), "an answered pair was paid twice"


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A checkout of its own in which the plan has run once, to be edited."""
    root = tmp_path_factory.mktemp("a copy") / "checkout"
    for name in ("lib", "notebooks", "prompts"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "runs").mkdir()
    shutil.copy(ROOT / "runs" / "tiny.yaml", root / "runs")
    assert ran(finish(start("tiny", root, root=root))) == set(NOTEBOOKS)
    return root


def test_nothing_runs_again_while_nothing_changed(copy):
    assert ran(finish(start("tiny", copy, root=copy))) == set()


@pytest.mark.parametrize("module", ["lib/stats/auc.py", "lib/judge/reply.py", "lib/retrieval/ngram.py"])
def test_a_touched_module_runs_exactly_the_notebooks_that_imported_it_and_pays_nothing(copy, module):
    run = copy / "runs" / "tiny"
    before, labelled = attempts(run), results(copy)
    name = module.removesuffix(".py").replace("/", ".")
    imported = {notebook for notebook in NOTEBOOKS if name in json.loads((run / f"manifests/{notebook}.json").read_text())["modules"]}
    assert imported and imported != set(NOTEBOOKS)
    with open(copy / module, "a") as handle:
        handle.write("\n# touched\n")
    shard = run / "hits" / "ngram" / "part-00000.json"
    key = json.loads(shard.read_text())["key"]
    assert ran(finish(start("tiny", copy, root=copy))) == imported
    assert attempts(run) == before and results(copy) == labelled
    assert (json.loads(shard.read_text())["key"] != key) == (module == "lib/retrieval/ngram.py"), "a stale shard is made again, others stay"


def test_a_changed_prompt_asks_every_pair_anew_and_changing_it_back_pays_nothing(copy):
    run, prompt = copy / "runs" / "tiny", copy / "prompts" / "judge_prompt.md"
    before, labelled, words = attempts(run), results(copy), prompt.read_bytes()
    prompt.write_bytes(words + b"\nBe strict.\n")
    assert {"03-probe", "06-judge"} <= ran(finish(start("tiny", copy, root=copy)))
    asked = attempts(run)
    old, new = ({json.loads(line)["prompt_sha256"] for line in lines} for lines in (before, asked))
    assert set(before) < set(asked) and len(new) == len(old) + 1
    assert len({json.loads(line)["key"] for line in asked}) == 2 * len({json.loads(line)["key"] for line in before})
    prompt.write_bytes(words)
    finish(start("tiny", copy, root=copy))
    assert attempts(run) == asked and results(copy) == labelled


def test_a_second_run_in_the_same_folder_is_refused_with_the_pid(tmp_path):
    first = start("tiny", tmp_path)
    while not list(tmp_path.glob("runs/tiny/notebooks/*")):
        time.sleep(0.05)
    second = start("tiny", tmp_path)
    printed, _ = second.communicate(timeout=60)
    assert second.returncode == 1 and f"runs/tiny is in use by process {first.pid}" in printed and "Traceback" not in printed
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    assert first.returncode == 1


def small_disk(folder: Path, megabytes: int) -> bool:
    """Mount a disk of that size, where this user may."""
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], capture_output=True).returncode == 0


@pytest.mark.parametrize("megabytes", [1, 13])  # full while the corpus is written, and while the model is trained
def test_a_full_disk_is_one_sentence_and_leaves_no_half_table(tmp_path, megabytes):
    home = tmp_path / "home"
    home.mkdir()
    mounted = small_disk(home, megabytes)
    limit = None if mounted else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (min(megabytes, 4) * 200_000,) * 2)
    try:
        process = start("tiny", home, preexec_fn=limit)
        printed, _ = process.communicate(timeout=120)
        last = printed.strip().splitlines()[-1]
        assert process.returncode == 1 and "Traceback" not in printed
        assert ("No space left on device" in last or "File too large" in last) and "was not written" in last
        for folder in {path.parent for path in home.glob("runs/tiny/**/part-*.parquet")}:
            if (folder / "manifest.json").exists():
                assert {path.name for path in folder.glob("part-*.parquet")} == {line["part"] for line in json.loads((folder / "manifest.json").read_text())["parts"]}
        assert not list(home.glob("runs/tiny/**/.*.tmp-*"))
        assert not list(home.glob("runs/tiny/manifests/14-paper.json"))
    finally:
        if mounted:
            subprocess.run(["umount", str(home)], check=True)


def test_every_notebook_runs_by_plain_papermill_and_in_its_own_folder_as_in_jupyterlab(tiny_home, tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "ein Ordner für Läufe"
    elsewhere.mkdir()
    environment = os.environ | {"QRELBOOK_HOME": str(home), "PYTHONPATH": str(ROOT)}
    for job in check.jobs(ROOT / "runs" / "tiny.yaml"):
        command = [sys.executable, "-m", "papermill", str(job.path), f"{job.name}.ipynb", "-y", json.dumps(job.parameters)]
        done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
    assert results(home) == results(tiny_home)
    for name in NOTEBOOKS:  # JupyterLab starts a kernel in the notebook's folder
        command = [sys.executable, "-m", "papermill", str(elsewhere / f"{name}.ipynb"), "again.ipynb", "--cwd", str(ROOT / "notebooks")]
        done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
    assert results(home) == results(tiny_home)


def test_the_cells_for_jupyterlab_alone_run_there(tiny_home, tmp_path):
    shutil.copytree(tiny_home, tmp_path / "home")
    notebooks = [path for path in (ROOT / "notebooks").glob("*.ipynb") if "skip-execution" in path.read_text()]
    assert [path.stem for path in notebooks] == ["03-probe"]
    shell = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        shell.run_cell("".join(cell["source"])).raise_error()
        if "parameters" in cell["metadata"].get("tags", []):
            shell.run_cell('run, probe_queries = "tiny", 8').raise_error()
print("all cells ran")
"""
    for path in notebooks:
        environment = os.environ | {"QRELBOOK_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", shell, str(path)], env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0 and "all cells ran" in done.stdout and "interactive(children=" in done.stdout, done.stderr


@pytest.mark.parametrize("plan", ["sample", "tiny", "paper"])
def test_the_plans_of_the_repository_are_right(plan, monkeypatch):
    monkeypatch.setenv("QRELBOOK_JUDGE_URL", "http://127.0.0.1:8000/v1")  # runs/paper.yaml asks the judge of the environment
    assert "are right" in finish(whole_run.start(plan, ROOT, "--check"))
