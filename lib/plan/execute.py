"""Run one notebook in a kernel of its own that dies with this process, and clean up where it fails."""

import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import papermill

from lib import paths, processes, trace
from lib.plan import manifest
from lib.plan.check import Job

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Failed(RuntimeError):
    """A notebook did not run to its end; the message is what the terminal ends with."""


class Measured(NamedTuple):
    seconds: float
    peak: int  # bytes


class _Memory(threading.Thread):
    """The peak of the kernel and all processes under it: their resident sets summed, five times a second.

    A page that several of them share counts for each.
    """

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.pid, self.peak, self.seen, self.over = pid, 0, set(), threading.Event()

    def run(self) -> None:
        import psutil

        while not self.over.wait(0.2):
            try:
                kernel = psutil.Process(self.pid)
                tree = [kernel, *kernel.children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
            total = 0
            for process in tree:
                try:
                    total += process.memory_info().rss
                    self.seen.add(process)
                except psutil.NoSuchProcess:
                    continue
            self.peak = max(self.peak, total)

    def end(self) -> None:
        """Stop measuring and kill whatever the kernel left running."""
        self.over.set()
        self.join()
        for process in self.seen:
            if process.is_running():
                process.kill()


def _kernel(log, traced: Path, started: list[_Memory]):
    """The class of a kernel that writes to the log, traces to a file and is killed when this process dies."""
    from jupyter_client.manager import AsyncKernelManager

    class Kernel(AsyncKernelManager):  # asynchronous: the kernel is forked by this thread, with whose death it dies
        async def start_kernel(self, **options):
            await super().start_kernel(
                transport_encryption="auto",
                env=THREADS | os.environ | {trace.VARIABLE: str(traced), "PYTHONHASHSEED": "0"},
                stdout=log,
                stderr=log,
                preexec_fn=processes.die_with_parent,
                **options,
            )
            started.append(_Memory(self.provisioner.pid))
            started[0].start()

    return Kernel


@contextmanager
def _cleared(job: Job, run: Path) -> Iterator[Callable[[], list[Path]]]:
    """Take away what the notebook left before; yield a function that lists the tables and figures it drew since.

    Where it fails, what it drew is moved to `failed/NAME/` and its copy is named `NAME.failed.ipynb`.
    """
    old = manifest.load(run, job.name)
    shutil.rmtree(run / "failed" / job.name, ignore_errors=True)
    manifest.place(run, job.name).unlink(missing_ok=True)
    for state in manifest.STATES:
        manifest.executed(run, job.name, state).unlink(missing_ok=True)
    before = manifest.drawn(run)
    for path in manifest.drawn_by(old, before):
        path.unlink()
        del before[path]

    def drew() -> list[Path]:
        return [path for path, state in manifest.drawn(run).items() if before.get(path) != state]

    try:
        yield drew
    except BaseException:
        for path in drew():
            target = run / "failed" / job.name / path.relative_to(run if path.is_relative_to(run) else paths.HOME)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        copy = manifest.executed(run, job.name, manifest.UNFINISHED)
        if copy.exists():
            copy.replace(manifest.executed(run, job.name, manifest.FAILED))
        raise


def run(job: Job, folder: Path) -> dict:
    """Run a notebook and give its manifest. Failed names the cell and the error; nothing of it looks finished then."""
    copy = manifest.executed(folder, job.name, manifest.UNFINISHED)
    log, traced = (folder / "logs" / f"{job.name}.{end}" for end in ("log", "trace"))
    for path in (copy, log):
        path.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    traced.unlink(missing_ok=True)
    started = time.time_ns()
    with _cleared(job, folder) as drew:
        try:
            measured = _papermill(job, copy, log, traced)
            _check_numbers(job, copy)
        except Exception as error:
            raise Failed(_told(job, folder, error)) from error
        found = manifest.write(job, folder, traced, started, drew(), *measured)
    copy.replace(manifest.executed(folder, job.name))
    return found


def _papermill(job: Job, copy: Path, log: Path, traced: Path) -> Measured:
    begun, memory = time.perf_counter(), []
    with open(log, "a", buffering=1, encoding="utf-8") as handle:
        try:
            papermill.execute_notebook(
                str(job.path),
                str(copy),
                job.parameters,
                kernel_name="python3",
                language="python",  # a stripped notebook may not name it
                progress_bar=False,
                cwd=str(paths.ROOT),
                stdout_file=handle,
                stderr_file=handle,
                kernel_manager_class=_kernel(handle, traced, memory),
                shutdown_kernel="immediate",
            )
        finally:
            for started in memory:
                started.end()
    return Measured(time.perf_counter() - begun, memory[0].peak)


def _code(copy: Path) -> list[dict]:
    """The code cells of an executed copy."""
    return [cell for cell in json.loads(copy.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def _check_numbers(job: Job, copy: Path) -> None:
    """Every cell ran, once and in order: papermill takes `sys.exit(0)` in the middle for the end.

    A cell tagged `skip-execution` is for JupyterLab alone: headless, widgets now and then block the client for good.
    """
    ran = [cell for cell in _code(copy) if "".join(cell["source"]).strip() and "skip-execution" not in cell["metadata"].get("tags", [])]
    numbers = [cell["execution_count"] for cell in ran]
    if numbers != list(range(1, len(numbers) + 1)):
        raise RuntimeError(f"its cells are numbered {numbers}, not 1 to {len(numbers)}; let every cell run to its end")


def _told(job: Job, folder: Path, error: Exception) -> str:
    """What the terminal ends with: the cell's number and first line, the exception's type and message."""
    told = f"{paths.shown(job.path)} failed; its output is in {paths.shown(folder / 'logs' / job.name)}.log"
    copy = manifest.executed(folder, job.name, manifest.UNFINISHED)
    try:
        code = _code(copy)
    except (OSError, ValueError):  # it was never written, or the disk is full
        code = []
    # the last cell that was started; a dead kernel's cell is stored as completed
    cells = [(n, cell) for n, cell in enumerate(code, 1) if cell["metadata"]["papermill"]["start_time"]]
    if cells:
        number, cell = cells[-1]
        line = next((text for text in "".join(cell["source"]).splitlines() if text.strip()), "")
        told += f" and {paths.shown(manifest.executed(folder, job.name, manifest.FAILED))}\ncell {number}: {line}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return f"{told}\n{paths.shown(copy)} was not written ({error.strerror}); make room or choose another QRELBOOK_HOME and run again"
    return f"{told}\n{getattr(error, 'ename', type(error).__name__)}: {getattr(error, 'evalue', error)}"
