"""The qrels line whole: by the commands of the README as they stand there, and with every step killed and resumed."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


def environment(folder: Path) -> dict[str, str]:
    """`python` is the interpreter of the tests, as in an activated .venv."""
    programs = folder / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / "python").symlink_to(sys.executable)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QRELS_")}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def readme() -> str:
    """The commands of the README's section on qrels."""
    section = (ROOT / "README.md").read_text().partition("## Qrels from a reviewer's workbook")[2].partition("\n## ")[0]
    commands = "\n".join(line for line in section.splitlines() if line.startswith("    "))
    assert commands.count("python -m lib.qrels") == 14
    return commands


def outcome(folder: Path) -> dict[str, bytes]:
    """What a user takes from the work folder, and the released files."""
    found = [*(folder / "work").glob("*.jsonl"), *(path for path in (folder / "released").rglob("*") if path.is_file())]
    assert len(found) > 10
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    """A folder in which the README's commands ran to their end."""
    folder = tmp_path_factory.mktemp("readme")
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", readme()], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing to scan; closure reached" in done.stdout
    return folder


def test_the_commands_of_the_readme_lead_to_closure_and_to_the_bytes_of_the_notebook(unbroken, tiny_home):
    (work,) = (tiny_home / "runs" / "tiny" / "qrels").iterdir()
    for name in ("qrels.jsonl", "qrels_expanded.jsonl", "needs_review.jsonl"):
        assert (unbroken / "work" / name).read_bytes() == (work / name).read_bytes()
    assert {path.suffix for path in (unbroken / "out").iterdir()} == {".csv", ".pdf", ".png", ".json"}
    released = (unbroken / "released" / "qrels.trec").read_text().splitlines()
    assert released == sorted(released) and {line.split(" ")[3] for line in released} == {"1"}


def test_the_commands_again_change_no_byte(unbroken, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(unbroken, again, symlinks=True)
    before = outcome(again) | {path.name: path.read_bytes() for path in (again / "out").iterdir()}
    commands = re.sub(r"until .*?done\n    python -m lib.qrels expand export", "python -m lib.qrels expand scan\n    python -m lib.qrels expand export", readme(), flags=re.DOTALL)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=again, env=environment(tmp_path), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and "nothing to scan; closure reached" in done.stdout, done.stdout + done.stderr
    assert outcome(again) | {path.name: path.read_bytes() for path in (again / "out").iterdir()} == before


class Killed:
    """Runs each command twice for a part of its time, killing it with SIGKILL, and then to its end."""

    def __init__(self, folder: Path):
        self.folder, self.environment, self.draw, self.kills = folder, environment(folder), random.Random(5), 0

    def __call__(self, *words: str) -> str:
        for _ in range(2):
            process = self.start(*words)
            time.sleep(self.draw.uniform(0.05, 0.9))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                self.kills += 1
            process.communicate()
        process = self.start(*words)
        told = process.communicate(timeout=120)[0]
        assert process.returncode == 0, (words, told)
        return told

    def start(self, *words: str) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-m", *words], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)


def test_every_step_killed_and_resumed_gives_the_bytes_of_the_unbroken_run(unbroken, tmp_path):
    run, work = Killed(tmp_path), tmp_path / "work"
    shutil.copytree(unbroken / "review", tmp_path / "review")
    run.environment |= {name: value.strip('"') for name, value in re.findall(r'(QRELS_\w+)=("[^"]*"|\S+)', readme())}
    qids = [f"q{number:02d}" for number in range(1, 7)]
    run("lib.qrels", "candidates")
    run("lib.qrels", "fetch", "--all")
    run("lib.sample.reviewer", "standards", "review", "work")
    for qid in qids:
        run("lib.qrels", "worksheet", "--qid", qid, "--max-chars", "0")
    run("lib.sample.reviewer", "rejections", "review", "work")
    run("lib.qrels", "verdicts", "--all")
    run("lib.qrels", "build")
    while "closure reached" not in run("lib.qrels", "expand", "scan"):
        run("lib.qrels", "fetch", "--ids-file", "work/expand/fetch_ids.json")
        for qid in qids:
            run("lib.qrels", "expand", "render", "--qid", qid, "--max-chars", "0")
        run("lib.sample.reviewer", "decisions", "review", "work")
        for decided in sorted((work / "expand" / "to_apply").glob("*.json")):
            run("lib.qrels", "expand", "apply", "--qid", decided.stem, "--decisions", str(decided))
    run("lib.qrels", "expand", "export")
    run("lib.qrels", "release", "--outdir", "released")
    assert run.kills > 20
    assert outcome(tmp_path) == outcome(unbroken)
