"""One thread a process before anything is imported, and a small checkout in which plans are run."""

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import json  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import filelock  # noqa: E402
import hypothesis  # noqa: E402
import nbformat  # noqa: E402
import pytest  # noqa: E402
import whole_run  # noqa: E402

hypothesis.settings.register_profile("house", deadline=None, derandomize=True)
hypothesis.settings.load_profile("house")

LIB = Path(__file__).resolve().parents[1] / "lib"


class Checkout:
    """A root of its own with the foundation and the plan runner, and with notebooks that a test writes."""

    def __init__(self, root: Path):
        self.root, self.run_folder = root, root / "runs" / "small"
        shutil.copytree(LIB / "plan", root / "lib" / "plan", ignore=shutil.ignore_patterns("__pycache__"))
        for module in LIB.glob("*.py"):
            shutil.copy(module, root / "lib")
        (root / "notebooks").mkdir()
        (root / "runs").mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("QRELBOOK_")}
        self.environment = kept | {"PYTHONPATH": str(root)}

    def notebook(self, name: str, parameters: str, *cells: str) -> Path:
        """Write notebooks/<name>.ipynb: a title, the parameters cell (`run` is added), the cells."""
        made = nbformat.v4.new_notebook()
        first = nbformat.v4.new_code_cell(f'# on the sample\nrun: str = "sample"  # run folder\n{parameters}', metadata={"tags": ["parameters"]})
        made.cells = [nbformat.v4.new_markdown_cell("# Does it run?"), first, *map(nbformat.v4.new_code_cell, cells)]
        path = self.root / "notebooks" / f"{name}.ipynb"
        path.write_text(nbformat.writes(made), encoding="utf-8")
        return path

    def plan(self, text: str, name: str = "small") -> Path:
        path = self.root / "runs" / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *arguments: str, cwd: Path | None = None, module: str = "lib.plan") -> subprocess.Popen:
        command = [sys.executable, "-m", module, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=cwd or self.root, env=self.environment, **pipes)

    def run(self, *arguments: str, cwd: Path | None = None, module: str = "lib.plan") -> subprocess.CompletedProcess:
        process = self.start(*arguments, cwd=cwd, module=module)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def manifest(self, name: str) -> dict:
        return json.loads((self.run_folder / "manifests" / f"{name}.json").read_text())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


@pytest.fixture(scope="session")
def tiny_home(tmp_path_factory, worker_id: str) -> Path:
    """The home of one unbroken run of the plan `tiny`, shared by all processes of the tests; they read it only."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    home, done = shared / "tiny", shared / "tiny.done"
    with filelock.FileLock(shared / "tiny.lock"):
        if not done.exists():
            home.mkdir()
            whole_run.finish(whole_run.start("tiny", home))
            done.touch()
    return home
